// SIGTERM drains: no new runs, streams end cleanly, and unfinished runs go on at the next start
// as if there had been no stop.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type FakeFeishu, startFakeFeishu } from '../support/fake-feishu.ts'
import { type FakeProvider, startFakeProvider } from '../support/fake-provider.ts'
import {
  calls,
  endOf,
  hangsAfter,
  type TestServer,
  type Json,
  named,
  runIdOf,
  says,
  someone,
  startTestServerProcess,
  toolState,
  until,
} from '../support/test-server.ts'
import { errand, upload, zipped } from '../support/jobs.ts'
import { journaled, openStream } from '../support/sse.ts'

let provider: FakeProvider

before(async () => {
  provider = await startFakeProvider()
})

after(() => provider.stop())

const attach = (server: TestServer, user: string, runId: string, after = '0') =>
  openStream(`${server.polylog.baseUrl}/v1/agent/runs/${runId}/stream?userId=${user}&after=${after}`)

test('SIGTERM ends streams cleanly, and each kind of unfinished run goes on at the next start', async () => {
  const server = await startTestServerProcess({}, provider)
  const user = someone()
  const mark = (name: string) => `${name} ${user}`

  await provider.script([hangsAfter('So far '), says('So far ', 'so good.')], mark('speaking'))
  const speaking = await server.chat(user, { input: mark('speaking'), conversationId: mark('conversation') })
  await speaking.waitFor(named('agent.delta'))

  const queued = await server.chat(user, { input: mark('queued'), conversationId: mark('conversation') })
  await queued.waitFor(named('agent.start'))

  await provider.script([calls(['remember_note', { text: 'x' }]), says('Saved.')], mark('asking'))
  const asking = await server.chat(user, mark('asking'))
  const { json } = await asking.waitFor(toolState('awaiting_input'))
  await server.reaches(user, runIdOf(asking), 'awaiting_input')

  const exitCode = await server.polylog.stop()
  const streams = [speaking, queued, asking]
  const cuts = await Promise.all(streams.map(async (stream) => (await stream.ended()).cut))

  assert.equal(exitCode, 0)
  assert.deepEqual(cuts, [false, false, false])
  for (const stream of streams) assert.equal(stream.frames.some(named('agent.end')), false)

  const again = await server.restart()
  try {
    const lastId = journaled(speaking.frames).at(-1)?.id as string
    const resumed = await attach(again, user, runIdOf(speaking), lastId)
    await resumed.ended()
    await again.reaches(user, runIdOf(queued), 'succeeded')
    await again.call('POST', `/v1/tool-confirmations/${json.data.confirmationId}/confirm`, { user })
    const whole = await attach(again, user, runIdOf(asking))
    await whole.ended()

    // What was shown before is not shown again; what was cut off is.
    assert.deepEqual(
      resumed.frames.filter(named('agent.delta')).map((frame) => frame.json.data.delta),
      ['so good.'],
    )
    assert.equal(endOf(resumed.frames).output, 'So far so good.')
    const everything = await attach(again, user, runIdOf(speaking))
    await everything.ended()
    assert.equal(everything.text(), speaking.text() + resumed.text())
    assert.equal((await again.call('GET', `/v1/agent/runs/${runIdOf(speaking)}`, { user })).body.attempt, 2)
    assert.equal(endOf(whole.frames).output, 'Saved.')
    assert.ok(whole.text().startsWith(asking.text()))
    const { body } = await again.call('GET', `/v1/conversations/${encodeURIComponent(mark('conversation'))}/messages`, {
      user,
    })
    assert.deepEqual(
      (body as unknown as Json[]).filter(({ role }) => role === 'assistant').map(({ content }) => content),
      ['So far so good.', 'Hello from the fake provider.'],
    )
  } finally {
    await again.close()
  }
})

