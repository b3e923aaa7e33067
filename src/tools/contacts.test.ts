// The contact tools on a real store: whose contacts they see, how much they return, and the
// sentence that a person confirms before a fact is stored.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { contact } from '../../test/contracts/store-contract-contacts.ts'
import { openRig } from '../../test/support/run-rig.ts'
import { toolContext } from '../../test/support/tool-context.ts'
import type { JsonValue } from '../journal/event.ts'
import { createContactTools } from './contacts.ts'
import { createToolRegistry } from './tool-registry.ts'
import type { ToolContext } from './tool.ts'

const owner = 'ana'

async function setUp(context: TestContext) {
  const { store, close } = await openRig()
  context.after(close)
  const tools = createContactTools(store)
  const registry = createToolRegistry(tools.map((tool) => ({ source: 'built-in', tool })))
  const run = async (name: string, input: JsonValue, parts: Partial<ToolContext> = {}) => {
    const tool = registry.get(name)!
    assert.equal(registry.check(tool, input), null)
    return await tool.run(input, toolContext(parts))
  }
  const create = (id: string, fields = {}) => store.createContact(contact(id, { owner, ...fields }), 100)
  const facts = async () =>
    (await store.listContactRecords('fact', { owner, contactId: 'c' }, { limit: 9, offset: 0 })).rows
  return { store, registry, run, create, facts }
}

type Found = { total: number; contacts: { id: string; name: string }[] }

test('search_contacts finds the contacts of the run’s user only, and as many as were asked for', async (context) => {
  const { run, create, store } = await setUp(context)
  await create('c', { name: '张伟', company: 'Acme', tags: ['friend'] })
  await create('d', { name: 'Ann', company: 'Acme' })
  await store.createContact(contact('x', { owner: 'bob', name: 'Acme person' }), 100)

  const found = (await run('search_contacts', { query: 'acme' })).output as Found
  const tagged = (await run('search_contacts', { query: '', tag: 'friend' })).output as Found
  const one = await run('search_contacts', { query: 'acme', limit: 1 })
  const theirs = (await run('search_contacts', { query: '张伟' }, { owner: 'bob' })).output as Found

  assert.deepEqual([found.total, found.contacts.map(({ id }) => id)], [2, ['d', 'c']])
  assert.deepEqual(
    tagged.contacts.map(({ name }) => name),
    ['张伟'],
  )
  assert.equal((one.output as Found).contacts.length, 1)
  assert.equal(one.summary, '2 contacts found for “acme”.')
  assert.deepEqual(theirs, { total: 0, contacts: [] })
})

test('get_contact returns a contact with its newest records, each text bounded, and nothing of others', async (context) => {
  const { run, create, store, registry } = await setUp(context)
  await create('c', { note: 'n'.repeat(10_000), profile: { text: 'p'.repeat(15_000) } })
  const record = (id: string) => ({
    id,
    owner,
    contactId: 'c',
    sourceConversationId: null,
    sourceMessageIds: [],
    createdAt: 1,
    updatedAt: 1,
  })
  for (let at = 1; at <= 12; at++) {
    const content = `${at} ${'x'.repeat(9_000)}`
    await store.addContactRecord('fact', { ...record(`f${at}`), content, metadata: {} })
    await store.addContactRecord('todo', { ...record(`t${at}`), content, status: 'pending', dueAt: at })
    await store.addContactRecord('event', {
      ...record(`e${at}`),
      title: `event ${at}`,
      description: content,
      details: {},
      eventDate: at,
    })
  }
  await store.updateContactRecord('todo', { owner, contactId: 'c', id: 't1' }, { status: 'completed' }, 2)

  const { ok, output } = await run('get_contact', { contactId: 'c' })
  const foreign = await run('get_contact', { contactId: 'c' }, { owner: 'bob' })

  assert.equal(ok, true)
  const { facts, openTodos, events, totals, note } = output as Record<string, { id: string; content: string }[]>
  const ids = (rows: { id: string }[] | undefined) => (rows ?? []).map(({ id }) => id)
  assert.deepEqual(
    [ids(facts)[0], ids(facts).length, ids(openTodos)[0], ids(openTodos).length, ids(events)[0], ids(events).length],
    ['f12', 10, 't2', 10, 'e12', 10],
  )
  assert.deepEqual(totals, { facts: 12, openTodos: 11, events: 12 })
  assert.equal(note?.length, 1000)
  assert.ok(JSON.stringify(output).length < registry.get('get_contact')!.outputCharsMax)
  assert.deepEqual(
    [foreign.ok, foreign.summary],
    [false, 'There is no contact "c". Search for it with search_contacts.'],
  )
})

test('add_contact_fact stores a fact once per call, with the conversation that it came from', async (context) => {
  const { run, create, store, facts } = await setUp(context)
  await create('c', { name: '张伟' })
  await store.createConversation({ id: 'conv', owner, title: null, createdAt: 1, updatedAt: 1 })
  const input = { contactId: 'c', contactName: '张伟', content: ' likes tea ' }

  const first = await run('add_contact_fact', input, { conversationId: 'conv' })
  await run('add_contact_fact', input, { conversationId: 'conv' })
  assert.deepEqual([first.ok, (await facts()).map(({ content }) => content)], [true, ['likes tea']])
  assert.equal((await facts())[0]?.sourceConversationId, 'conv')

  await run('add_contact_fact', input, { idempotencyKey: 'key_2' })
  assert.equal((await facts()).length, 2)
})

test('add_contact_fact stores nothing if the name that a person read is not that of the contact', async (context) => {
  const { run, create, facts } = await setUp(context)
  await create('c', { name: '张伟' })

  const wrong = await run('add_contact_fact', { contactId: 'c', contactName: 'Ann', content: 'x' })
  const foreign = await run('add_contact_fact', { contactId: 'c', contactName: '张伟', content: 'x' }, { owner: 'bob' })
  const blank = await run('add_contact_fact', { contactId: 'c', contactName: '张伟', content: ' ' })

  assert.deepEqual([wrong.ok, foreign.ok, blank.ok], [false, false, false])
  assert.match(wrong.summary, /has another name: 张伟/)
  assert.deepEqual(await facts(), [])
})

test('add_contact_fact says in one line which contact it is about and what will be stored', async (context) => {
  const { registry } = await setUp(context)

  assert.equal(
    registry.get('add_contact_fact')?.describe({ contactId: 'c', contactName: '张伟', content: 'likes\ntea' }),
    'Add a fact about “张伟” (contact c): “likes tea”',
  )
})
