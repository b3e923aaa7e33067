// /v1/contacts over real sockets: what a client may send, whose a contact is, lists, and
// deleting a contact with everything about it.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { defined } from '../../src/kit/defined.ts'
import { hangsAfter, type Json, runIdOf, someone, sharedTestServer } from '../support/test-server.ts'

// Not UTC, so that a time without a zone shows what it is taken for.
const server = sharedTestServer({ TZ: 'Asia/Shanghai' })

const call = (method: string, path: string, user: string, body?: unknown) =>
  server.call(method, `/v1/contacts${path}`, { user, ...(body === undefined ? {} : { body }) })

async function create(user: string, fields: Json = {}): Promise<Json> {
  const { status, body, text } = await call('POST', '', user, { name: 'Ann', ...fields })
  assert.equal(status, 201, text)
  return body
}

const names = ({ body }: { body: Json }) => (body.items as Json[]).map(({ name }) => name)

describe('a contact', () => {
  test('comes back with every field as it was sent, trimmed, with its times in both forms', async () => {
    const user = someone()
    const sent = {
      name: ' 张伟 ',
      alias: '小张',
      email: 'zw@example.com',
      phone: '+86 10 1234 5678',
      company: 'Acme',
      position: 'CTO',
      note: 'met in 2020\nin Berlin',
      profile: { birthday: '1990-05-17', languages: ['zh', 'en'] },
      tags: [' friend', 'friend', '', '同事'],
    }

    const made = await create(user, sent)
    const read = (await call('GET', `/${made.id}`, user)).body

    assert.deepEqual(read, made)
    const { id, createdAt, createdAtMs, updatedAt, updatedAtMs, ...fields } = made
    assert.deepEqual(fields, { ...sent, name: '张伟', tags: ['friend', '同事'], uid: null, userId: user })
    assert.match(id, /^[0-9A-Z]{26}$/)
    assert.deepEqual([Date.parse(createdAt), Date.parse(updatedAt)], [createdAtMs, updatedAtMs])
  })

  test('needs a name, which may come as displayName', async () => {
    const user = someone()

    assert.equal((await call('POST', '', user, { displayName: 'Bob' })).body.name, 'Bob')
    assert.equal((await call('POST', '', user, { name: 'Ann', displayName: 'Bob' })).body.name, 'Ann')
    const missing = await call('POST', '', user, { email: 'x@example.com' })
    assert.deepEqual(
      [missing.status, missing.body.code, missing.body.details.issues[0].path],
      [400, 'invalid_request', 'name'],
    )
  })

  test('may get its id from the client, per user; the same id again is 409, also at the same time', async () => {
    const [ann, ben] = [someone(), someone()]
    const id = 'contact_456'

    const tries = await Promise.all(Array.from({ length: 5 }, () => call('POST', '', ann, { id, name: 'Mine' })))
    const theirs = await create(ben, { id, name: 'Theirs' })

    assert.deepEqual(
      [201, 409].map((wanted) => tries.filter(({ status }) => status === wanted).length),
      [1, 4],
    )
    assert.equal(tries.find(({ status }) => status === 409)?.body.code, 'contact_exists')
    assert.deepEqual([theirs.id, theirs.name], [id, 'Theirs'])
    assert.equal((await call('GET', `/${id}`, ann)).body.name, 'Mine')
    await call('DELETE', `/${id}`, ann)
    assert.equal((await call('GET', `/${id}`, ben)).status, 200)
  })

  test('is changed field by field; null empties a field, absent fields stay', async () => {
    const user = someone()
    const { id } = await create(user, { company: 'Acme', note: 'x', tags: ['a', 'b'], profile: { a: 1 } })

    const changed = await call('PATCH', `/${id}`, user, { company: null, note: '  ', tags: ['c'], name: 'Anna' })

    const { company, note, tags, name, profile } = changed.body
    assert.deepEqual([changed.status, company, note, tags, name, profile], [200, null, null, ['c'], 'Anna', { a: 1 }])
    assert.deepEqual((await call('GET', `/${id}`, user)).body, changed.body)
  })

  test('has its birthday in one form, however the date was written', async () => {
    const user = someone()
    const { id } = await create(user)
    for (const [given, stored] of [
      ['1990-05-17', '1990-05-17'],
      ['--02-29', '--02-29'],
      ['--0229', '--02-29'],
      ['1990/5/17', '1990-05-17'],
      ['19900517', '1990-05-17'],
      ['1990-05-17T00:00:00Z', '1990-05-17'],
      [null, null],
      [' ', undefined],
    ]) {
      const profile = { likes: 'tea', birthday: given }
      const { status, body } = await call('PATCH', `/${id}`, user, { profile })
      assert.deepEqual([status, body.profile], [200, { likes: 'tea', ...defined({ birthday: stored }) }])
    }
  })

  test('of the wrong form is 400 and names the field; nothing is stored', async () => {
    const user = someone()
    const { id } = await create(user)
    const wrong: [field: string, value: unknown][] = [
      ['name', ''],
      ['name', '   '],
      ['name', null],
      ['name', 7],
      ['name', 'x'.repeat(201)],
      ['email', 'nobody'],
      ['email', `${'x'.repeat(320)}@example.com`],
      ['phone', '1'.repeat(101)],
      ['note', 'x'.repeat(10_001)],
      ['tags', 'friend'],
      ['tags', Array.from({ length: 51 }, (_, at) => `t${at}`)],
      ['tags', ['x'.repeat(101)]],
      ['profile', []],
      ['profile', { text: 'x'.repeat(16_000) }],
      ...['1990-13-01', '1990-02-30', '--02-30', '1990', 'May 17', 19900517, ['1990-05-17']].map(
        (birthday): [string, unknown] => ['profile', { birthday }],
      ),
    ]
    for (const [field, value] of wrong) {
      for (const answer of [
        await call('POST', '', user, { name: 'Ann', [field]: value }),
        await call('PATCH', `/${id}`, user, { [field]: value }),
      ]) {
        assert.deepEqual([answer.status, answer.body.code], [400, 'invalid_request'], `${field} ${answer.text}`)
        assert.match(answer.body.message, new RegExp(`"${field}`), answer.text)
      }
    }
    for (const badId of ['', ' ', 'a/b', 'a b', 'import', 'export', '..', 'x'.repeat(201), 7]) {
      assert.equal((await call('POST', '', user, { name: 'Ann', id: badId })).status, 400, String(badId))
    }
    assert.equal((await call('PATCH', `/${id}`, user, {})).status, 400)
    assert.equal((await call('GET', '', user)).body.total, 1)
  })

  test('that does not exist is 404, and the error for a request without a user says how to name one', async () => {
    const user = someone()
    const { id } = await create(user)

    for (const [method, path, body] of [
      ['GET', '/nobody', undefined],
      ['PATCH', '/nobody', { name: 'x' }],
      ['DELETE', '/nobody', undefined],
      ['GET', '/nobody/context', undefined],
      ['GET', '/nobody/facts', undefined],
      ['POST', '/nobody/facts', { content: 'x' }],
    ] as const) {
      const answer = await call(method, path, user, body)
      assert.deepEqual([answer.status, answer.body.code], [404, 'contact_not_found'], `${method} ${path}`)
    }
    const unnamed = await server.call('GET', `/v1/contacts/${id}`)
    assert.equal(unnamed.status, 404)
    assert.match(unnamed.body.message, /add \?userId=/)
  })
})

