// The whole server with an OpenClaw gateway as its engine: what a client and an operator see.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { closedAddress } from '../support/closed-port.ts'
import { type FakeOpenclaw, startFakeOpenclaw } from '../support/fake-openclaw.ts'
import { type FakeProvider, startFakeProvider } from '../support/fake-provider.ts'
import {
  endOf,
  type Json,
  named,
  runIdOf,
  someone,
  startTestServer,
  type TestServer,
  toolState,
  toolStatuses,
  until,
} from '../support/test-server.ts'

let gateway: FakeOpenclaw
let provider: FakeProvider
let server: TestServer

before(async () => {
  ;[gateway, provider] = await Promise.all([startFakeOpenclaw(), startFakeProvider()])
  server = await startTestServer(
    { POLYLOG_ENGINE: 'openclaw', OPENCLAW_URL: gateway.baseUrl, OPENCLAW_TOKEN: gateway.token },
    provider,
  )
})
after(async () => {
  await server?.close()
  await Promise.all([gateway?.stop(), provider?.stop()])
})

const guarded = (user: string) => [
  { text: 'I will clean up.' },
  { call: { id: 'c1', name: 'exec', args: { command: 'rm -rf build' } } },
  { approval: { id: `a of ${user}`, callId: 'c1', command: 'rm -rf build', text: 'removed' } },
  { text: 'All clean.' },
]

test('a chat is answered by the gateway, and the run names its engine', async () => {
  const user = someone()
  await gateway.script(user, [{ text: ['Hello ', 'from ', 'afar.'] }])
  const frames = await server.chatToEnd(user, `hi ${user}`)
  assert.equal(endOf(frames).output, 'Hello from afar.')
  const start = frames.find(named('agent.start'))?.json.data
  assert.equal(start?.metadata.engine, 'openclaw')
  const metrics = await server.call('GET', '/metrics')
  assert.match(metrics.text, /^polylog_runs_total\{family="agent",engine="openclaw",status="succeeded"\} \d+$/m)
  assert.match(metrics.text, /^polylog_engine_state\{engine="openclaw",state="available"\} 1$/m)
  const { body } = await server.call('GET', '/v1/health')
  assert.deepEqual(body.engines, [
    { name: 'local', state: 'available' },
    { name: 'openclaw', state: 'available' },
  ])
})

test('the tokens of the gateway are counted for its engine, and not for a model of this server', async () => {
  const user = someone()
  await server.chatToEnd(user, 'Hello?')

  const { groups } = (await server.call('GET', '/v1/usage?groupBy=model', { user })).body
  assert.deepEqual(
    groups.map(({ key, usage }: Json) => [key, usage.inputTokens, usage.outputTokens]),
    [['openclaw', 11, 7]],
  )
})

test('a request may name another engine', async () => {
  const user = someone()
  const before = (await gateway.state()).started.length
  const frames = await server.chatToEnd(user, { input: 'hello', engine: 'local' })
  assert.equal(endOf(frames).output, 'Hello from the fake provider.')
  assert.equal((await gateway.state()).started.length, before)
})

test('the turns of a conversation share one session, and conversations share none', async () => {
  const user = someone()
  const conversationId = `Conv-${user}`
  for (const input of ['first', 'second']) await server.chatToEnd(user, { input: `${input} ${user}`, conversationId })
  await server.chatToEnd(user, { input: `third ${user}`, conversationId: conversationId.toLowerCase() })
  const { started } = await gateway.state()
  const keys = started.filter(({ message }) => message.includes(user)).map(({ sessionKey }) => sessionKey)
  assert.equal(keys.length, 3)
  assert.equal(keys[0], keys[1])
  assert.notEqual(keys[0], keys[2])
})

test('a command of the gateway waits for a confirmation, and the decision is applied once', async () => {
  for (const decision of ['confirm', 'reject'] as const) {
    const user = someone()
    await gateway.script(user, guarded(user))
    const stream = await server.chat(user, `clean ${user}`)
    const asked = (await stream.waitFor(toolState('awaiting_input'))).json.data
    await server.reaches(user, runIdOf(stream), 'awaiting_input')
    assert.match(asked.message, /rm -rf build/)
    const path = `/v1/tool-confirmations/${asked.confirmationId}/${decision}`
    assert.equal((await server.call('POST', path, { user })).status, 200)
    await stream.ended()

    const statuses = ['queued', 'running', 'awaiting_input']
    assert.deepEqual(
      toolStatuses(stream.frames),
      decision === 'confirm' ? [...statuses, 'running', 'succeeded'] : [...statuses, 'cancelled'],
    )
    assert.equal(endOf(stream.frames).output, 'All clean.')
    const mine = (await gateway.state()).resolved.filter(({ id }) => id === `a of ${user}`)
    assert.deepEqual(mine, [{ id: `a of ${user}`, decision: decision === 'confirm' ? 'allow-once' : 'deny' }])
  }
})

