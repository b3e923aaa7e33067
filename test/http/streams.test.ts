// A reader cannot affect the run: a client that leaves or stops reading changes nothing, unless
// it asked for that.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { test } from 'node:test'
import {
  endOf,
  hangsAfter,
  named,
  runIdOf,
  says,
  someone,
  startTestServer,
  until,
  sharedTestServer,
} from '../support/test-server.ts'
import { openStream } from '../support/sse.ts'

const server = sharedTestServer()

test('a client that leaves does not stop the run', async () => {
  for (const body of [{}, { onDisconnect: 'continue' }]) {
    const user = someone()
    await server.provider.script([[{ text: ['one '] }, { stall: true }, { text: ['two'] }, { finish: 'stop' }]], user)
    const stream = await server.chat(user, { input: user, ...body })
    await stream.waitFor(named('agent.delta'))

    stream.leave()
    await stream.ended()
    await server.provider.release()
    await server.reaches(user, runIdOf(stream), 'succeeded')

    assert.equal((await server.asked(user))[0]?.closedEarly, false)
    const again = await openStream(`${server.polylog.baseUrl}/v1/agent/runs/${runIdOf(stream)}/stream?userId=${user}`)
    await again.ended()
    assert.equal(endOf(again.frames).output, 'one two')
  }
})

test('with onDisconnect "cancel" leaving is a cancel', async () => {
  const user = someone()
  await server.provider.script([hangsAfter('one ')], user)
  const stream = await server.chat(user, { input: user, onDisconnect: 'cancel' })
  await stream.waitFor(named('agent.delta'))

  stream.leave()

  await server.reaches(user, runIdOf(stream), 'cancelled')
  await until('the provider to be left', async () => (await server.asked(user)).find((request) => request.closedEarly))
})

test('with onDisconnect "cancel" only the client that started the run counts', async () => {
  const user = someone()
  await server.provider.script([[{ text: ['one '] }, { stall: true }, { text: ['two'] }, { finish: 'stop' }]], user)
  const first = await server.chat(user, { input: user, onDisconnect: 'cancel' })
  await first.waitFor(named('agent.delta'))
  const watcher = await openStream(`${server.polylog.baseUrl}/v1/agent/runs/${runIdOf(first)}/stream?userId=${user}`)
  await watcher.waitFor(named('agent.delta'))

  watcher.leave()
  await watcher.ended()
  await server.provider.release()
  await first.ended()

  assert.equal(endOf(first.frames).status, 'succeeded')
})

test('with onDisconnect "cancel" a stream that was read to its end is no disconnect', async () => {
  const user = someone()
  await server.provider.script([says('done')], user)

  const frames = await server.chatToEnd(user, { input: user, onDisconnect: 'cancel' })

  const { body } = await server.call('GET', `/v1/agent/runs/${frames[0]?.json.data.runId}`, { user })
  assert.deepEqual([body.status, body.cancelRequested], ['succeeded', false])
})

test('a client that stops reading does not delay the run, and gets the rest when it reads again', async () => {
  const user = someone()
  // Far more than sockets and kernels hold on the way.
  const chunks = 400
  const text = 'x'.repeat(64 * 1024)
  await server.provider.script([[{ flood: { count: chunks, text } }, { finish: 'stop' }]], user)
  const request = httpRequest(`${server.polylog.baseUrl}/v1/agent/chat`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    agent: false,
  })
  request.end(JSON.stringify({ userId: user, input: user }))
  const [response] = (await once(request, 'response')) as [IncomingMessage]

  // Nothing has been read of the body so far.
  const run = await server.reaches(user, response.headers['x-run-id'] as string, 'succeeded', 'failed')
  const meanwhile = await server.chatToEnd(user, 'and others are served')
  const names: Record<string, number> = {}
  let received = 0
  let tail = ''
  for await (const part of response.setEncoding('utf8')) {
    received += (part as string).length
    // A name may be torn between two parts, so the last few characters are looked at again.
    const looked = tail + (part as string)
    for (const [, name = ''] of looked.matchAll(/\nevent: ([a-z.]+)\n/g)) names[name] = (names[name] ?? 0) + 1
    tail = looked.slice(-20).replace(/\nevent: [a-z.]+\n/, '')
  }

  assert.equal(run.status, 'succeeded')
  assert.equal((await server.asked(user))[0]?.flooded, chunks)
  assert.equal(endOf(meanwhile).status, 'succeeded')
  assert.ok(received > chunks * text.length)
  // A slow machine gets keep-alives as well.
  delete names['ping']
  assert.deepEqual(names, {
    'agent.start': 1,
    'context.patch': 1,
    'agent.delta': chunks,
    'agent.message': 1,
    'agent.end': 1,
  })
})

test('readers that stop reading cost a bounded number of bytes each', async () => {
  // A heap in which what is held back for them, nearly a gigabyte if it were all of it, would find no room.
  const small = await startTestServer({ NODE_OPTIONS: '--max-old-space-size=256' }, server.provider)
  try {
    const user = someone()
    await server.provider.script([[{ flood: { count: 256, text: 'x'.repeat(64 * 1024) } }, { finish: 'stop' }]], user)
    const first = await small.chat(user, user)
    first.leave()
    await small.reaches(user, runIdOf(first), 'succeeded')
    const url = `${small.polylog.baseUrl}/v1/agent/runs/${runIdOf(first)}/stream?userId=${user}`
    const reader = async (): Promise<IncomingMessage> => {
      const request = httpRequest(url, { agent: false }).end()
      return ((await once(request, 'response')) as [IncomingMessage])[0]
    }

    const stuck = await Promise.all(Array.from({ length: 20 }, reader))
    // This one came last and reads all: by then the others have been given all that they will be given.
    let received = 0
    for await (const part of await reader()) received += (part as Buffer).length

    assert.ok(received > 3 * 256 * 64 * 1024)
    assert.equal((await small.call('GET', '/v1/health')).status, 200)
    for (const response of stuck) response.destroy()
  } finally {
    await small.close()
  }
})

test('many readers of one run all get the same bytes', async () => {
  const user = someone()
  await server.provider.script(
    [[{ text: ['a', 'b'] }, { stall: true }, { text: ['c', 'd'] }, { finish: 'stop' }]],
    user,
  )
  const first = await server.chat(user, user)
  await first.waitFor(({ json }) => json.data.delta === 'b')
  const url = `${server.polylog.baseUrl}/v1/agent/runs/${runIdOf(first)}/stream?userId=${user}`

  const others = await Promise.all(Array.from({ length: 20 }, () => openStream(url)))
  await server.provider.release()
  await Promise.all([first, ...others].map((stream) => stream.ended()))

  assert.deepEqual([...new Set(others.map((stream) => stream.text()))], [first.text()])
})
