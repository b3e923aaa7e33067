// Archives of conversations over real sockets: extracted by a model, reviewed, applied or
// discarded; and briefs of contacts.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import {
  type Answer,
  type Json,
  says,
  sharedTestServer,
  someone,
  startTestServer,
  type TestServer,
} from '../support/test-server.ts'

const server = sharedTestServer()

const call = (method: string, path: string, user: string, body?: unknown) =>
  server.call(method, path, { user, ...(body === undefined ? {} : { body }) })

function ok({ status, body, text }: Answer): Json {
  assert.equal(status, 200, text)
  return body
}

type Scene = { user: string; conversationId: string; messageId: string }

/** A conversation with one question, which is the user's name, and its answer. */
async function talk(more: Json = {}): Promise<Scene> {
  const user = someone()
  const { id } = ok(await call('POST', '/v1/conversations', user, more))
  await server.chatToEnd(user, { input: `about ${user}`, conversationId: id })
  const [asked] = ok(await call('GET', `/v1/conversations/${id}/messages`, user)) as unknown as Json[]
  return { user, conversationId: id, messageId: asked?.id }
}

const lists = { keyPoints: ['We met.'], decisions: [], actionItems: [], participants: ['Ann'] }

/** What the model answers about the conversation. */
function extracted({ messageId }: Scene, more: Json = {}): Json {
  const citations = [{ messageId }]
  return {
    ...lists,
    contacts: [{ ref: 'c1', name: 'Ann Lee', email: 'ann@example.com', company: 'Acme', citations }],
    events: [{ contactRef: 'c1', title: 'Lunch', eventDate: '2026-11-20', citations }],
    facts: [{ contactRef: 'c1', content: 'Likes green tea', citations }],
    todos: [{ contactRef: 'c1', content: 'Send the contract', dueAt: '2026-12-01T09:00:00Z', citations }],
    ...more,
  }
}

/** The repair round, if there is one, gets the same answer. */
async function modelSays({ user }: Scene, payload: Json, times = 1): Promise<void> {
  const answer = says(JSON.stringify({ summary: 'Lunch with Ann.', payload }))
  await server.provider.script(
    Array.from({ length: times }, () => answer),
    `about ${user}`,
  )
}

const archiveOnce = (scene: Scene, body: Json = {}) =>
  call('POST', `/v1/conversations/${scene.conversationId}/archive`, scene.user, body)

async function archived(scene: Scene, payload = extracted(scene)): Promise<Json> {
  await modelSays(scene, payload)
  return ok(await archiveOnce(scene))
}

const act = (scene: Scene, archive: Json, what: 'apply' | 'discard') =>
  call('POST', `/v1/conversation-archives/${archive.id}/${what}`, scene.user)

const contactsOf = async (user: string): Promise<Json[]> => ok(await call('GET', '/v1/contacts', user)).items