describe('a list of contacts', () => {
  test('comes in pages with the total, changed last first, and a Link to the next page', async () => {
    const user = someone()
    for (let at = 1; at <= 12; at++) await create(user, { name: `n${at}` })
    const { id } = (await call('GET', '?limit=1&page=12', user)).body.items[0]
    await call('PATCH', `/${id}`, user, { name: 'changed' })

    const first = await call('GET', '', user)
    const second = await call('GET', '?page=2', user)

    assert.deepEqual(names(first), ['changed', ...[12, 11, 10, 9, 8, 7, 6, 5, 4].map((at) => `n${at}`)])
    assert.deepEqual(names(second), ['n3', 'n2'])
    assert.deepEqual([first.body.total, second.body.total], [12, 12])
    assert.match(first.headers.get('link') ?? '', /page=2.*rel="next"/)
    assert.equal(second.headers.get('link'), null)
    assert.deepEqual((await call('GET', '?page=3', user)).body, { items: [], total: 12 })
  })

  test('is narrowed by words and by a tag', async () => {
    const user = someone()
    await create(user, { name: '张伟', company: 'Acme', tags: ['同事'] })
    await create(user, { name: 'Ann Lee', email: 'ann@acme.example', tags: ['friend'] })
    await create(user, { name: 'Bob', tags: ['friend', '同事'] })

    assert.deepEqual(names(await call('GET', '?search=ACME', user)), ['Ann Lee', '张伟'])
    assert.deepEqual(names(await call('GET', `?search=${encodeURIComponent('伟')}`, user)), ['张伟'])
    assert.deepEqual(names(await call('GET', '?search=lee%20acme', user)), ['Ann Lee'])
    assert.deepEqual(names(await call('GET', `?tag=${encodeURIComponent('同事')}`, user)), ['Bob', '张伟'])
    const both = await call('GET', '?tag=friend&search=ann', user)
    assert.deepEqual([names(both), both.body.total], [['Ann Lee'], 1])
    assert.deepEqual((await call('GET', '?search=zzz', user)).body, { items: [], total: 0 })
  })

  test('with invalid bounds is 400', async () => {
    const user = someone()
    for (const query of ['page=0', 'page=x', 'page=1.5', 'limit=0', 'limit=101', `search=${'x'.repeat(201)}`]) {
      assert.equal((await call('GET', `?${query}`, user)).status, 400, query)
    }
  })

  test('of the largest contacts comes whole: no page leaves a gap', async () => {
    const user = someone()
    const largest = {
      alias: 'a'.repeat(200),
      email: `${'e'.repeat(310)}@x.example`,
      phone: '1'.repeat(100),
      company: 'c'.repeat(200),
      position: 'p'.repeat(200),
      note: 'n'.repeat(10_000),
      tags: Array.from({ length: 50 }, (_, at) => `${at}`.padEnd(100, 't')),
      profile: { text: 'x'.repeat(15_980) },
    }
    for (let at = 0; at < 100; at++) await create(user, { ...largest, name: `${at}`.padEnd(200, 'x') })

    const page = await call('GET', '?limit=100', user)

    assert.deepEqual([page.body.items.length, page.body.total], [100, 100])
  })
})