test('a cancel stops the remote run', async () => {
  const user = someone()
  await gateway.script(user, [{ text: 'Well' }, { hold: true }])
  const stream = await server.chat(user, `slowly ${user}`)
  await stream.waitFor(named('agent.delta'))
  await server.call('POST', `/v1/agent/runs/${runIdOf(stream)}/cancel`, { user })
  await stream.ended()
  assert.equal(endOf(stream.frames).status, 'cancelled')
  assert.ok((await gateway.state()).aborted.includes(runIdOf(stream)))
})

test('a gateway that drops its connections in the middle of an answer is not noticed by the client', async () => {
  const user = someone()
  await gateway.script(user, [{ text: ['One ', 'two '] }, { drop: true }, { untilFollowed: true }, { text: 'three.' }])
  const frames = await server.chatToEnd(user, `count ${user}`)
  assert.equal(endOf(frames).output, 'One two\n\nthree.')
  assert.equal(frames.filter(named('agent.message')).length, 1)
})

test('the token is in no answer, journal or log', async () => {
  const user = someone()
  const stream = await server.chat(user, `hi ${user}`)
  await stream.ended()
  const timeline = await server.call('GET', `/v1/agent/runs/${runIdOf(stream)}/timeline`, { user })
  const run = await server.call('GET', `/v1/agent/runs/${runIdOf(stream)}`, { user })
  for (const text of [stream.text(), timeline.text, run.text, server.polylog.log()])
    assert.equal(text.includes(gateway.token), false)
})

test('a gateway that is down is replaced by the local engine, and the breaker spares later runs the attempt', async () => {
  const address = await closedAddress()
  const down = await startTestServer({ POLYLOG_ENGINE: 'openclaw', OPENCLAW_URL: address }, provider)
  try {
    const user = someone()
    for (let run = 0; run < 3; run += 1) {
      const frames = await down.chatToEnd(user, 'hello')
      assert.equal(endOf(frames).output, 'Hello from the fake provider.')
      const { body } = await down.call('GET', `/v1/agent/runs/${frames[0]?.json.data.runId}/timeline`, { user })
      const diagnostics = (body.events as { event: string; payload: { code?: string } }[]).filter(
        ({ payload }) => payload.code === 'engine_fallback',
      )
      assert.equal(diagnostics.length, 1)
    }
    const { body } = await down.call('GET', '/v1/health')
    assert.deepEqual(body.engines?.[1], { name: 'openclaw', state: 'paused' })
  } finally {
    await down.polylog.dispose()
  }
})

test('without a fallback the run fails, and nothing was started', async () => {
  const address = await closedAddress()
  const strict = await startTestServer(
    { POLYLOG_ENGINE: 'openclaw', POLYLOG_ENGINE_FALLBACK: 'none', OPENCLAW_URL: address },
    provider,
  )
  try {
    const end = endOf(await strict.chatToEnd(someone(), 'hello'))
    assert.equal(end.status, 'failed')
    assert.equal(end.error.code, 'engine_unavailable')
  } finally {
    await strict.polylog.dispose()
  }
})

test('a server that stops during a remote turn finds it again when it starts', async () => {
  const user = someone()
  const own = await startTestServer(
    { POLYLOG_ENGINE: 'openclaw', OPENCLAW_URL: gateway.baseUrl, OPENCLAW_TOKEN: gateway.token },
    provider,
  )
  await gateway.script(user, [{ text: 'One ' }, { hold: true }, { text: 'two.' }])
  const stream = await own.chat(user, `count ${user}`)
  await stream.waitFor(named('agent.delta'))
  await own.polylog.stop()
  const next = await own.restart()
  try {
    await gateway.release()
    await next.reaches(user, runIdOf(stream), 'succeeded')
    const { body } = await next.call('GET', `/v1/agent/runs/${runIdOf(stream)}/timeline`, { user })
    const events = body.events as { event: string; payload: { output?: string; delta?: string } }[]
    assert.equal(events.at(-1)?.payload.output, 'One\n\ntwo.')
    const deltas = events.filter(({ event }) => event === 'agent.delta').map(({ payload }) => payload.delta)
    assert.equal(deltas.join(''), 'One\n\ntwo.')
    const { started, aborted } = await gateway.state()
    assert.equal(started.filter(({ runId }) => runId === runIdOf(stream)).length, 1)
    assert.equal(aborted.includes(runIdOf(stream)), false)
    await until('no connection is left', async () => ((await gateway.state()).open === 0 ? true : undefined))
  } finally {
    await next.polylog.dispose()
  }
})