describe('archiving a conversation', () => {
  test('stores what the model extracted for review, with times and citations, and writes nothing else', async () => {
    const scene = await talk()
    const archive = await archived(scene)

    assert.deepEqual(
      [archive.status, archive.conversationId, archive.summary, archive.computed, archive.appliedAt],
      ['ready_for_review', scene.conversationId, 'Lunch with Ann.', false, null],
    )
    assert.equal(archive.createdAtMs, Date.parse(archive.createdAt))
    const citations = [{ messageId: scene.messageId }]
    const about = { contactRef: 'c1', contactId: null, recordId: null, citations }
    assert.deepEqual(archive.payload, {
      ...lists,
      contacts: [
        {
          ref: 'c1',
          contactId: null,
          name: 'Ann Lee',
          alias: null,
          email: 'ann@example.com',
          phone: null,
          company: 'Acme',
          position: null,
          citations,
        },
      ],
      events: [
        {
          ...about,
          title: 'Lunch',
          description: null,
          eventDate: '2026-11-20T00:00:00.000Z',
          eventDateMs: Date.UTC(2026, 10, 20),
        },
      ],
      facts: [{ ...about, content: 'Likes green tea' }],
      todos: [
        {
          ...about,
          content: 'Send the contract',
          dueAt: '2026-12-01T09:00:00.000Z',
          dueAtMs: Date.UTC(2026, 11, 1, 9),
        },
      ],
    })
    assert.deepEqual(ok(await call('GET', `/v1/conversation-archives/${archive.id}`, scene.user)), archive)
    assert.deepEqual(ok(await call('GET', `/v1/conversations/${scene.conversationId}/archive`, scene.user)), archive)
    assert.deepEqual(await contactsOf(scene.user), [])
  })

  test('again gives the same archive while nothing has changed, also at once, and asks the model once', async () => {
    const scene = await talk()
    await modelSays(scene, extracted(scene))
    const both = await Promise.all([archiveOnce(scene), archiveOnce(scene)])
    const [one, two] = [ok(both[0]), ok(both[1])]
    const asked = (await server.asked(`about ${scene.user}`)).length

    assert.deepEqual(two, one)
    assert.deepEqual(ok(await archiveOnce(scene)), one)
    assert.equal(asked, 2, 'the chat, and one extraction')
    assert.equal((await server.asked(`about ${scene.user}`)).length, asked)
  })

  test('gives a new archive if it is forced, if there are new messages, or if the last one was discarded', async () => {
    const scene = await talk()
    const first = await archived(scene)
    await modelSays(scene, extracted(scene))
    const forced = ok(await archiveOnce(scene, { options: { forceRefresh: true } }))
    ok(await act(scene, forced, 'discard'))
    const asked = (await server.asked(`about ${scene.user}`)).length
    const again = ok(await archiveOnce(scene))
    assert.equal((await server.asked(`about ${scene.user}`)).length, asked, 'the stored result is used')
    await server.chatToEnd(scene.user, { input: 'more', conversationId: scene.conversationId })
    const longer = await archived(scene)

    assert.equal(new Set([first, forced, again, longer].map(({ id }) => id)).size, 4)
    assert.equal(again.snapshotId, forced.snapshotId)
    assert.equal(ok(await call('GET', `/v1/conversations/${scene.conversationId}/archive`, scene.user)).id, longer.id)
  })

  test('is refused if the model cites a message that is not in the conversation', async () => {
    const scene = await talk()
    const other = await talk()
    for (const messageId of ['invented', other.messageId]) {
      await modelSays(scene, extracted({ ...scene, messageId }))
      await server.provider.script(
        [says(JSON.stringify({ summary: 'x', payload: extracted({ ...scene, messageId }) }))],
        'cannot be used as the final answer',
      )
      const answer = await archiveOnce(scene, { options: { forceRefresh: true } })
      assert.deepEqual([answer.status, answer.body.code], [502, 'output_validation_failed'], answer.text)
    }
    const none = await call('GET', `/v1/conversations/${scene.conversationId}/archive`, scene.user)
    assert.deepEqual([none.status, none.body.code], [404, 'conversation_archive_not_found'])
  })

  test('of a conversation that does not exist is 404, and a wrong body is 400 that names the field', async () => {
    const scene = await talk()
    const missing = await call('POST', '/v1/conversations/nothing/archive', scene.user, {})
    assert.deepEqual([missing.status, missing.body.code], [404, 'conversation_not_found'])
    const language = await archiveOnce(scene, { language: 'not a language' })
    assert.deepEqual(
      [language.status, language.body.code, language.body.details.field],
      [400, 'invalid_input', 'input.language'],
    )
    const options = await archiveOnce(scene, { options: { useCache: 'yes' } })
    assert.deepEqual([options.status, options.body.code], [400, 'invalid_request'])
  })
})