describe('facts, to-dos and events of a contact', () => {
  const kinds = [
    ['facts', { content: 'likes tea', metadata: { sure: true } }, { content: 'likes coffee' }],
    ['todos', { content: 'call back', dueAt: '2026-03-01T09:00:00.000Z' }, { status: 'completed' }],
    [
      'events',
      { title: 'Lunch', description: 'at noon', details: { at: 'Berlin' }, eventDate: '2026-02-09' },
      { title: 'Dinner' },
    ],
  ] as const

  for (const [path, fields, change] of kinds) {
    test(`${path} are added, listed, changed and removed`, async () => {
      const user = someone()
      const { id } = await create(user)
      await server.chatToEnd(user, { input: 'hi', conversationId: 'conv_123' })

      const made = await call('POST', `/${id}/${path}`, user, {
        ...fields,
        sourceConversationId: 'conv_123',
        sourceMessageIds: ['m1'],
      })
      const other = await call('POST', `/${id}/${path}`, user, fields)
      const changed = await call('PATCH', `/${id}/${path}/${made.body.id}`, user, change)
      const listed = await call('GET', `/${id}/${path}?limit=1&page=2`, user)

      assert.equal(made.status, 201, made.text)
      assert.deepEqual(
        [made.body.contactId, made.body.sourceConversationId, made.body.sourceMessageIds],
        [id, 'conv_123', ['m1']],
      )
      assert.deepEqual([other.body.sourceConversationId, other.body.sourceMessageIds], [null, []])
      const { updatedAt, updatedAtMs, ...rest } = changed.body
      assert.deepEqual({ ...made.body, ...change, updatedAt, updatedAtMs }, { ...rest, updatedAt, updatedAtMs })
      assert.deepEqual(listed.body, { items: [changed.body], total: 2 })
      assert.equal((await call('DELETE', `/${id}/${path}/${made.body.id}`, user)).status, 204)
      const again = await call('DELETE', `/${id}/${path}/${made.body.id}`, user)
      assert.deepEqual([again.status, again.body.code], [404, 'contact_record_not_found'])
      assert.equal((await call('GET', `/${id}/${path}`, user)).body.total, 1)
    })
  }

  test('have times in both forms, from ISO text with or without a zone, a date, or milliseconds', async () => {
    const user = someone()
    const { id } = await create(user)
    const dueAt = async (value: unknown) => {
      const { body } = await call('POST', `/${id}/todos`, user, { content: 'x', dueAt: value })
      return [body.dueAt, body.dueAtMs]
    }
    const nine = ['2026-03-01T09:00:00.000Z', 1_772_355_600_000]

    assert.deepEqual(await dueAt('2026-03-01T10:00:00+01:00'), nine)
    assert.deepEqual(await dueAt('2026-03-01T09:00'), nine)
    assert.deepEqual(await dueAt(1_772_355_600_000), nine)
    assert.deepEqual(await dueAt('2026-03-01'), ['2026-03-01T00:00:00.000Z', 1_772_323_200_000])
    assert.deepEqual(await dueAt(null), [null, null])
  })

  test('of the wrong form are 400; a source conversation of another user is 404', async () => {
    const [user, other] = [someone(), someone()]
    const { id } = await create(user)
    const theirs = (await server.call('POST', '/v1/conversations', { user: other })).body.id
    for (const [path, body] of [
      ['facts', {}],
      ['facts', { content: ' ' }],
      ['facts', { content: 'x'.repeat(10_001) }],
      ['facts', { content: 'x', metadata: { text: 'x'.repeat(16_000) } }],
      ['facts', { content: 'x', sourceMessageIds: Array(51).fill('m') }],
      ['todos', { content: 'x', status: 'done' }],
      ['todos', { content: 'x', dueAt: 'tomorrow' }],
      ['todos', { content: 'x', dueAt: '2026-99-99' }],
      ['todos', { content: 'x', dueAt: 9e15 }],
      ['events', { description: 'x' }],
      ['events', { title: 'x', eventDate: true }],
    ] as const) {
      const answer = await call('POST', `/${id}/${path}`, user, body)
      assert.deepEqual([answer.status, answer.body.code], [400, 'invalid_request'], JSON.stringify(body).slice(0, 80))
    }
    for (const sourceConversationId of [theirs, 'unknown']) {
      const answer = await call('POST', `/${id}/facts`, user, { content: 'x', sourceConversationId })
      assert.deepEqual([answer.status, answer.body.code], [404, 'conversation_not_found'])
    }
    assert.equal((await call('GET', `/${id}/todos?status=done`, user)).status, 400)
    assert.equal((await call('GET', `/${id}/facts`, user)).body.total, 0)
  })

  test('belong to one contact: under another contact their id is unknown', async () => {
    const user = someone()
    const [ann, ben] = [await create(user), await create(user)]
    const fact = (await call('POST', `/${ann.id}/facts`, user, { content: 'x' })).body

    for (const [method, body] of [
      ['PATCH', { content: 'y' }],
      ['DELETE', undefined],
    ] as const) {
      const answer = await call(method, `/${ben.id}/facts/${fact.id}`, user, body)
      assert.deepEqual([answer.status, answer.body.code], [404, 'contact_record_not_found'])
    }
    assert.equal((await call('GET', `/${ann.id}/facts`, user)).body.items[0].content, 'x')
  })

  test('make up the context: newest events and facts, open to-dos, and the same under their older names', async () => {
    const user = someone()
    const { id } = await create(user)
    for (const at of [1, 2, 3]) {
      await call('POST', `/${id}/facts`, user, { content: `f${at}` })
      await call('POST', `/${id}/events`, user, { title: `e${at}`, eventDate: `2026-01-0${4 - at}` })
      await call('POST', `/${id}/todos`, user, { content: `t${at}`, dueAt: `2026-01-0${4 - at}` })
    }
    await call('POST', `/${id}/todos`, user, { content: 'done', status: 'completed' })

    const { body } = await call('GET', `/${id}/context?limit=2`, user)

    assert.deepEqual(
      [
        (body.facts as Json[]).map(({ content }) => content),
        (body.events as Json[]).map(({ title }) => title),
        (body.todos as Json[]).map(({ content }) => content),
      ],
      [
        ['f3', 'f2'],
        ['e1', 'e2'],
        ['t3', 't2'],
      ],
    )
    assert.deepEqual([body.recentEvents, body.stableFacts, body.openActions], [body.events, body.facts, body.todos])
    assert.equal(body.contact.id, id)
    assert.deepEqual(
      (await call('GET', `/${id}/todos?status=completed`, user)).body.items.map(({ content }: Json) => content),
      ['done'],
    )
  })
})

