// A closed connection changes nothing, unless the request or the server says that it cancels the
// run. That is true from the moment the request was sent, in every API family. A server that
// stops is not a disconnect.

import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import {
  hangsAfter,
  type TestServer,
  type Json,
  named,
  runIdOf,
  says,
  someone,
  startTestServer,
  until,
  sharedTestServers,
} from '../support/test-server.ts'
import { openStream } from '../support/sse.ts'

const [shared, cancelling] = sharedTestServers({}, { POLYLOG_ON_DISCONNECT: 'cancel' })

/** Every POST that starts an answer: its path, and the body that asks a question as a user. */
const families: [path: string, body: (user: string) => Json, field: string][] = [
  ['/v1/agent/chat', (user) => ({ userId: user, input: user }), 'onDisconnect'],
  ['/v1/agent/chat?format=vercel-ai', (user) => ({ userId: user, input: user }), 'onDisconnect'],
  ['/api/get_chat_response_stream', (user) => ({ client_id: user, message: user }), 'on_disconnect'],
  ['/api/get_chat_response', (user) => ({ client_id: user, message: user }), 'on_disconnect'],
  ['/api/ab/compare', (user) => ({ client_id: user, message: user }), 'on_disconnect'],
  ['/api/chat/stream', (user) => ({ userId: user, message: user }), 'onDisconnect'],
]

/** Sends a whole request and closes the connection in the same moment, before anything can have been answered. */
async function sendAndHangUp(server: TestServer, path: string, body: Json): Promise<void> {
  const url = new URL(server.polylog.baseUrl)
  const text = JSON.stringify(body)
  const head = `POST ${path} HTTP/1.1\r\nhost: ${url.host}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n`
  const socket = connect({ host: url.hostname, port: Number(url.port) })
  await new Promise<void>((resolve, reject) => {
    socket.on('error', reject)
    socket.write(head + text, () => {
      socket.on('close', () => resolve())
      socket.destroy()
    })
  })
}

async function runsOf(server: TestServer, user: string): Promise<Json[]> {
  return await until('the run to be accepted', async () => {
    const runs = (await server.call('GET', '/v1/agent/runs', { user })).body as unknown as Json[]
    return runs.length > 0 ? runs : undefined
  })
}

describe('a client that hangs up before its run is accepted', () => {
  for (const [path, bodyOf, field] of families) {
    test(`cancels the run if the request asked for that: ${path}`, async () => {
      const user = someone()
      await shared.provider.script([hangsAfter('Hm'), hangsAfter('Hm')], user)

      await sendAndHangUp(shared, path, { ...bodyOf(user), [field]: 'cancel' })

      for (const { runId } of await runsOf(shared, user)) await shared.reaches(user, runId, 'cancelled')
    })
  }

  test('changes nothing otherwise: the run is answered', async () => {
    const user = someone()
    await sendAndHangUp(shared, '/v1/agent/chat', { userId: user, input: user })

    const [run] = await runsOf(shared, user)
    await shared.reaches(user, run?.runId, 'succeeded')
  })
})

describe('POLYLOG_ON_DISCONNECT=cancel', () => {
  for (const [path, bodyOf, field] of families) {
    test(`is the default, and the field of a request wins: ${path}`, async () => {
      const [leaves, stays] = [someone(), someone()]
      await shared.provider.script([hangsAfter('Hm'), hangsAfter('Hm')], leaves)

      await sendAndHangUp(cancelling, path, bodyOf(leaves))
      await sendAndHangUp(cancelling, path, { ...bodyOf(stays), [field]: 'continue' })

      for (const { runId } of await runsOf(cancelling, leaves)) await cancelling.reaches(leaves, runId, 'cancelled')
      for (const { runId } of await runsOf(cancelling, stays)) await cancelling.reaches(stays, runId, 'succeeded')
    })
  }

  test('does not concern a client that attached again, nor one whose key found an earlier run', async () => {
    const user = someone()
    const key = { 'idempotency-key': `key-${user}` }
    await shared.provider.script([[{ text: ['one '] }, { stall: true }, { text: ['two'] }, { finish: 'stop' }]], user)
    const first = await cancelling.chat(user, user, key)
    await first.waitFor(named('agent.delta'))
    const base = cancelling.polylog.baseUrl
    const watcher = await openStream(`${base}/v1/agent/runs/${runIdOf(first)}/stream?userId=${user}`)
    const second = await cancelling.chat(user, user, key)
    for (const stream of [watcher, second]) {
      await stream.waitFor(named('agent.delta'))
      stream.leave()
      await stream.ended()
    }

    await shared.provider.release()
    await first.ended()

    const { body } = await cancelling.call('GET', `/v1/agent/runs/${runIdOf(first)}`, { user })
    assert.deepEqual([body.status, body.cancelRequested], ['succeeded', false])
  })

  test('a server that goes down cancels nothing: the runs of open connections go on at the next start', async () => {
    const server = await startTestServer({ POLYLOG_ON_DISCONNECT: 'cancel' }, shared.provider)
    const [streams, waits] = [someone(), someone()]
    for (const user of [streams, waits]) await shared.provider.script([hangsAfter('Hm'), says('Done.')], user)
    const stream = await server.chat(streams, streams)
    await stream.waitFor(named('agent.delta'))
    const whole = server
      .call('POST', '/api/get_chat_response', { body: { client_id: waits, message: waits } })
      .catch((error: unknown) => assert.fail(`no answer: ${String(error)}`))
    const [waiting] = await runsOf(server, waits)
    await shared.askedTimes(waits, 1)

    await server.polylog.stop()
    await stream.ended()
    const refused = await whole
    const again = await server.restart()

    assert.deepEqual([refused.status, refused.body.code], [503, 'shutting_down'])

    for (const [user, runId] of [
      [streams, runIdOf(stream)],
      [waits, waiting?.runId as string],
    ] as const) {
      const run = await again.reaches(user, runId, 'succeeded', 'cancelled')
      assert.deepEqual([run.status, run.cancelRequested], ['succeeded', false], user)
    }
    await again.close()
  })
})