describe('applying an archive', () => {
  test('writes contacts and records with their source, and marks the conversation as archived', async () => {
    const scene = await talk()
    const archive = await archived(scene)
    const shown = async () =>
      ok(await call('GET', `/v1/conversations/${scene.conversationId}`, scene.user)).isArchived as boolean
    assert.equal(await shown(), false)

    const applied = ok(await act(scene, archive, 'apply'))

    const [contact, ...others] = await contactsOf(scene.user)
    assert.deepEqual(
      [contact?.name, contact?.email, contact?.company, others],
      ['Ann Lee', 'ann@example.com', 'Acme', []],
    )
    const { events, facts, todos } = ok(await call('GET', `/v1/contacts/${contact?.id}/context`, scene.user))
    assert.deepEqual(
      [events[0].title, events[0].eventDate, facts[0].content, todos[0].content, todos[0].dueAt, todos[0].status],
      [
        'Lunch',
        '2026-11-20T00:00:00.000Z',
        'Likes green tea',
        'Send the contract',
        '2026-12-01T09:00:00.000Z',
        'pending',
      ],
    )
    for (const record of [events[0], facts[0], todos[0]]) {
      assert.deepEqual(
        [record.sourceConversationId, record.sourceMessageIds],
        [scene.conversationId, [scene.messageId]],
      )
    }
    const { payload } = applied
    assert.deepEqual([applied.status, applied.id, typeof applied.appliedAt], ['applied', archive.id, 'string'])
    assert.deepEqual(
      [payload.contacts[0].contactId, payload.events[0].recordId, payload.facts[0].recordId, payload.todos[0].recordId],
      [contact?.id, events[0].id, facts[0].id, todos[0].id],
    )
    assert.equal(await shown(), true)
  })

  test('twice, and with two clicks at once, writes once and gives the same answer', async () => {
    const scene = await talk()
    const archive = await archived(scene)

    const clicks = await Promise.all(Array.from({ length: 5 }, () => act(scene, archive, 'apply')))
    const later = ok(await act(scene, archive, 'apply'))

    for (const click of clicks) assert.deepEqual(ok(click), later)
    const [contact, ...others] = await contactsOf(scene.user)
    assert.deepEqual(others, [])
    for (const kind of ['events', 'facts', 'todos']) {
      assert.equal(ok(await call('GET', `/v1/contacts/${contact?.id}/${kind}`, scene.user)).total, 1, kind)
    }
    assert.deepEqual(ok(await archiveOnce(scene)), later, 'archiving it again has nothing new to review')
  })

  test('updates the contact of the same email, and adds entries that name no contact to the contact of the conversation', async () => {
    const user = someone()
    const make = async (body: Json): Promise<string> => (await call('POST', '/v1/contacts', user, body)).body.id
    const annId = await make({ name: 'Ann', email: 'ANN@example.com', note: 'old friend' })
    const bobId = await make({ name: 'Bob' })
    const { id } = ok(await call('POST', '/v1/conversations', user, { contactId: bobId }))
    await server.chatToEnd(user, { input: `about ${user}`, conversationId: id })
    const [asked] = ok(await call('GET', `/v1/conversations/${id}/messages`, user)) as unknown as Json[]
    const scene = { user, conversationId: id as string, messageId: asked?.id as string }
    const citations = [{ messageId: scene.messageId }]
    const facts = [
      { contactRef: 'c1', content: 'of Ann', citations },
      { content: 'of Bob', citations },
      { contactRef: 'c9', content: 'of nobody', citations },
    ]
    const archive = await archived(scene, extracted(scene, { facts, events: [], todos: [] }))

    const { payload } = ok(await act(scene, archive, 'apply'))

    assert.deepEqual(
      payload.facts.map((fact: Json) => [fact.contactId, fact.recordId === null]),
      [
        [annId, false],
        [bobId, false],
        [null, true],
      ],
    )
    const ann = ok(await call('GET', `/v1/contacts/${annId}`, user))
    assert.deepEqual(
      [ann.name, ann.company, ann.note, (await contactsOf(user)).length],
      ['Ann', 'Acme', 'old friend', 2],
    )
    assert.equal(ok(await call('GET', `/v1/contacts/${bobId}/facts`, user)).items[0].content, 'of Bob')
  })

  test('after it was discarded is 400, and so is discarding after applying; both may be repeated', async () => {
    const scene = await talk()
    const discarded = await archived(scene)
    const gone = ok(await act(scene, discarded, 'discard'))
    assert.deepEqual([gone.status, typeof gone.discardedAt], ['discarded', 'string'])
    assert.deepEqual(ok(await act(scene, discarded, 'discard')), gone)

    const refused = await act(scene, discarded, 'apply')
    assert.deepEqual(
      [refused.status, refused.body.code, refused.body.details.status],
      [400, 'archive_closed', 'discarded'],
    )
    assert.deepEqual(await contactsOf(scene.user), [])

    const applied = ok(await archiveOnce(scene))
    ok(await act(scene, applied, 'apply'))
    const late = await act(scene, applied, 'discard')
    assert.deepEqual([late.status, late.body.code, late.body.details.status], [400, 'archive_closed', 'applied'])
    const changed = await call('PATCH', `/v1/conversation-archives/${applied.id}`, scene.user, {
      payload: { facts: [] },
    })
    assert.deepEqual([changed.status, changed.body.code], [400, 'archive_closed'])
  })

  test('and discarding at the same time does one of them', async () => {
    const scene = await talk()
    const archive = await archived(scene)

    const answers = await Promise.all([act(scene, archive, 'apply'), act(scene, archive, 'discard')])

    const { status } = ok(await call('GET', `/v1/conversation-archives/${archive.id}`, scene.user))
    assert.deepEqual(
      answers.map((answer) => answer.status),
      status === 'applied' ? [200, 400] : [400, 200],
    )
    assert.equal((await contactsOf(scene.user)).length, status === 'applied' ? 1 : 0)
  })
})

