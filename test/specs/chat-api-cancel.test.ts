// Requirement: Stream Cancellation of the chat API. An answer can be cancelled at every moment,
// once, only by its owner; the request to the provider is aborted, and the trace stays
// cancelled.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { ask, type Chunk, type ChunkStream, get, post, textOf, typesOf } from '../support/chat-api.ts'
import { type Effects, effectsFile, stdioFake } from '../support/fake-mcp.ts'
import {
  calls,
  hangsAfter,
  type TestServer,
  type TestServerProcess,
  type Json,
  says,
  someone,
  startTestServerProcess,
  until,
} from '../support/test-server.ts'

let mortal: TestServerProcess
/** The server at this moment: `mortal`, or the one after its death. */
let server: TestServer
let effects: Effects
/** Cancelled traces, looked at again when everything has settled and after a restart. */
const cancelled: { client: string; traceId: string; trace: Json }[] = []

before(async () => {
  effects = effectsFile()
  const mcp = join(effects.file, '..', 'mcp.json')
  writeFileSync(mcp, JSON.stringify({ mcpServers: { demo: stdioFake({ FAKE_MCP_FILE: effects.file }) } }))
  mortal = await startTestServerProcess({ POLYLOG_MCP_CONFIG: mcp })
  server = mortal
})

after(async () => {
  await server.close()
  effects.remove()
})

const traceOf = async (client: string, traceId: string): Promise<Json> =>
  (await get(server, `trace/${traceId}`, client)).body.trace

/** Cancels by the trace, and checks what holds for every cancel. */
async function cancelAndCheck(client: string, stream: ChunkStream, by: 'trace' | 'conversation'): Promise<Chunk[]> {
  const body = by === 'trace' ? { trace_id: stream.traceId } : { conversation_id: stream.conversationId }
  const confirmed = await post(server, 'cancel_stream', client, { ...body, reason: 'enough' })
  // The trace is final at the moment of the confirmation.
  const trace = await traceOf(client, stream.traceId)
  const frames = await stream.toEnd()

  assert.deepEqual(confirmed.body, {
    success: true,
    cancelled_count: 1,
    conversation_id: stream.conversationId,
    trace_ids: [stream.traceId],
  })
  assert.deepEqual(
    [trace.status, trace.cancelled_by, trace.cancellation_reason, trace.message_id],
    ['cancelled', 'user', 'enough', null],
  )
  assert.deepEqual([frames.at(-1)?.type, frames.at(-1)?.status, frames.at(-1)?.code], ['error', 499, 'cancelled'])
  assert.equal(frames.filter((frame) => frame.type === 'error' || frame.type === 'done').length, 1)
  assert.deepEqual(await traceOf(client, stream.traceId), trace, 'nothing follows')
  cancelled.push({ client, traceId: stream.traceId, trace })
  return frames
}

test('Scenario: Cancel streaming request (during the text)', async () => {
  for (const by of ['trace', 'conversation'] as const) {
    const client = someone()
    await server.provider.script([hangsAfter('A long ', 'story')], client)
    const stream = await ask(server, client, client)
    await stream.waitFor('chunk', (frame) => frame.content === 'story')

    const frames = await cancelAndCheck(client, stream, by)

    assert.equal(textOf(frames), 'A long story')
    const [request] = await until('the provider to be left', async () => {
      const found = await server.asked(client)
      return found[0]?.closedEarly === true ? found : undefined
    })
    assert.equal(request?.closedEarly, true)
  }
})

test('before the first word, with nothing but the headers', async () => {
  const client = someone()
  await server.provider.script([[{ stall: true }]], client)
  const stream = await ask(server, client, client)
  await server.askedTimes(client, 1)

  assert.deepEqual(typesOf(await cancelAndCheck(client, stream, 'trace')), ['error'])
  await until('the provider to be left', async () =>
    (await server.asked(client))[0]?.closedEarly === true ? true : undefined,
  )
})

test('during a running tool: the tool gets the signal, and its call is closed', async () => {
  const client = someone()
  await server.provider.script([calls(['slow', { text: client }])], client)
  const stream = await ask(server, client, client)
  await stream.waitFor('tool_start')
  // The tool has really begun when it reports progress.
  await until('the tool to begin', async () => {
    const timeline = await server.call('GET', `/v1/agent/runs/${stream.traceId}/timeline?client_id=${client}`)
    return timeline.text.includes('halfway') ? true : undefined
  })
  const before = effects.lines().filter((line) => line === 'slow cancelled').length

  const frames = await cancelAndCheck(client, stream, 'conversation')

  assert.deepEqual(typesOf(frames), ['tool_start', 'tool_output', 'tool_end', 'error'])
  assert.equal(frames[2]?.status, 'cancelled')
  await until('the tool to hear of it', () =>
    effects.lines().filter((line) => line === 'slow cancelled').length > before ? true : undefined,
  )
  assert.equal((await server.asked(client)).length, 1, 'no further step')
})