describe('conversations of a contact', () => {
  const conversations = (method: string, path: string, user: string, body?: unknown) =>
    server.call(method, `/v1/conversations${path}`, { user, ...(body === undefined ? {} : { body }) })

  test('are linked when they are created or later, listed, and unlinked', async () => {
    const user = someone()
    const { id } = await create(user, { id: 'contact_456' })
    const first = await conversations('POST', '', user, { title: 'First', contactId: id })
    await server.chatToEnd(user, { input: 'hi', conversationId: 'conv_123' })

    const linked = await conversations('PATCH', '/conv_123', user, { contactId: id })
    const listed = await call('GET', `/${id}/conversations`, user)
    const unlinked = await conversations('PATCH', '/conv_123', user, { contactId: null })

    assert.deepEqual([first.body.contactId, first.body.summary], [id, null])
    assert.deepEqual([linked.body.contactId, linked.body.title], [id, 'hi'])
    assert.deepEqual(
      [(listed.body.items as Json[]).map((one) => one.id), listed.body.total],
      [['conv_123', first.body.id], 2],
    )
    assert.equal(unlinked.body.contactId, null)
    assert.equal((await call('GET', `/${id}/conversations`, user)).body.total, 1)
  })

  test('cannot be linked to a contact that is not there or another user’s', async () => {
    const [user, other] = [someone(), someone()]
    const theirs = (await create(other)).id
    const mine = (await conversations('POST', '', user)).body.id
    for (const contactId of [theirs, 'nobody']) {
      for (const answer of [
        await conversations('POST', '', user, { contactId }),
        await conversations('PATCH', `/${mine}`, user, { contactId, title: 'x' }),
      ]) {
        assert.deepEqual([answer.status, answer.body.code], [404, 'contact_not_found'])
      }
    }
    assert.equal((await conversations('GET', `/${mine}`, user)).body.title, null)
    assert.equal((await conversations('PATCH', `/${mine}`, user, {})).status, 400)
  })

  test('go with their contact, and so does all else about it; what is under way in them is cancelled', async () => {
    const user = someone()
    const { id } = await create(user, { id: 'contact_456' })
    const kept = await create(user)
    await server.provider.script([hangsAfter('thinking')], user)
    const conversationId = (await conversations('POST', '', user, { contactId: id })).body.id
    const stream = await server.chat(user, { input: user, conversationId })
    await server.reaches(user, runIdOf(stream), 'running')
    const other = (await conversations('POST', '', user, { contactId: kept.id })).body.id
    for (const contact of [id, kept.id]) {
      await call('POST', `/${contact}/facts`, user, { content: 'x', sourceConversationId: conversationId })
      await call('POST', `/${contact}/todos`, user, { content: 'x' })
      await call('POST', `/${contact}/events`, user, { title: 'x' })
    }

    const deleted = await call('DELETE', `/${id}`, user)
    await stream.ended()

    assert.equal(deleted.status, 204, deleted.text)
    assert.equal((await call('GET', `/${id}`, user)).status, 404)
    assert.equal((await conversations('GET', `/${conversationId}`, user)).status, 404)
    assert.equal((await server.call('GET', `/v1/agent/runs/${runIdOf(stream)}`, { user })).status, 404)
    assert.equal((await conversations('GET', `/${other}`, user)).status, 200)
    const context = (await call('GET', `/${kept.id}/context`, user)).body
    assert.deepEqual([context.facts.length, context.todos.length, context.events.length], [1, 1, 1])
    assert.equal(context.facts[0].sourceConversationId, null)

    await create(user, { id: 'contact_456' })
    const fresh = (await call('GET', `/${id}/context`, user)).body
    assert.deepEqual([fresh.facts, fresh.todos, fresh.events], [[], [], []])
  })
})
