// Contract: contacts and the records about them, and conversations that are linked to a contact.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ContactImport, ContactRow, ContactStore, ContactTodoRow } from '../../src/stores/contact-store.ts'
import type { ConversationStore } from '../../src/stores/conversation-store.ts'
import type { OpenStore } from './open-store.ts'
import { beforeAndAfter, owner, start, withStore } from './store-fixtures.ts'

const max = 1000

export function contact(id: string, changes: Partial<ContactRow> = {}): ContactRow {
  return {
    owner,
    id,
    uid: null,
    name: `Name of ${id}`,
    alias: null,
    email: null,
    phone: null,
    company: null,
    position: null,
    note: null,
    profile: {},
    tags: [],
    createdAt: start,
    updatedAt: start,
    ...changes,
  }
}

/** The fields that facts, to-dos and events have in common. */
export const record = (id: string, contactId = 'c') => ({
  id,
  owner,
  contactId,
  sourceConversationId: null,
  sourceMessageIds: [],
  createdAt: start,
  updatedAt: start,
})
const fact = (id: string, changes = {}) => ({ ...record(id), content: `fact ${id}`, metadata: {}, ...changes })
const todo = (id: string, changes: Partial<ContactTodoRow> = {}): ContactTodoRow => ({
  ...record(id),
  content: `to-do ${id}`,
  status: 'pending',
  dueAt: null,
  ...changes,
})
const event = (id: string, changes = {}) => ({
  ...record(id),
  title: `event ${id}`,
  description: null,
  details: {},
  eventDate: null,
  ...changes,
})