test('while a person is awaited: the card is closed, and a late decision runs nothing', async () => {
  const client = someone()
  await server.provider.script([calls(['charge', { amount: 777_777 }])], client)
  const stream = await ask(server, client, client)
  const card = await stream.waitFor('tool_output')
  const id = /\/v1\/tool-confirmations\/(\S+)/.exec(card.output)?.[1]

  const frames = await cancelAndCheck(client, stream, 'trace')
  const late = await server.call('POST', `/v1/tool-confirmations/${id}/confirm?client_id=${client}`)

  assert.deepEqual(typesOf(frames), ['tool_start', 'tool_output', 'tool_output', 'tool_end', 'error'])
  assert.equal(frames[3]?.status, 'cancelled')
  assert.equal(late.status, 409)
  assert.ok(!effects.lines().includes('charge 777777'))
})

test('while it still waits for its turn: it never begins', async () => {
  const client = someone()
  await server.provider.script([hangsAfter('First ')], client)
  const first = await ask(server, client, client)
  await first.waitFor('chunk')
  const second = await ask(server, client, { message: `second ${client}`, conversation_id: first.conversationId })

  assert.deepEqual(typesOf(await cancelAndCheck(client, second, 'trace')), ['error'])
  const rest = await post(server, 'cancel_stream', client, { conversation_id: first.conversationId })
  assert.deepEqual(rest.body.trace_ids, [first.traceId])
  assert.equal((await server.asked(`second ${client}`)).length, 0)
})

test('twice, at once and afterwards: one counts, all are answered', async () => {
  const client = someone()
  await server.provider.script([hangsAfter('Once ')], client)
  const stream = await ask(server, client, client)
  await stream.waitFor('chunk')

  const answers = await Promise.all(
    [1, 2, 3].map(() => post(server, 'cancel_stream', client, { trace_id: stream.traceId })),
  )
  const trace = await traceOf(client, stream.traceId)
  const late = await post(server, 'cancel_stream', client, { trace_id: stream.traceId })
  const nothingLeft = await post(server, 'cancel_stream', client, { conversation_id: stream.conversationId })

  for (const answer of answers) assert.deepEqual([answer.status, answer.body.success], [200, true])
  assert.deepEqual([late.body.success, late.body.cancelled_count, nothingLeft.body.cancelled_count], [true, 0, 0])
  assert.deepEqual(await traceOf(client, stream.traceId), trace)
  assert.equal((await stream.toEnd()).filter((frame) => frame.type === 'error').length, 1)
})

test('by another user: nothing happens, and the answer goes on', async () => {
  const client = someone()
  await server.provider.script([[{ text: 'Half ' }, { stall: true }, { text: 'whole.' }, { finish: 'stop' }]], client)
  const stream = await ask(server, client, client)
  await stream.waitFor('chunk')

  for (const body of [{ trace_id: stream.traceId }, { conversation_id: stream.conversationId }]) {
    assert.equal((await post(server, 'cancel_stream', someone('stranger'), body)).status, 404)
  }
  assert.equal((await traceOf(client, stream.traceId)).status, 'running')
  await server.provider.release()
  const frames = await stream.toEnd()

  assert.deepEqual([textOf(frames), frames.at(-1)?.type], ['Half whole.', 'done'])
})

test('without saying what is 400', async () => {
  const answer = await post(server, 'cancel_stream', someone())

  assert.deepEqual([answer.status, answer.body.code], [400, 'invalid_request'])
})

test('closing the connection is no cancel, unless the request says so', async () => {
  const client = someone()
  const marks = [`stays ${client}`, `leaves ${client}`]
  for (const mark of marks)
    await server.provider.script([[{ text: 'Half ' }, { stall: true }, { text: 'whole.' }, { finish: 'stop' }]], mark)
  const stays = await ask(server, client, { message: marks[0] })
  const leaves = await ask(server, client, { message: marks[1], on_disconnect: 'cancel' })
  for (const stream of [stays, leaves]) {
    await stream.waitFor('chunk')
    stream.raw.leave()
  }

  await until('the cancel', async () =>
    (await traceOf(client, leaves.traceId)).status === 'cancelled' ? true : undefined,
  )
  assert.equal((await traceOf(client, stays.traceId)).status, 'running')
  await server.provider.release()
  await until('the end', async () => ((await traceOf(client, stays.traceId)).status === 'completed' ? true : undefined))
})

test('cancelled traces stay as they are when everything has settled, and after a restart', async () => {
  await server.provider.release()
  const client = someone()
  await server.provider.script([says('Still here.')], client)
  await (await ask(server, client, client)).toEnd()
  assert.ok(cancelled.length >= 5)
  for (const { client: owner, traceId, trace } of cancelled) assert.deepEqual(await traceOf(owner, traceId), trace)

  await mortal.polylog.kill()
  server = await mortal.restart()

  for (const { client: owner, traceId, trace } of cancelled) assert.deepEqual(await traceOf(owner, traceId), trace)
})
