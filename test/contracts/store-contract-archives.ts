// Contract: archives of conversations, and what applying one writes.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  type ArchivedContact,
  type ArchivedFact,
  type ArchivePayload,
  type ArchiveRow,
  archivesKept,
  type ArchiveStore,
} from '../../src/stores/archive-store.ts'
import type { ContactRecordKind, ContactStore } from '../../src/stores/contact-store.ts'
import type { ConversationStore } from '../../src/stores/conversation-store.ts'
import type { RunStore } from '../../src/stores/run-store.ts'
import type { OpenStore } from './open-store.ts'
import { contact } from './store-contract-contacts.ts'
import { beforeAndAfter, claimNow, endRun, inConversation, message, owner, start, withStore } from './store-fixtures.ts'

type Opened = ArchiveStore & ContactStore & ConversationStore & RunStore

const citations = [{ messageId: 'm1' }]

const someone = (ref: string, changes: Partial<ArchivedContact> = {}): ArchivedContact => ({
  ref,
  contactId: null,
  name: `Name of ${ref}`,
  alias: null,
  email: null,
  phone: null,
  company: null,
  position: null,
  citations,
  ...changes,
})
const about = { contactRef: 'c1', contactId: null, recordId: null, citations }
const fact = (content: string, changes: Partial<ArchivedFact> = {}): ArchivedFact => ({ ...about, content, ...changes })

function payload(changes: Partial<ArchivePayload> = {}): ArchivePayload {
  return {
    contacts: [someone('c1')],
    events: [{ ...about, title: 'Lunch', description: 'in Berlin', eventDate: start }],
    facts: [fact('likes tea')],
    todos: [{ ...about, content: 'call', dueAt: start + 1 }],
    keyPoints: ['point'],
    decisions: [],
    actionItems: [],
    participants: ['Ann'],
    ...changes,
  }
}

export function archive(id: string, changes: Partial<ArchiveRow> = {}): ArchiveRow {
  return {
    id,
    owner,
    conversationId: 'k',
    runId: `run of ${id}`,
    snapshotId: null,
    status: 'ready_for_review',
    revision: 0,
    summary: '关于午餐',
    computed: false,
    payload: payload(),
    createdAt: start,
    updatedAt: start,
    appliedAt: null,
    discardedAt: null,
    ...changes,
  }
}

export async function conversation(store: RunStore, id = 'k', messages = ['m1']): Promise<void> {
  const rows = messages.map((name) => message(name, id, { content: 'hello' }))
  const { run } = await store.accept(
    inConversation(`r-${id}`, id, 'absent', { name: `name-${id}`, messages: rows, claim: claimNow }),
  )
  await endRun(store, run, 1)
}

/** As the service does it: every record gets an id. */
export async function apply(
  store: ArchiveStore,
  row: ArchiveRow,
  at = start + 5,
  contactsMax = 10,
): Promise<ArchiveRow | undefined> {
  const named = <Entry extends object>(list: Entry[], kind: string) =>
    list.map((entry, index) => ({ ...entry, recordId: `${row.id}-${kind}${index}` }))
  const { events, facts, todos, contacts } = row.payload
  return await store.applyArchive({
    id: row.id,
    revision: row.revision,
    payload: {
      ...row.payload,
      events: named(events, 'event'),
      facts: named(facts, 'fact'),
      todos: named(todos, 'todo'),
    },
    newContactIds: contacts.map((_entry, index) => `${row.id}-contact${index}`),
    at,
    contactsMax,
  })
}