describe('while a tool sends something', () => {
  let feishu: FakeFeishu

  before(async () => {
    feishu = await startFakeFeishu()
  })

  after(() => feishu.stop())

  const sentBy = async (user: string) => (await feishu.sent()).filter(({ text }) => text.includes(user))

  /** A run whose confirmed message is on its way; Feishu takes its time for each of its two answers. */
  async function sending(delayMs: number) {
    await feishu.behave({})
    const server = await startTestServerProcess(
      { FEISHU_APP_ID: feishu.appId, FEISHU_APP_SECRET: feishu.appSecret, FEISHU_BASE_URL: feishu.baseUrl },
      provider,
    )
    const user = someone()
    await provider.script([calls(['send_feishu_message', { recipientId: 'ou_1', message: user }]), says('Sent.')], user)
    const stream = await server.chat(user, user)
    const { json } = await stream.waitFor(toolState('awaiting_input'))
    await feishu.behave({ delayMs })
    await server.call('POST', `/v1/tool-confirmations/${json.data.confirmationId}/confirm`, { user })
    await stream.waitFor(() => stream.frames.filter(toolState('running')).length === 2)
    return { server, user, stream, runId: runIdOf(stream) }
  }

  test('SIGTERM lets it finish, takes no new run meanwhile, and the next start does not send it again', async () => {
    const { server, user, stream, runId } = await sending(400)

    const stopped = server.polylog.stop()
    await until('the stop to begin', () => (server.polylog.log().includes('stopping') ? true : undefined))
    const refused = await server.call('POST', '/v1/agent/chat', { user, body: { input: 'one more' } })
    const others = await Promise.all(
      [
        ['/v1/jobs', { skill_id: 'action-items' }],
        [`/v1/jobs`, { skill_id: 'text-digest', input: { text: 'x' } }],
        ['/v1/temp-skill-runs', {}],
        ['/api/get_chat_response', { message: 'one more' }],
        ['/api/ab/compare', { message: 'one more', config_a: 'default', config_b: 'default' }],
        ['/api/chat/stream', { message: 'one more' }],
      ].map(async ([path, body]) => (await server.call('POST', String(path), { user, body })).status),
    )
    const exitCode = await stopped
    const { cut } = await stream.ended()

    assert.deepEqual([refused.status, refused.body.code], [503, 'shutting_down'])
    assert.ok(Number(refused.headers.get('retry-after')) >= 1)
    assert.deepEqual(new Set(others), new Set([503]), 'no family takes a run')
    assert.deepEqual([exitCode, cut], [0, false])
    assert.equal(stream.frames.at(-1)?.json.data.status, 'succeeded')
    await feishu.behave({})
    const again = await server.restart()
    try {
      await again.reaches(user, runId, 'succeeded')
      assert.deepEqual(
        (await sentBy(user)).map(({ requests }) => requests),
        [1],
      )
      assert.equal(
        (await server.provider.requests()).filter(({ body }) => JSON.stringify(body).includes(user)).length,
        2,
      )
    } finally {
      await again.close()
    }
  })

  test('a server that goes down takes no job and no upload, and a job that waits for its upload takes it after the restart', async () => {
    const { server, user } = await sending(1500)
    const create = (family: string, body: Json) => server.call('POST', `/v1/${family}`, { user, body })
    const held = String((await create('temp-skill-runs', { input: { what: user } })).body.request_id)
    const path = `/v1/temp-skill-runs/${held}`
    const send = (where: TestServer) => upload(where, path, user, { skill_package: zipped(errand()) })

    const stopped = server.polylog.stop()
    await until('the stop to begin', () => (server.polylog.log().includes('stopping') ? true : undefined))
    const refused = await Promise.all([
      create('jobs', { skill_id: 'text-digest', input: { text: 'x' } }),
      create('temp-skill-runs', {}),
      send(server),
    ])
    await stopped

    for (const { status, body, headers } of refused) {
      assert.deepEqual([status, body.code, body.detail.code], [503, 'shutting_down', 'SHUTTING_DOWN'])
      assert.ok(Number(headers.get('retry-after')) >= 1)
    }
    await feishu.behave({})
    const again = await server.restart()
    try {
      const runs = (await again.call('GET', '/v1/agent/runs', { user })).body as unknown as Json[]
      assert.equal(runs.length, 2)
      await provider.script([says('{"done":true}')], user)
      assert.equal((await send(again)).status, 200)
      await again.reaches(user, held, 'succeeded')
    } finally {
      await again.close()
    }
  })

  test('a later second SIGTERM stops at once; for a message that may have been sent a person is asked, and it is not sent again', async () => {
    const { server, user, runId } = await sending(5_000)

    const stopped = server.polylog.stop()
    await until('the stop to begin', () => (server.polylog.log().includes('stopping') ? true : undefined))
    let exitCode: number | null | undefined
    void stopped.then((code) => (exitCode = code))
    // Those of the first second are the same signal; the first one after it ends the process.
    await until('the process to end', () => {
      if (exitCode === undefined) process.kill(server.polylog.pid, 'SIGTERM')
      return exitCode !== undefined ? true : undefined
    })
    await feishu.behave({})

    assert.equal(exitCode, 1)
    assert.match(server.polylog.log(), /a second signal: ending at once/)
    const again = await server.restart()
    try {
      await again.reaches(user, runId, 'awaiting_input')
      const [asked] = (await again.call('GET', `/v1/tool-confirmations?status=pending&runId=${runId}`, { user }))
        .body as unknown as Json[]
      assert.equal(asked?.outcome, 'unknown')
      await again.call('POST', `/v1/tool-confirmations/${asked?.id}/reject`, { user })
      await again.reaches(user, runId, 'succeeded')
      assert.deepEqual(await sentBy(user), [])
    } finally {
      await again.close()
    }
  })
})

test('SIGTERM with nothing to do ends the process, in order', async () => {
  const idle = await startTestServerProcess({}, provider)
  assert.equal((await idle.call('GET', '/v1/health')).status, 200)

  assert.equal(await idle.polylog.stop(), 0)

  assert.match(idle.polylog.log(), /stopping/)
  await idle.close()
})

test('a server that was told to stop is not ready at once, and takes requests until POLYLOG_STOP_DELAY_MS is over', async () => {
  const server = await startTestServerProcess({ POLYLOG_STOP_DELAY_MS: '600000' }, provider)
  try {
    assert.deepEqual((await server.call('GET', '/v1/ready')).body.status, 'ready')
    process.kill(server.polylog.pid, 'SIGTERM')
    const refusal = await until('a server that is not ready', async () => {
      const answer = await server.call('GET', '/v1/ready')
      return answer.status === 503 ? answer : undefined
    })

    assert.equal(refusal.body.code, 'shutting_down')
    assert.notEqual(refusal.headers.get('retry-after'), null)
    assert.equal((await server.call('GET', '/v1/health')).status, 200)
    const user = someone()
    await provider.script([says('Still here.')], user)
    const chat = await server.chat(user, user)
    await chat.ended()
    assert.equal(endOf(chat.frames).output, 'Still here.')
    assert.match((await server.call('GET', '/metrics')).text, /^polylog_ready 0$/m)
  } finally {
    await server.polylog.kill()
    await server.close()
  }
})
