// The journal of a run as a stream, with the bytes of other wires in it.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { openStream } from '../support/sse.ts'
import { calls, hangsAfter, type Json, runIdOf, says, sharedTestServer, someone } from '../support/test-server.ts'

const server = sharedTestServer()

const addressOf = (runId: string, user: string, query: string) =>
  `${server.polylog.baseUrl}/v1/agent/runs/${runId}/events/stream?userId=${user}&${query}`

async function messagesOf(address: string): Promise<{ id: string | undefined; json: Json }[]> {
  const stream = await openStream(address, { method: 'GET' })
  await stream.ended()
  return stream.frames
    .filter(({ id }) => id !== undefined)
    .map(({ id, json }) => ({ id, json: json as unknown as Json }))
}

describe('the stream of a journal', () => {
  test('has every event of the journal and exactly the bytes that each format sends', async () => {
    const user = someone()
    await server.provider.script([calls(['current_time', {}]), says('It ', 'is late.')], user)
    const asked = await server.chat(user, user)
    await asked.ended()
    const runId = runIdOf(asked)
    const messages = await messagesOf(addressOf(runId, user, 'formats=sse,vercel-ai,%20fcmp,sse'))

    const { events } = (await server.call('GET', `/v1/agent/runs/${runId}/events`, { user })).body
    assert.deepEqual(
      messages.map(({ json: { wires: _wires, ends: _ends, ...event } }) => event),
      events,
    )
    for (const format of ['sse', 'vercel-ai', 'fcmp']) {
      const { text } = await server.call('GET', `/v1/agent/runs/${runId}/stream?format=${format}`, { user })
      assert.equal(messages.flatMap(({ json }) => (json.wires[format] ?? []) as string[]).join(''), text, format)
    }
    assert.deepEqual(messages.at(-1)?.json.ends, ['sse', 'vercel-ai', 'fcmp'])

    const middle = messages[4]
    const rest = await messagesOf(addressOf(runId, user, `formats=sse,vercel-ai,fcmp&after=${middle?.id}`))
    assert.deepEqual(rest, messages.slice(5))
    const after = await server.call('GET', `/v1/agent/runs/${runId}/events/stream?after=${messages.at(-1)?.id}`, {
      user,
    })
    assert.equal(after.status, 204)
  })

  test('goes on while the run does', async () => {
    const user = someone()
    await server.provider.script([hangsAfter('begins')], user)
    const asked = await server.chat(user, user)
    await asked.waitFor(({ event }) => event === 'agent.delta')
    const runId = runIdOf(asked)
    const stream = await openStream(addressOf(runId, user, ''), { method: 'GET' })
    await stream.waitFor(({ json }) => (json as unknown as Json).type === 'text.delta')
    await server.call('POST', `/v1/agent/runs/${runId}/cancel`, { user, body: {} })
    const last = await stream.waitFor(({ json }) => (json as unknown as Json).type === 'run.ended')
    assert.deepEqual((last.json as unknown as Json).wires, {})
    await stream.ended()
  })

  test('refuses an unknown format and more formats than fit', async () => {
    const user = someone()
    await server.provider.script([says('yes')], user)
    const asked = await server.chat(user, user)
    await asked.ended()
    const path = `/v1/agent/runs/${runIdOf(asked)}/events/stream`
    const unknown = await server.call('GET', `${path}?formats=sse,nothing`, { user })
    assert.deepEqual([unknown.status, unknown.body.code], [400, 'unknown_format'])
    const nine = 'sse,vercel-ai,ui-message,ui-message-v5,chunks,chunks-ndjson,fcmp,session,a2a'
    const many = await server.call('GET', `${path}?formats=${nine}`, { user })
    assert.deepEqual([many.status, many.body.code], [400, 'invalid_request'])
  })
})

test('the list of runs has the beginning of each input if it is asked for', async () => {
  const user = someone()
  await server.provider.script([says('yes')], user)
  await server.chatToEnd(user, `${user} ${'long '.repeat(100)}`)
  const plain = (await server.call('GET', '/v1/agent/runs', { user })).body as unknown as Json[]
  const [run] = (await server.call('GET', '/v1/agent/runs?include=input', { user })).body as unknown as Json[]
  assert.equal(plain[0]?.input, undefined)
  assert.equal(run?.input.length, 200)
  assert.ok(run?.input.startsWith(user))
})