describe('the reviewer', () => {
  const patch = (scene: Scene, archive: Json, payload: Json) =>
    call('PATCH', `/v1/conversation-archives/${archive.id}`, scene.user, { payload })

  test('drops and corrects entries by sending back the lists, and only what is left is written', async () => {
    const scene = await talk()
    const archive = await archived(scene)
    const { todos } = archive.payload as Json
    const sent = { events: [], todos: [{ ...todos[0], content: ' Send two contracts ', dueAt: null }] }

    const changed = ok(await patch(scene, archive, sent))
    ok(await act(scene, archive, 'apply'))

    assert.deepEqual([changed.payload.events, changed.payload.facts.length], [[], 1])
    assert.equal(changed.payload.todos[0].content, 'Send two contracts')
    const [contact] = await contactsOf(scene.user)
    const known = ok(await call('GET', `/v1/contacts/${contact?.id}/context`, scene.user))
    assert.deepEqual([known.events, known.facts.length], [[], 1])
    assert.deepEqual([known.todos[0].content, known.todos[0].dueAt], ['Send two contracts', null])
  })

  test('cannot add what no message states, or name what does not exist', async () => {
    const scene = await talk()
    const archive = await archived(scene)
    const other = await talk()
    const citations = [{ messageId: scene.messageId }]
    const [fact] = archive.payload.facts as Json[]
    const refused: [payload: Json, status: number, code: string][] = [
      [{}, 400, 'invalid_request'],
      [{ facts: [{ content: 'x', contactRef: 'c1' }] }, 400, 'invalid_request'],
      [{ facts: [{ ...fact, citations: [] }] }, 400, 'invalid_request'],
      [{ facts: [{ ...fact, content: ' ' }] }, 400, 'invalid_request'],
      [{ facts: [{ ...fact, citations: [{ messageId: scene.messageId, start: 1 }] }] }, 400, 'invalid_request'],
      [{ todos: [{ content: 'x', dueAt: 'tomorrow', citations }] }, 400, 'invalid_request'],
      [{ facts: Array.from({ length: 51 }, () => fact) }, 400, 'invalid_request'],
      [{ facts: [{ ...fact, citations: [{ messageId: other.messageId }] }] }, 400, 'archive_entry_invalid'],
      [{ facts: [{ ...fact, citations: [{ ...citations[0], start: 0, end: 9999 }] }] }, 400, 'archive_entry_invalid'],
      [{ facts: [{ ...fact, contactRef: 'c9' }] }, 400, 'archive_entry_invalid'],
      [{ contacts: [] }, 400, 'archive_entry_invalid'],
      [{ contacts: [...archive.payload.contacts, ...archive.payload.contacts] }, 400, 'archive_entry_invalid'],
      [{ facts: [{ ...fact, contactRef: null, contactId: 'nobody' }] }, 404, 'contact_not_found'],
    ]
    for (const [payload, status, code] of refused) {
      const answer = await patch(scene, archive, payload)
      assert.deepEqual([answer.status, answer.body.code], [status, code], `${JSON.stringify(payload)} ${answer.text}`)
    }
    assert.deepEqual(ok(await call('GET', `/v1/conversation-archives/${archive.id}`, scene.user)), archive)
  })

  test('may say whom an entry is about', async () => {
    const scene = await talk()
    const citations = [{ messageId: scene.messageId }]
    const lost = { content: 'Likes tea', citations }
    const archive = await archived(scene, extracted(scene, { contacts: [], events: [], todos: [], facts: [lost] }))
    const { id } = (await call('POST', '/v1/contacts', scene.user, { name: 'Bob' })).body

    ok(await patch(scene, archive, { facts: [{ ...archive.payload.facts[0], contactId: id }] }))
    ok(await act(scene, archive, 'apply'))

    assert.equal(ok(await call('GET', `/v1/contacts/${id}/facts`, scene.user)).items[0].content, 'Likes tea')
  })
})

test('an archive goes with its conversation; the records stay without their source', async () => {
  const scene = await talk()
  const archive = await archived(scene)
  ok(await act(scene, archive, 'apply'))
  const [contact] = await contactsOf(scene.user)

  assert.equal((await call('DELETE', `/v1/conversations/${scene.conversationId}`, scene.user)).status, 204)

  assert.equal((await call('GET', `/v1/conversation-archives/${archive.id}`, scene.user)).status, 404)
  const { facts } = ok(await call('GET', `/v1/contacts/${contact?.id}/context`, scene.user))
  assert.deepEqual([facts.length, facts[0].sourceConversationId], [1, null])
})