export function archiveContract(open: OpenStore<Opened>): void {
  const opened = withStore(open)
  const page = { limit: 100, offset: 0 }
  const contacts = async (store: ContactStore) => (await store.listContacts(owner, page)).rows.map(({ id }) => id)
  const records = async (store: ContactStore, kind: ContactRecordKind, contactId: string) =>
    (await store.listContactRecords(kind, { owner, contactId }, page)).rows

  describe('an archive', () => {
    test(
      'is read as it was written, by its id and as the newest one of its conversation',
      opened(async ({ store, reopen }) => {
        await conversation(store)
        const old = archive('old')
        const row = archive('a', { snapshotId: 's', computed: true })
        await store.createArchive(old)
        assert.deepEqual(await store.createArchive(row), row)

        for await (const from of beforeAndAfter(store, reopen)) {
          assert.deepEqual(await from.readArchive('a'), row)
          assert.deepEqual(await from.newestArchive('k'), row)
          assert.equal(await from.readArchive('nothing'), undefined)
          assert.equal(await from.newestArchive('nothing'), undefined)
        }
      }),
    )

    test(
      'is stored once for one run, also if two are stored at once, until it is discarded',
      opened(async ({ store }) => {
        await conversation(store)
        const write = (id: string) => store.createArchive(archive(id, { runId: 'r' }))
        const both = await Promise.all([write('a'), write('b')])
        assert.deepEqual(
          both.map(({ id }) => id),
          ['a', 'a'],
        )

        await store.discardArchive('a', start)
        assert.equal((await write('c')).id, 'c')
        await apply(store, archive('c'))
        assert.equal((await write('d')).id, 'c', 'what was applied is not extracted again')
      }),
    )

    test(
      'is refused if it cites nothing, a message of another conversation, or text that a message does not have',
      opened(async ({ store }) => {
        await conversation(store)
        await conversation(store, 'other', ['m2'])
        const refused: [cited: object[], path: string][] = [
          [[], 'payload.facts.1'],
          [[{ messageId: 'm1' }, { messageId: 'm2' }], 'payload.facts.1.citations.1'],
          [[{ messageId: 'nothing' }], 'payload.facts.1.citations.0'],
          [[{ messageId: 'm1', start: 0, end: 6 }], 'payload.facts.1.citations.0'],
          [[{ messageId: 'm1', start: 3, end: 2 }], 'payload.facts.1.citations.0'],
        ]
        for (const [cited, path] of refused) {
          const facts = [fact('fine'), fact('x', { citations: cited as ArchivedFact['citations'] })]
          await assert.rejects(store.createArchive(archive('a', { payload: payload({ facts }) })), (error: Error) => {
            const { code, details } = error as Error & { code: string; details: { field: string } }
            assert.deepEqual([code, details.field], ['archive_entry_invalid', path])
            return true
          })
        }
        assert.equal(await store.readArchive('a'), undefined)
        const whole = [{ messageId: 'm1', start: 0, end: 5 }]
        await store.createArchive(archive('a', { payload: payload({ facts: [fact('x', { citations: whole })] }) }))
        const bad = payload({ todos: [{ ...about, content: 'x', dueAt: null, citations: [{ messageId: 'm2' }] }] })
        const change = { id: 'a', revision: 0, payload: bad, at: start }
        await assert.rejects(store.changeArchive(change), { code: 'archive_entry_invalid' })
      }),
    )

    test(
      'goes with its conversation, and is not stored after that or for another owner',
      opened(async ({ store }) => {
        await conversation(store)
        await store.createArchive(archive('a'))
        await assert.rejects(store.createArchive(archive('b', { owner: 'bob' })), { code: 'conversation_not_found' })

        await store.deleteConversation('k')

        assert.equal(await store.readArchive('a'), undefined)
        await assert.rejects(store.createArchive(archive('c')), { code: 'conversation_not_found' })
      }),
    )

    test(
      'pushes out the oldest one of its conversation if there are too many',
      opened(async ({ store }) => {
        await conversation(store)
        for (let index = 0; index <= archivesKept; index++) await store.createArchive(archive(`a${index}`))

        assert.equal(await store.readArchive('a0'), undefined)
        assert.ok((await store.readArchive('a1')) !== undefined)
      }),
    )

    test(
      'is changed only at the revision that was read and while it waits for its review',
      opened(async ({ store }) => {
        await conversation(store)
        await store.createArchive(archive('a'))
        const change = (revision: number, content: string) =>
          store.changeArchive({ id: 'a', revision, payload: payload({ facts: [fact(content)] }), at: start + 1 })

        const [first, second] = await Promise.all([change(0, 'first'), change(0, 'second')])
        assert.deepEqual([first?.revision, first?.payload.facts[0]?.content, first?.updatedAt], [1, 'first', start + 1])
        assert.deepEqual(second, first)
        const named = payload({ facts: [fact('x', { contactRef: null, contactId: 'nobody' })] })
        const unknown = store.changeArchive({ id: 'a', revision: 1, payload: named, at: start })
        await assert.rejects(unknown, { code: 'contact_not_found' })
        await store.discardArchive('a', start + 2)
        assert.deepEqual((await change(1, 'late'))?.payload, first?.payload)
        const none = { id: 'nothing', revision: 0, payload: payload(), at: start }
        assert.equal(await store.changeArchive(none), undefined)
      }),
    )

    test(
      'that is discarded writes nothing, and is not applied any more',
      opened(async ({ store }) => {
        await conversation(store)
        const row = await store.createArchive(archive('a'))
        const discarded = await store.discardArchive('a', start + 1)
        assert.deepEqual(discarded, { ...row, status: 'discarded', updatedAt: start + 1, discardedAt: start + 1 })

        assert.deepEqual(await apply(store, row), discarded)
        assert.deepEqual(await store.discardArchive('a', start + 2), discarded)
        assert.deepEqual(await contacts(store), [])
        assert.equal((await store.readConversation('k'))?.archivedAt, null)
        assert.equal(await store.discardArchive('nothing', start), undefined)
      }),
    )
  })

  describe('applying an archive', () => {
    test(
      'creates its contacts and records with their source, and marks the archive and the conversation',
      opened(async ({ store, reopen }) => {
        await conversation(store)
        const row = await store.createArchive(archive('a'))
        const applied = await apply(store, row)

        for await (const from of beforeAndAfter(store, reopen)) {
          assert.deepEqual(await from.readArchive('a'), applied)
          assert.deepEqual([applied?.status, applied?.appliedAt], ['applied', start + 5])
          assert.deepEqual(applied?.payload.contacts[0]?.contactId, 'a-contact0')
          assert.deepEqual(
            [applied?.payload.facts[0]?.contactId, applied?.payload.facts[0]?.recordId],
            ['a-contact0', 'a-fact0'],
          )
          const common = {
            owner,
            contactId: 'a-contact0',
            sourceConversationId: 'k',
            sourceMessageIds: ['m1'],
            createdAt: start + 5,
            updatedAt: start + 5,
          }
          const id = 'a-contact0'
          const made = contact(id, { name: 'Name of c1', createdAt: start + 5, updatedAt: start + 5 })
          assert.deepEqual(await from.readContact(owner, id), made)
          assert.deepEqual(await records(from, 'fact', id), [
            { ...common, id: 'a-fact0', content: 'likes tea', metadata: {} },
          ])
          assert.deepEqual(await records(from, 'todo', id), [
            { ...common, id: 'a-todo0', content: 'call', status: 'pending', dueAt: start + 1 },
          ])
          assert.deepEqual(await records(from, 'event', id), [
            { ...common, id: 'a-event0', title: 'Lunch', description: 'in Berlin', details: {}, eventDate: start },
          ])
          assert.equal((await from.readConversation('k'))?.archivedAt, start + 5)
        }
      }),
    )

    test(
      'again, or at the same time, writes nothing more; neither does discarding it',
      opened(async ({ store }) => {
        await conversation(store)
        const row = await store.createArchive(archive('a'))
        const [first, second] = await Promise.all([apply(store, row), apply(store, row, start + 6)])

        assert.deepEqual(second, first)
        assert.deepEqual(await apply(store, row, start + 7), first)
        assert.deepEqual(await store.discardArchive('a', start + 8), first)
        assert.deepEqual(await contacts(store), ['a-contact0'])
        assert.equal((await records(store, 'fact', 'a-contact0')).length, 1)
      }),
    )

    test(
      'at a revision that is no longer the newest one writes nothing',
      opened(async ({ store }) => {
        await conversation(store)
        const row = await store.createArchive(archive('a'))
        const changed = await store.changeArchive({ id: 'a', revision: 0, payload: payload({ todos: [] }), at: start })

        assert.deepEqual(await apply(store, row), changed)
        assert.deepEqual(await contacts(store), [])
        assert.equal(await store.applyArchive({ ...archiveApply, id: 'nothing' }), undefined)
      }),
    )

    test(
      'updates the contact with the email, else with the name, and leaves its name and what the archive does not say',
      opened(async ({ store }) => {
        await conversation(store)
        await store.createContact(contact('ann', { name: 'Ann Lee', email: 'Ann@x.org', company: 'Old', note: 'n' }), 9)
        await store.createContact(contact('bob', { name: 'Bob' }), 9)
        await store.createContact(contact('eve', { name: 'Eve', email: 'eve@x.org' }), 9)
        const people = [
          someone('c1', { name: 'Ann', email: 'ann@x.org', company: 'New' }),
          someone('c2', { name: 'Bob', email: 'bob@x.org' }),
          someone('c3', { name: 'Eve', email: 'other@x.org' }),
          someone('c4', { name: 'Whoever', contactId: 'eve', position: 'CTO' }),
        ]
        const row = await store.createArchive(archive('a', { payload: payload({ contacts: people }) }))
        const applied = await apply(store, row)

        assert.deepEqual(
          applied?.payload.contacts.map(({ contactId }) => contactId),
          ['ann', 'bob', 'a-contact2', 'eve'],
        )
        const ann = await store.readContact(owner, 'ann')
        assert.deepEqual([ann?.name, ann?.company, ann?.note], ['Ann Lee', 'New', 'n'])
        assert.equal((await store.readContact(owner, 'bob'))?.email, 'bob@x.org')
        const eve = await store.readContact(owner, 'eve')
        assert.deepEqual([eve?.name, eve?.email, eve?.position], ['Eve', 'eve@x.org', 'CTO'])
        assert.equal((await records(store, 'fact', 'ann')).length, 1)
      }),
    )

    test(
      'adds records to the contact that an entry names, none for an entry about nobody, and no text twice',
      opened(async ({ store }) => {
        await conversation(store)
        await store.createContact(contact('c'), 9)
        const nobody = { contactRef: null, contactId: null }
        const named = { contactRef: null, contactId: 'c' }
        const facts = [fact('one', named), fact('lost', nobody), fact('one', named)]
        const entries = payload({ contacts: [], events: [], todos: [], facts })
        const applied = await apply(store, await store.createArchive(archive('a', { payload: entries })))
        const recordIds = (row: ArchiveRow | undefined) => row?.payload.facts.map(({ recordId }) => recordId)
        assert.deepEqual(recordIds(applied), ['a-fact0', null, 'a-fact0'])

        const more = payload({ ...entries, facts: [fact('one', named), fact('two', named)] })
        const again = await apply(store, await store.createArchive(archive('b', { payload: more })))

        assert.deepEqual(recordIds(again), ['a-fact0', 'b-fact1'])
        assert.deepEqual(
          (await records(store, 'fact', 'c')).map(({ id }) => id),
          ['b-fact1', 'a-fact0'],
        )
      }),
    )

    test(
      'writes nothing at all if one part of it cannot be written',
      opened(async ({ store }) => {
        await conversation(store)
        await store.createContact(contact('c'), 9)
        const people = [someone('c1'), someone('c2', { contactId: 'c' })]
        const row = await store.createArchive(archive('a', { payload: payload({ contacts: people }) }))
        await store.deleteContact(owner, 'c')
        await assert.rejects(apply(store, row), { code: 'contact_not_found' })
        assert.deepEqual(await contacts(store), [])

        const crowd = Array.from({ length: 11 }, (_value, index) => someone(`c${index + 1}`))
        const large = await store.createArchive(archive('b', { payload: payload({ contacts: crowd }) }))
        await assert.rejects(apply(store, large), { code: 'contacts_full' })
        assert.deepEqual(await contacts(store), [])
        assert.equal((await store.readArchive('b'))?.status, 'ready_for_review')
        assert.equal((await store.readConversation('k'))?.archivedAt, null)
        await store.createContact(contact('ann', { name: 'Ann' }), 9)
        const known = payload({ contacts: [someone('c1', { name: 'Ann' })] })
        const full = await apply(store, await store.createArchive(archive('d', { payload: known })), start, 0)
        assert.equal(full?.status, 'applied', 'a full address book refuses only new contacts')
      }),
    )
  })
}

const archiveApply = { revision: 0, payload: payload(), newContactIds: ['x'], at: start, contactsMax: 10 }