export function contactContract(open: OpenStore<ContactStore & ConversationStore>): void {
  const opened = withStore(open)
  const ids = (rows: { id: string }[]) => rows.map((row) => row.id)
  const all = { limit: 100, offset: 0 }
  const of = (contactId: string) => ({ owner, contactId })
  const key = (id: string, contactId = 'c') => ({ ...of(contactId), id })

  describe('contacts', () => {
    test(
      'are kept with every field, and are seen by their owner only',
      opened(async ({ store, reopen }) => {
        const full = contact('c', {
          uid: 'urn:uuid:1',
          alias: '小张',
          email: 'Zhang@example.com',
          phone: '+86 10 1234',
          company: 'Acme',
          position: 'CTO',
          note: 'met in 2020',
          profile: { birthday: '1990-05-17', nested: { list: [1, null, 'x'] } },
          tags: ['friend', '同事'],
        })
        await store.createContact(full, max)

        for await (const from of beforeAndAfter(store, reopen)) {
          assert.deepEqual(await from.readContact(owner, 'c'), full)
          assert.equal(await from.readContact('bob', 'c'), undefined)
          assert.deepEqual(await from.listContacts('bob', all), { rows: [], more: false, total: 0 })
          assert.deepEqual((await from.pageOfContacts('bob', { limit: 9 })).rows, [])
        }
      }),
    )

    test(
      'have ids that count per owner; the same id of one owner is refused, also at the same time',
      opened(async ({ store }) => {
        await store.createContact(contact('c', { owner: 'bob', name: 'Bob’s' }), max)

        const created = await Promise.allSettled(
          Array.from({ length: 5 }, (_, at) => store.createContact(contact('c', { name: `n${at}` }), max)),
        )

        const refused = created.filter((one) => one.status === 'rejected')
        assert.equal(refused.length, 4)
        for (const { reason } of refused) assert.equal(reason.code, 'contact_exists')
        const winner = created.findIndex((one) => one.status === 'fulfilled')
        assert.equal((await store.readContact(owner, 'c'))?.name, `n${winner}`)
        assert.equal((await store.readContact('bob', 'c'))?.name, 'Bob’s')
      }),
    )

    test(
      'are at most as many as the caller says, for each owner',
      opened(async ({ store }) => {
        await store.createContact(contact('a'), 2)
        await store.createContact(contact('b'), 2)

        await assert.rejects(store.createContact(contact('c'), 2), { code: 'contacts_full' })
        const entry = (name: string): ContactImport => ({ name, newId: `id-${name}` })
        await assert.rejects(store.importContacts(owner, [entry('x'), entry('y')], start, 3), { code: 'contacts_full' })
        await store.createContact(contact('c', { owner: 'bob' }), 2)

        assert.equal((await store.listContacts(owner, all)).total, 2)
      }),
    )

    test(
      'are listed changed last first, page by page, each once, with their number',
      opened(async ({ store }) => {
        for (const [at, id] of ['a', 'b', 'c', 'd', 'e'].entries()) {
          await store.createContact(contact(id, { updatedAt: start + Math.floor(at / 2) }), max)
        }
        await store.updateContact(owner, 'a', { name: 'Anna' }, start + 9)

        const pages = await Promise.all([0, 2, 4, 6].map((offset) => store.listContacts(owner, { limit: 2, offset })))

        assert.deepEqual(
          pages.map((page) => [ids(page.rows), page.more, page.total]),
          [
            [['a', 'e'], true, 5],
            [['d', 'c'], true, 5],
            [['b'], false, 5],
            [[], false, 5],
          ],
        )
      }),
    )

    test(
      'are read all in the order of creation, also while some of them are deleted',
      opened(async ({ store }) => {
        for (const id of ['a', 'b', 'c', 'd']) await store.createContact(contact(id), max)
        const first = await store.pageOfContacts(owner, { limit: 2 })
        await store.deleteContact(owner, 'b')
        await store.createContact(contact('e'), max)
        const second = await store.pageOfContacts(owner, { limit: 2, after: first.next! })
        const third = await store.pageOfContacts(owner, { limit: 2, after: second.next! })

        assert.deepEqual(
          [first, second, third].map(({ rows, more }) => [ids(rows), more]),
          [
            [['a', 'b'], true],
            [['c', 'd'], true],
            [['e'], false],
          ],
        )
        assert.equal(third.next, null)
      }),
    )

    test(
      'are found by words in any field, in any case and order, and by an exact tag',
      opened(async ({ store }) => {
        const contacts = {
          a: { name: 'Ada Lovelace', company: 'Engines', tags: ['math', 'old friend'] },
          b: { name: '张伟', alias: 'Wei', email: 'wei@Example.com', tags: ['同事'] },
          c: { name: 'Carl', position: 'Éditeur', phone: '+49 30 123', tags: ['math%'] },
        }
        for (const [id, fields] of Object.entries(contacts)) await store.createContact(contact(id, fields), max)
        await store.createContact(contact('x', { owner: 'bob', name: 'Ada', tags: ['math'] }), max)
        const find = async (search?: string, tag?: string) => {
          const page = { ...all, ...(search === undefined ? {} : { search }), ...(tag === undefined ? {} : { tag }) }
          const { rows, total } = await store.listContacts(owner, page)
          assert.equal(total, rows.length)
          return ids(rows)
        }

        assert.deepEqual(await find('LOVE ada'), ['a'])
        assert.deepEqual(await find('张'), ['b'])
        assert.deepEqual(await find('example.COM'), ['b'])
        assert.deepEqual(await find('éditeur'), ['c'])
        assert.deepEqual(await find('123'), ['c'])
        assert.deepEqual(await find('friend'), ['a'])
        assert.deepEqual(await find('ada nobody'), [])
        assert.deepEqual(await find('   '), ['c', 'b', 'a'])
        assert.deepEqual(await find(undefined, 'math'), ['a'])
        assert.deepEqual(await find('engines', 'math'), ['a'])
        assert.deepEqual(await find('carl', 'math'), [])
        assert.deepEqual(await find(undefined, 'friend'), [])
        for (const odd of ['%', '_', '"', "'; DROP TABLE contacts; --", '\u0000', 'x'.repeat(10_000), 'a '.repeat(99)])
          await store.listContacts(owner, { ...all, search: odd, tag: odd })
      }),
    )

    test(
      'are changed field by field, and searched by what they are now',
      opened(async ({ store, reopen }) => {
        await store.createContact(contact('c', { name: 'Old', company: 'Acme', tags: ['x', 'y'] }), max)

        const changed = await store.updateContact(
          owner,
          'c',
          { name: 'New', company: null, tags: ['y', 'z'] },
          start + 5,
        )

        assert.deepEqual(changed, contact('c', { name: 'New', tags: ['y', 'z'], updatedAt: start + 5 }))
        assert.equal(await store.updateContact(owner, 'nobody', { name: 'x' }, start), undefined)
        assert.equal(await store.updateContact('bob', 'c', { name: 'x' }, start), undefined)
        for await (const from of beforeAndAfter(store, reopen)) {
          assert.deepEqual(await from.readContact(owner, 'c'), changed)
          const found = async (page: object) => (await from.listContacts(owner, { ...all, ...page })).total
          assert.deepEqual(
            await Promise.all([{ search: 'old' }, { search: 'new' }, { tag: 'x' }, { tag: 'z' }].map(found)),
            [0, 1, 0, 1],
          )
        }
      }),
    )

    test(
      'are deleted with their facts, to-dos and events, and nothing else',
      opened(async ({ store, reopen }) => {
        for (const id of ['c', 'd']) {
          await store.createContact(contact(id, { tags: ['t'] }), max)
          await store.addContactRecord('fact', fact(`f-${id}`, { contactId: id }))
          await store.addContactRecord('todo', todo(`t-${id}`, { contactId: id }))
          await store.addContactRecord('event', event(`e-${id}`, { contactId: id }))
        }
        await store.createContact(contact('c', { owner: 'bob' }), max)

        assert.equal(await store.deleteContact(owner, 'c'), 'deleted')
        assert.equal(await store.deleteContact(owner, 'c'), 'missing')
        assert.equal(await store.deleteContact('carol', 'd'), 'missing')

        await store.createContact(contact('c'), max)
        for await (const from of beforeAndAfter(store, reopen)) {
          const totals = async (id: string) => {
            const kinds = ['fact', 'todo', 'event'] as const
            const lists = await Promise.all(kinds.map((kind) => from.listContactRecords(kind, of(id), all)))
            return lists.map(({ total }) => total)
          }
          assert.deepEqual(await totals('c'), [0, 0, 0], 'a new contact with the old id starts empty')
          assert.deepEqual(await totals('d'), [1, 1, 1])
          assert.equal((await from.listContacts(owner, { ...all, tag: 't' })).total, 1)
          assert.ok((await from.readContact('bob', 'c')) !== undefined)
        }
      }),
    )
  })

  describe('records of contacts', () => {
    test(
      'are kept with every field, changed and removed, each with its own contact',
      opened(async ({ store, reopen }) => {
        await store.createContact(contact('c'), max)
        await store.createContact(contact('d'), max)
        await store.createConversation({ id: 'conv', owner, title: null, createdAt: start, updatedAt: start })
        const source = { sourceConversationId: 'conv', sourceMessageIds: ['m1', 'm2'] }
        await store.addContactRecord('fact', fact('f', { ...source, metadata: { sure: true } }))
        await store.addContactRecord('todo', todo('t', { ...source, dueAt: start + 5 }))
        await store.addContactRecord(
          'event',
          event('e', { ...source, details: { at: 'Berlin' }, eventDate: start - 5 }),
        )
        await store.addContactRecord('fact', fact('f', { content: 'again' }))

        const done = await store.updateContactRecord('todo', key('t'), { status: 'completed', dueAt: null }, start + 9)

        assert.deepEqual(done, todo('t', { ...source, status: 'completed', updatedAt: start + 9 }))
        for (const elsewhere of [key('t', 'd'), { ...key('t'), owner: 'bob' }, key('f')]) {
          assert.equal(await store.readContactRecord('todo', elsewhere), undefined)
          assert.equal(await store.updateContactRecord('todo', elsewhere, { content: 'x' }, start), undefined)
          assert.equal(await store.deleteContactRecord('todo', elsewhere), false)
        }
        for await (const from of beforeAndAfter(store, reopen)) {
          assert.deepEqual(
            await from.readContactRecord('fact', key('f')),
            fact('f', { ...source, metadata: { sure: true } }),
          )
          assert.deepEqual(await from.readContactRecord('todo', key('t')), done)
          assert.deepEqual(
            await from.readContactRecord('event', key('e')),
            event('e', { ...source, details: { at: 'Berlin' }, eventDate: start - 5 }),
          )
        }
      }),
    )

    test(
      'belong to a contact that the owner has, and forget a conversation that is deleted or not the owner’s',
      opened(async ({ store }) => {
        await store.createContact(contact('c'), max)
        await store.createContact(contact('only-bob', { owner: 'bob' }), max)
        for (const [id, whose] of [
          ['mine', owner],
          ['theirs', 'bob'],
        ] as const) {
          await store.createConversation({ id, owner: whose, title: null, createdAt: start, updatedAt: start })
        }
        const sourceOf = async (id: string) => (await store.readContactRecord('fact', key(id)))?.sourceConversationId

        await assert.rejects(store.addContactRecord('fact', fact('x', { contactId: 'only-bob' })), {
          code: 'contact_not_found',
        })
        await store.addContactRecord('fact', fact('f1', { sourceConversationId: 'mine' }))
        await store.addContactRecord('fact', fact('f2', { sourceConversationId: 'theirs' }))
        assert.deepEqual([await sourceOf('f1'), await sourceOf('f2')], ['mine', null])

        await store.deleteConversation('mine')
        assert.equal(await sourceOf('f1'), null)
        assert.equal(await store.deleteContactRecord('fact', key('f1')), true)
        assert.equal(await store.deleteContactRecord('fact', key('f1')), false)
      }),
    )

    test(
      'are listed in their order: facts added last first, events by date, open to-dos by due time',
      opened(async ({ store }) => {
        await store.createContact(contact('c'), max)
        for (const id of ['f1', 'f2', 'f3']) await store.addContactRecord('fact', fact(id))
        const dates = { e1: start + 5, e2: null, e3: start - 5, e4: start + 9 }
        for (const [id, eventDate] of Object.entries(dates))
          await store.addContactRecord('event', event(id, { eventDate }))
        const due = { t1: null, t2: start + 9, t3: start + 1, t4: start }
        for (const [id, dueAt] of Object.entries(due)) await store.addContactRecord('todo', todo(id, { dueAt }))
        await store.updateContactRecord('todo', key('t4'), { status: 'canceled' }, start)

        const facts = await store.listContactRecords('fact', of('c'), { limit: 2, offset: 0 })
        const rest = await store.listContactRecords('fact', of('c'), { limit: 2, offset: 2 })
        const events = await store.listContactRecords('event', of('c'), all)
        const todos = await store.listContactRecords('todo', of('c'), all)
        const open = await store.listContactRecords('todo', of('c'), { ...all, status: 'pending' })
        const canceled = await store.listContactRecords('todo', of('c'), { ...all, status: 'canceled' })

        assert.deepEqual([ids(facts.rows), facts.more, facts.total], [['f3', 'f2'], true, 3])
        assert.deepEqual([ids(rest.rows), rest.more, rest.total], [['f1'], false, 3])
        assert.deepEqual(ids(events.rows), ['e4', 'e1', 'e2', 'e3'])
        assert.deepEqual(ids(todos.rows), ['t4', 't3', 't2', 't1'])
        assert.deepEqual([ids(open.rows), open.total], [['t3', 't2', 't1'], 3])
        assert.deepEqual([ids(canceled.rows), canceled.total], [['t4'], 1])
      }),
    )
  })

  describe('imported contacts', () => {
    let made = 0
    const entry = (changes: Partial<ContactImport> & { name: string }): ContactImport => ({
      newId: `new-${++made}`,
      ...changes,
    })
    const outcomes = async (store: ContactStore, entries: ContactImport[], at = start + 1) =>
      (await store.importContacts(owner, entries, at, max)).map(({ outcome }) => outcome)

    test(
      'are created once, however often the same file comes, and a file may hold people of one name',
      opened(async ({ store }) => {
        const file = () => [
          entry({ name: '张伟', phone: '1' }),
          entry({ name: '张伟', phone: '2' }),
          entry({ name: '张伟', email: 'zw@example.com', phone: '3' }),
          entry({ name: 'Ann', uid: 'u1', email: 'home@example.com' }),
          entry({ name: 'Ben', uid: 'u2', email: 'home@example.com' }),
          entry({ name: 'Cat', id: 'contact_456' }),
          entry({ name: 'Dan' }),
        ]

        assert.deepEqual(await outcomes(store, file()), Array(7).fill('created'))
        assert.deepEqual(await outcomes(store, file()), Array(7).fill('unchanged'))

        const { rows, total } = await store.listContacts(owner, all)
        assert.equal(total, 7)
        assert.ok(rows.every((row) => row.updatedAt === start + 1))
      }),
    )

    test(
      'of one name are told apart, however many there are',
      opened(async ({ store }) => {
        const file = () =>
          Array.from({ length: 120 }, (_, at) => [
            entry({ name: '张伟', phone: `${at}` }),
            entry({ name: '张伟', email: `${at}@example.com`, phone: '+1' }),
            entry({ name: '张伟', uid: `u${at}`, email: 'home@example.com' }),
          ]).flat()

        await outcomes(store, file())
        const { total } = await store.listContacts(owner, all)

        assert.deepEqual([...new Set(await outcomes(store, file()))], ['unchanged'])
        assert.equal((await store.listContacts(owner, all)).total, total)
        assert.ok(total >= 240, `${total}`)
      }),
    )

    test(
      'match by id or uid, then by email, then by name, unless something else tells them apart',
      opened(async ({ store }) => {
        await store.createContact(contact('a', { name: 'Ann', email: 'ann@example.com', uid: 'u-a' }), max)
        await store.createContact(contact('b', { name: 'Ben', phone: '2' }), max)
        await store.createContact(contact('b', { owner: 'bob', name: 'Zoe', email: 'zoe@example.com' }), max)
        const match = async (changes: Partial<ContactImport> & { name: string }) =>
          (await store.importContacts(owner, [entry(changes)], start + 1, max))[0]!

        assert.deepEqual(await match({ name: 'Annie', id: 'a' }), { outcome: 'updated', id: 'a' })
        assert.deepEqual(await match({ name: 'Ann', uid: 'u-a' }), { outcome: 'updated', id: 'a' })
        assert.deepEqual(
          await match({ name: 'Ben', uid: 'b' }),
          { outcome: 'updated', id: 'b' },
          'an exported id comes back as uid',
        )
        assert.deepEqual(await match({ name: 'A.', email: 'ANN@example.com' }), { outcome: 'updated', id: 'a' })
        assert.equal((await match({ name: 'A.', email: 'ann@example.com', uid: 'u-other' })).outcome, 'created')
        assert.deepEqual(await match({ name: 'Ben', phone: '2', email: 'ben@example.com' }), {
          outcome: 'updated',
          id: 'b',
        })
        assert.equal((await match({ name: 'Ben', phone: '3' })).outcome, 'created')
        assert.equal((await match({ name: 'Zoe', email: 'zoe@example.com' })).outcome, 'created', 'bob’s is not seen')
      }),
    )

    test(
      'change what the file has, keep the rest, add tags, and never take the uid of another',
      opened(async ({ store }) => {
        await store.createContact(
          contact('a', { name: 'Ann', company: 'Acme', note: 'kept', tags: ['x'], profile: { a: 1, b: 2 } }),
          max,
        )
        await store.createContact(contact('b', { uid: 'u-b' }), max)

        await store.importContacts(
          owner,
          [entry({ name: 'Ann', id: 'a', uid: 'u-b', company: 'New', tags: ['y', 'x'], profile: { b: 3 } })],
          start + 1,
          max,
        )

        assert.deepEqual(
          await store.readContact(owner, 'a'),
          contact('a', {
            name: 'Ann',
            company: 'New',
            note: 'kept',
            tags: ['x', 'y'],
            profile: { a: 1, b: 3 },
            updatedAt: start + 1,
          }),
        )
      }),
    )
  })

  describe('conversations of a contact', () => {
    const conversation = (id: string, changes = {}) => ({
      id,
      owner,
      title: null,
      createdAt: start,
      updatedAt: start,
      ...changes,
    })

    test(
      'are linked to a contact that their owner has, listed last used first, and have a summary',
      opened(async ({ store, reopen }) => {
        await store.createContact(contact('c'), max)
        await store.createContact(contact('only-bob', { owner: 'bob' }), max)
        await store.createConversation(conversation('one', { contactId: 'c' }))
        await store.createConversation(conversation('two'))
        await store.createConversation(conversation('three', { contactId: 'c' }))

        for (const contactId of ['only-bob', 'nobody']) {
          const refused = { code: 'contact_not_found' }
          await assert.rejects(store.createConversation(conversation('four', { contactId })), refused)
          await assert.rejects(store.updateConversation('two', { contactId, title: 'x' }, start), refused)
        }
        const linked = await store.updateConversation('two', { contactId: 'c', summary: 'Tea.' }, start + 2)
        await store.updateConversation('one', { title: 'One' }, start + 3)

        assert.deepEqual([linked?.contactId, linked?.summary, linked?.title], ['c', 'Tea.', null])
        for await (const from of beforeAndAfter(store, reopen)) {
          const { rows, total } = await from.listConversationsOfContact(owner, 'c', { limit: 2, offset: 0 })
          assert.deepEqual([ids(rows), total], [['one', 'two'], 3])
          assert.deepEqual(ids((await from.listConversationsOfContact(owner, 'c', { limit: 2, offset: 2 })).rows), [
            'three',
          ])
          assert.deepEqual((await from.listConversationsOfContact('bob', 'c', all)).rows, [])
        }
      }),
    )

    test(
      'keep their contact from being deleted until they are deleted or unlinked',
      opened(async ({ store }) => {
        await store.createContact(contact('c'), max)
        await store.createConversation(conversation('one', { contactId: 'c' }))
        await store.createConversation(conversation('two', { contactId: 'c' }))

        assert.equal(await store.deleteContact(owner, 'c'), 'has_conversations')
        await store.deleteConversation('one')
        assert.equal(await store.deleteContact(owner, 'c'), 'has_conversations')
        await store.updateConversation('two', { contactId: null }, start)

        assert.equal(await store.deleteContact(owner, 'c'), 'deleted')
        assert.equal((await store.readConversation('two'))?.contactId, null)
      }),
    )
  })
}