describe('the brief of a contact', () => {
  async function withContact(): Promise<{ user: string; path: string; id: string }> {
    const user = someone()
    const { id } = (await call('POST', '/v1/contacts', user, { name: `about ${user}` })).body
    await call('POST', `/v1/contacts/${id}/facts`, user, { content: 'likes tea' })
    return { user, id, path: `/v1/contacts/${id}/brief` }
  }

  async function modelWrites(user: string, contactId: string, content: string): Promise<void> {
    const [fact] = ok(await call('GET', `/v1/contacts/${contactId}/facts`, user)).items as Json[]
    const citations = [{ source: fact?.id, type: 'fact', reference: 'likes tea' }]
    await server.provider.script([says(JSON.stringify({ content, citations }))], `about ${user}`)
  }

  test('is null before there is one, then the newest one, with its citations and its snapshot', async () => {
    const { user, id, path } = await withContact()
    const none = await call('GET', path, user)
    assert.deepEqual([none.status, none.text], [200, 'null'])
    const other = (await call('POST', '/v1/contacts', user, { name: 'Other' })).body
    await modelWrites(user, id, '## Background')

    const made = ok(await call('POST', path, user, {}))

    assert.deepEqual(
      [made.content, made.contactId, made.cached, made.computed, made.citations[0].type],
      ['## Background', id, false, false, 'fact'],
    )
    assert.equal(made.generatedAtMs, Date.parse(made.generatedAt))
    assert.deepEqual(ok(await call('GET', path, user)), { ...made, cached: true })
    assert.deepEqual(ok(await call('POST', path, user)), { ...made, cached: true }, 'nothing has changed')
    assert.equal((await call('GET', `/v1/contacts/${other.id}/brief`, user)).text, 'null', 'that of another contact')
    const snapshot = ok(await call('GET', `/v1/agent/snapshots/${made.snapshotId}`, user))
    assert.equal(snapshot.runId, made.runId)
  })

  test('is generated again by a refresh, and when a record was added', async () => {
    const { user, id, path } = await withContact()
    await modelWrites(user, id, 'one')
    const one = ok(await call('POST', path, user, {}))
    await modelWrites(user, id, 'two')
    const two = ok(await call('POST', `${path}/refresh`, user, {}))
    await call('POST', `/v1/contacts/${id}/facts`, user, { content: 'likes coffee' })
    await modelWrites(user, id, 'three')
    const three = ok(await call('POST', path, user, {}))

    assert.deepEqual(
      [one, two, three].map(({ content, cached }) => [content, cached]),
      [
        ['one', false],
        ['two', false],
        ['three', false],
      ],
    )
    assert.equal(new Set([one, two, three].map(({ snapshotId }) => snapshotId)).size, 3)
    assert.equal(ok(await call('GET', path, user)).content, 'three')
  })

  test('that is not to be stored is only answered', async () => {
    const { user, id, path } = await withContact()
    await modelWrites(user, id, 'once')
    const once = ok(await call('POST', path, user, { options: { useCache: false } }))

    assert.deepEqual([once.content, once.snapshotId], ['once', null])
    assert.equal((await call('GET', path, user)).text, 'null')
  })
})

describe('with the demo model', () => {
  let demo: TestServer
  before(async () => {
    demo = await startTestServer({ POLYLOG_MODEL: 'demo/demo' }, server.provider)
  })
  after(() => demo.close())

  for (const [language, summary, brief] of [
    ['zh', /对话共 2 条消息.*并非由语言模型撰写/, /## 关系背景/],
    ['en', /The conversation has 2 messages.*not written by a language model/, /## Background/],
  ] as const) {
    test(`an archive and a brief are computed, marked as such, and applied: ${language}`, async () => {
      const user = someone()
      const ask = async (method: string, path: string, body?: Json) =>
        await demo.call(method, path, { user, ...(body === undefined ? {} : { body }) })
      const contact = (await ask('POST', '/v1/contacts', { name: '张伟', company: 'Acme' })).body
      const { id } = ok(await ask('POST', '/v1/conversations', { contactId: contact.id }))
      await demo.chatToEnd(user, { input: 'hello', conversationId: id })

      const archive = ok(await ask('POST', `/v1/conversations/${id}/archive`, { language }))
      const applied = ok(await ask('POST', `/v1/conversation-archives/${archive.id}/apply`, {}))
      const made = ok(await ask('POST', `/v1/contacts/${contact.id}/brief`, { language }))

      assert.match(archive.summary, summary)
      assert.deepEqual([archive.computed, archive.payload.facts, archive.payload.participants], [true, [], ['张伟']])
      assert.equal(applied.status, 'applied')
      assert.match(made.content, brief)
      assert.deepEqual([made.computed, made.citations[0].type], [true, 'conversation'])
      assert.equal(ok(await ask('GET', `/v1/conversations/${id}`)).isArchived, true)
    })
  }
})
