// Streams together with shutdowns and other requests: which runs a shutdown does not cancel, what
// a resumed POST must not find, and what a browser must not show.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { describe, test } from 'node:test'
import {
  calls,
  endOf,
  hangsAfter,
  named,
  runIdOf,
  says,
  someone,
  startTestServer,
  until,
} from '../support/test-server.ts'
import { startJob, sharedJobServer } from '../support/jobs.ts'
import { journaled, openStream } from '../support/sse.ts'

const { server: shared } = sharedJobServer()

describe('a server that goes down', () => {
  test('cancels no run, not even one that is to be cancelled when its client leaves', async () => {
    const server = await startTestServer({}, shared.provider)
    const user = someone()
    await shared.provider.script([hangsAfter('So far '), says('So far ', 'so good.')], user)
    const stream = await server.chat(user, { input: user, onDisconnect: 'cancel' })
    await stream.waitFor(named('agent.delta'))

    assert.equal(await server.polylog.stop(), 0)
    assert.equal((await stream.ended()).cut, false)

    const again = await server.restart()
    try {
      const run = await again.reaches(user, runIdOf(stream), 'succeeded', 'failed', 'cancelled')
      assert.deepEqual([run.status, run.cancelRequested], ['succeeded', false])
    } finally {
      await again.close()
    }
  })

  test('does not wait for a reader that has stopped reading, and does not cancel its run', async () => {
    const server = await startTestServer({}, shared.provider)
    const user = someone()
    await shared.provider.script(
      [[{ flood: { count: 400, text: 'x'.repeat(64 * 1024) } }, { stall: true }], says('done')],
      user,
    )
    const request = httpRequest(`${server.polylog.baseUrl}/v1/agent/chat`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      agent: false,
    })
    request.on('error', () => undefined)
    request.end(JSON.stringify({ userId: user, input: user, onDisconnect: 'cancel' }))
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    response.on('error', () => undefined)
    const runId = String(response.headers['x-run-id'])
    // Everything was said, and nothing of it was read here.
    await until('the provider to be done', async () =>
      (await shared.asked(user)).find(({ flooded }) => flooded === 400),
    )

    assert.equal(await server.polylog.stop(), 0)
    request.destroy()

    const again = await server.restart()
    try {
      const { body } = await again.call('GET', `/v1/agent/runs/${runId}`, { user })
      assert.equal(body.cancelRequested, false)
      await again.reaches(user, runId, 'succeeded')
    } finally {
      await again.close()
    }
  })
})

test('a POST with Last-Event-ID and the key of another body resumes nothing', async () => {
  for (const path of ['/v1/agent/chat', '/api/chat/stream', '/api/get_chat_response_stream']) {
    const user = someone()
    const key = { 'idempotency-key': `key-${user}` }
    const body = (text: string) => ({ userId: user, client_id: user, input: text, message: text })
    const first = await shared.call('POST', path, { user, body: body(`mine ${user}`), headers: key })
    assert.equal(first.status, 200, first.text)

    const other = await shared.call('POST', path, {
      user,
      body: body('something else'),
      headers: { ...key, 'last-event-id': '1' },
    })
    const same = await shared.call('POST', path, {
      user,
      body: body(`mine ${user}`),
      headers: { ...key, 'last-event-id': '1' },
    })

    assert.equal(other.status, 409, `${path}: ${other.text.slice(0, 200)}`)
    assert.doesNotMatch(other.text, new RegExp(user.replace('.', '\\.')), path)
    assert.equal(same.status, 200, path)
  }
})

describe('text of a model', () => {
  const page = '<script>alert(document.cookie)</script>'

  test('that a job kept is a download that a browser neither sniffs nor runs', async () => {
    const user = someone()
    await shared.provider.script(
      [calls(['save_artifact', { path: 'page.html', content: page }]), says('{"done":true}')],
      user,
    )
    const job = await startJob(shared, 'jobs', user)
    await job.reaches('succeeded')

    const artifact = await job.get('/artifacts/page.html')
    const bundle = await job.get('/bundle')

    assert.equal(artifact.text, page)
    for (const { status, headers } of [artifact, bundle]) {
      assert.equal(status, 200)
      assert.match(headers.get('content-disposition') ?? '', /^attachment/)
      assert.equal(headers.get('x-content-type-options'), 'nosniff')
      assert.match(headers.get('content-security-policy') ?? '', /default-src 'none'; sandbox/)
    }
    assert.match(artifact.headers.get('content-type') ?? '', /^text\/plain/)
  })
})

test('a run that was read to its end while its stream is resumed with a stale cursor gives only what follows it', async () => {
  const user = someone()
  await shared.provider.script([[{ text: ['a', 'b', 'c', 'd'] }, { finish: 'stop' }]], user)
  const frames = await shared.chatToEnd(user, user)
  const ids = journaled(frames).map(({ id }) => String(id))
  const runId = String(frames[0]?.json.data.runId)
  const whole = await openStream(`${shared.polylog.baseUrl}/v1/agent/runs/${runId}/stream?userId=${user}`)
  await whole.ended()

  for (const [at, id] of ids.slice(0, -1).entries()) {
    const resumed = await openStream(
      `${shared.polylog.baseUrl}/v1/agent/runs/${runId}/stream?userId=${user}&after=${id}`,
    )
    await resumed.ended()
    assert.deepEqual(
      journaled(resumed.frames).map((frame) => frame.id),
      ids.slice(at + 1),
    )
    assert.ok(whole.text().endsWith(resumed.text()))
    assert.equal(endOf(resumed.frames).output, 'abcd')
  }
})
