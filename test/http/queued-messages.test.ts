// Messages that wait behind a running answer: they can be edited and removed until they start.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { openStream } from '../support/sse.ts'
import { hangsAfter, type Json, messagesOf, runIdOf, says, sharedTestServer, someone } from '../support/test-server.ts'

const server = sharedTestServer()

/** A run that hangs, and two messages behind it. */
async function queue() {
  const user = someone()
  const conversationId = `conv-${user}`
  await server.provider.script([hangsAfter('so')], `${user} first`)
  const send = async (text: string) => {
    const stream = await server.chat(user, { input: `${user} ${text}`, conversationId })
    return { stream, id: runIdOf(stream) }
  }
  const first = await send('first')
  await first.stream.waitFor(({ json }) => json.event === 'agent.delta')
  const [second, third] = [await send('second'), await send('third')]
  const call = (method: string, id: string, body?: unknown) =>
    server.call(method, `/v1/agent/runs/${id}`, { user, ...(body === undefined ? {} : { body }) })
  const go = () => server.call('POST', `/v1/agent/runs/${first.id}/cancel`, { user, body: {} })
  return { user, conversationId, first, second, third, call, go }
}

const contents = async (user: string, conversationId: string) =>
  ((await server.call('GET', `/v1/conversations/${conversationId}/messages`, { user })).body as unknown as Json[]).map(
    ({ content }) => String(content).replace(`${user} `, ''),
  )

describe('a queued message', () => {
  test('is edited in place: the model reads the new text, in the old order', async () => {
    const { user, conversationId, second, third, call, go } = await queue()
    const changed = await call('PATCH', second.id, { input: `${user} better` })
    await go()
    await Promise.all([second.stream.ended(), third.stream.ended()])

    assert.deepEqual([changed.status, changed.body.status], [200, 'queued'], changed.text)
    const [asked] = await server.asked(`${user} better`)
    assert.equal(messagesOf(asked).at(-1)?.['content'], `${user} better`)
    assert.equal((await server.asked(`${user} second`)).length, 0)
    assert.deepEqual(
      (await contents(user, conversationId)).filter((text) => !/fake provider|^so$/.test(text)),
      ['first', 'better', 'third'],
    )
    const invariants = await server.call('GET', `/v1/agent/runs/${second.id}/invariants`, { user })
    assert.equal(invariants.body.kept, true, invariants.text)
    const events = (await server.call('GET', `/v1/agent/runs/${second.id}/events`, { user })).body
    assert.deepEqual(
      (events.events as Json[])
        .filter(({ data }) => data.input !== undefined)
        .map(({ type, data }) => [type, data.input]),
      [
        ['run.accepted', `${user} second`],
        ['run.prepared', `${user} better`],
      ],
    )
  })

  test('is removed: it never runs, is not in the conversation, and its text is given back', async () => {
    const { user, conversationId, second, third, call, go } = await queue()
    const removed = await call('DELETE', second.id)
    await second.stream.ended()
    await go()
    await third.stream.ended()

    assert.deepEqual(
      [removed.status, removed.body.status, removed.body.input],
      [200, 'cancelled', `${user} second`],
      removed.text,
    )
    assert.equal((await server.asked(`${user} second`)).length, 0)
    const [asked] = await server.asked(`${user} third`)
    assert.doesNotMatch(JSON.stringify(messagesOf(asked)), / second/)
    assert.ok(!(await contents(user, conversationId)).includes('second'))
  })

  test('that has started, was removed or has ended is 409', async () => {
    const { first, second, third, call, go } = await queue()
    const refused = async (id: string) => {
      for (const answer of [await call('PATCH', id, { input: 'x' }), await call('DELETE', id)]) {
        assert.deepEqual([answer.status, answer.body.code], [409, 'run_not_queued'])
      }
    }
    await refused(first.id)
    await call('DELETE', second.id)
    await refused(second.id)
    await go()
    await third.stream.ended()
    await refused(third.id)
  })

  test('needs a text, and one with files can only be removed', async () => {
    const { user, conversationId, second, call, go } = await queue()
    const empty = await call('PATCH', second.id, { input: '  ' })
    const pixel =
      'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
    const content = [
      { type: 'text', text: 'look' },
      { type: 'image_url', image_url: { url: pixel } },
    ]
    const stream = await openStream(`${server.polylog.baseUrl}/v1/agent/chat`, {
      body: { userId: user, conversationId, messages: [{ role: 'user', content }] },
    })
    const withFile = await call('PATCH', runIdOf(stream), { input: 'x' })
    const removed = await call('DELETE', runIdOf(stream))
    await go()

    assert.deepEqual([empty.status, empty.body.code], [400, 'invalid_request'])
    assert.deepEqual([withFile.status, withFile.body.code], [400, 'invalid_request'])
    assert.match(withFile.body.message, /files/)
    assert.equal(removed.status, 200)
  })
})

describe('the journal of a run', () => {
  test('is read as it is stored, in pages', async () => {
    const user = someone()
    await server.provider.script([says('one ', 'two ', 'three')], user)
    const stream = await server.chat(user, user)
    await stream.ended()
    const path = `/v1/agent/runs/${runIdOf(stream)}/events`
    const whole = (await server.call('GET', path, { user })).body
    const pages: Json[] = []
    let next = 0
    for (let more = true; more;) {
      const { body, headers } = await server.call('GET', `${path}?limit=3&after=${next}`, { user })
      pages.push(...body.events)
      next = body.next
      more = body.hasMore
      assert.equal(headers.get('link') !== null, more)
    }

    assert.deepEqual(pages, whole.events)
    assert.deepEqual(
      pages.map(({ seq }) => seq),
      pages.map((_, index) => index + 1),
    )
    assert.equal(pages[0]?.['type'], 'run.accepted')
    assert.equal(pages.at(-1)?.['type'], 'run.ended')
    const text = pages.filter(({ type }) => type === 'text.delta').map(({ data }) => data.text)
    assert.equal(text.join(''), 'one two three')
  })
})

describe('a search in conversations', () => {
  test('finds parts of titles, in pages, and only of the user', async () => {
    const [user, other] = [someone(), someone()]
    const make = (owner: string, title: string) =>
      server.call('POST', '/v1/conversations', { user: owner, body: { title } })
    for (const title of ['Tea in London', 'Coffee', 'More tea', '100% tea_']) await make(user, title)
    await make(other, 'Their tea')
    const find = async (query: string) =>
      ((await server.call('GET', `/v1/conversations?${query}`, { user })).body as unknown as Json[]).map(
        ({ title }) => title,
      )

    assert.deepEqual(await find('q=TEA'), ['100% tea_', 'More tea', 'Tea in London'])
    assert.deepEqual(await find('q=%25%20tea_'), ['100% tea_'])
    assert.deepEqual(await find('q=%25c'), [])
    assert.deepEqual(await find('q='), ['100% tea_', 'More tea', 'Coffee', 'Tea in London'])
    const { body, headers } = await server.call('GET', '/v1/conversations?q=tea&limit=2', { user })
    const next = /<([^>]+)>/.exec(headers.get('link') ?? '')?.[1] ?? ''
    const rest = await server.call('GET', next)
    assert.deepEqual(
      [body, rest.body].map((page) => (page as unknown as Json[]).length),
      [2, 1],
    )
  })
})
