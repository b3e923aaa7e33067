// The session API over a real socket: its transport, each event of its description (those of tools are
// in session-tools.test.ts), and that a stream agrees with the journal of its run.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  agentIdOf,
  assertWholeStream,
  attach,
  confirmationIdOf,
  type Message,
  resultOf,
  say,
  sayToEnd,
  sharedSessionServer,
  textOf,
  typesOf,
  withoutHeartbeats,
} from '../support/session-api.ts'
import { openStream } from '../support/sse.ts'
import { calls, hangsAfter, type Json, says, someone, startTestServer } from '../support/test-server.ts'

const { server, script } = sharedSessionServer()

describe('the transport', () => {
  test('is text/event-stream in UTF-8, and each message is one data line with JSON, and nothing else', async () => {
    const user = someone()
    await script(user, says('Grüße, ', '世界\n', '"🙂"'))

    const stream = await say(server, user, user)
    const messages = await stream.toEnd()

    assert.equal(stream.raw.headers['content-type'], 'text/event-stream; charset=utf-8')
    for (const block of stream.raw.text().split('\n\n').slice(0, -1)) assert.match(block, /^data: \{[^\n]*\}$/)
    assert.equal(textOf(messages), 'Grüße, 世界\n"🙂"')
    assertWholeStream(messages)
  })

  test('the simplest client sends a message and nothing else', async () => {
    const stream = await openStream(`${server.polylog.baseUrl}/api/chat/stream`, {
      method: 'POST',
      body: { message: 'hi' },
    })
    await stream.ended()

    const messages = stream.frames.map(({ json }) => json as unknown as Message)
    assertWholeStream(withoutHeartbeats(messages))
    assert.equal(textOf(messages), 'Hello from the fake provider.')
  })
})

describe('1. start', () => {
  test('is the first event of every request, with the session and whether it is new', async () => {
    const user = someone()

    const first = await sayToEnd(server, user, user)
    const second = await sayToEnd(server, user, { message: user, agentId: agentIdOf(first) })

    assert.match(agentIdOf(first), /^agt-[0-9A-Z]{26}$/)
    assert.deepEqual(Object.keys(first[0] as Json), ['type', 'agentId', 'isNewSession', 'timestamp'])
    assert.deepEqual([first[0]?.isNewSession, second[0]?.isNewSession], [true, false])
    assert.equal(agentIdOf(second), agentIdOf(first))
  })

  test('comes before the model has said anything', async () => {
    const user = someone()
    await script(user, hangsAfter())

    const stream = await say(server, user, user)
    const start = await stream.waitFor('start')
    await server.call('POST', `/v1/agent/runs/${stream.runId}/cancel`, { user })

    assert.equal(start.isNewSession, true)
    assert.deepEqual(typesOf(await stream.toEnd()), ['start', 'done'])
  })
})

describe('2. heartbeat', () => {
  test('comes after start at the interval of the setting, counted from 1, also while a tool runs for long', async () => {
    const user = someone()
    await script(user, calls(['slow', {}]), says('That took long.'))

    const stream = await say(server, user, user)
    await stream.toEnd()

    const beats = stream.messages().filter(({ type }) => type === 'heartbeat')
    assert.equal(stream.messages()[0]?.type, 'start')
    assert.deepEqual(
      beats.map(({ count }) => count),
      beats.map((_, index) => index + 1),
    )
    for (const beat of beats) {
      assert.deepEqual(Object.keys(beat), ['type', 'message', 'count', 'timestamp'])
      assert.equal(beat.message, 'processing')
    }
    const types = stream.messages().map(({ type }) => type)
    const during = types.slice(types.indexOf('tool_use'), types.indexOf('tool_result'))
    assert.ok(during.filter((type) => type === 'heartbeat').length >= 3, types.join(' '))
  })

  test('counts from 1 again on each request, and when a client comes back', async () => {
    const user = someone()
    await script(user, hangsAfter('Wait'), hangsAfter('Wait'))
    const stream = await say(server, user, user)
    await stream.waitFor('heartbeat', ({ count }) => count === 3)

    const again = await attach(server, user, stream.runId)
    const first = await again.waitFor('heartbeat')
    await again.waitFor('heartbeat', ({ count }) => count === 2)

    assert.equal(first.count, 1)
    await server.call('POST', `/v1/agent/runs/${stream.runId}/cancel`, { user })
    await again.toEnd()
  })
})

describe('3. text', () => {
  test('is what the model says, piece by piece; all content together is the answer', async () => {
    const user = someone()
    await script(user, says('One', ', two', ', three.'))

    const messages = await sayToEnd(server, user, user)

    const texts = messages.filter(({ type }) => type === 'text')
    assert.deepEqual(
      texts.map(({ content }) => content),
      ['One', ', two', ', three.'],
    )
    assert.deepEqual(Object.keys(texts[0] as Json), ['type', 'content', 'timestamp'])
  })

  test('contains nothing of the model’s reasoning', async () => {
    const user = someone()
    await script(user, [{ reasoning: ['hm', 'hm'] }, ...says('Four.')])

    assert.deepEqual(typesOf(await sayToEnd(server, user, user)), ['start', 'text', 'done'])
  })
})

describe('7. error and 8. done', () => {
  test('a provider that fails is INTERNAL_ERROR with the reason, and done comes last', async () => {
    const user = someone()
    await script(user, [{ status: 500, body: { error: { message: 'no' } } }])

    const messages = await sayToEnd(server, user, user)

    assert.deepEqual(typesOf(messages), ['start', 'error', 'done'])
    assert.deepEqual(Object.keys(messages[1] as Json), ['type', 'error', 'message', 'timestamp'])
    assert.equal(messages[1]?.error, 'INTERNAL_ERROR')
    assert.notEqual(messages[1]?.message, '')
  })

  test('a run that takes too long is REQUEST_TIMEOUT, and its open calls have results before that', async () => {
    const hasty = await startTestServer({ POLYLOG_RUN_MAX_MS: '1500' }, server.provider)
    try {
      const user = someone()
      await script(user, calls(['remember_note', { text: 'x' }], ['no_such_tool', {}]), hangsAfter('So'))
      const stream = await say(hasty, user, { message: user, consent: 'wait' })
      const use = await stream.waitFor('tool_use', ({ tool }) => tool === 'remember_note')
      const id = confirmationIdOf(use)
      await hasty.call('POST', `/v1/tool-confirmations/${id}/confirm`, { user })

      const messages = await stream.toEnd()

      assertWholeStream(messages)
      assert.deepEqual(typesOf(messages).slice(-2), ['error', 'done'])
      assert.equal(messages.at(-2)?.error, 'REQUEST_TIMEOUT')
    } finally {
      await hasty.close()
    }
  })

  test('done names the session again, with its time', async () => {
    const user = someone()

    const messages = await sayToEnd(server, user, user)

    const last = messages.at(-1) as Json
    assert.deepEqual(Object.keys(last), ['type', 'metadata'])
    assert.deepEqual(Object.keys(last.metadata), ['agentId', 'timestamp'])
    assert.equal(last.metadata.agentId, agentIdOf(messages))
  })
})

describe('one journal', () => {
  test('this wire and the timeline agree on the run', async () => {
    const user = someone()
    await script(
      user,
      calls(['lookup', { word: 'tea' }, 'c1'], ['no_such_tool', {}, 'c2'], ['slow', {}, 'c3']),
      says('All ', 'done.'),
    )
    const stream = await say(server, user, user)
    const messages = await stream.toEnd()

    const { body } = await server.call('GET', `/v1/agent/runs/${stream.runId}/timeline`, { user })
    const entries = body.events as Json[]

    const ends: Record<string, [string, boolean]> = {
      succeeded: ['success', false],
      failed: ['failed', false],
    }
    for (const id of ['c1', 'c2', 'c3']) {
      const last = entries.findLast(({ event, payload }) => event === 'tool.state' && payload.toolId === id)?.payload
      const { result, is_error } = resultOf(messages, id)
      assert.deepEqual([result.status, is_error], id === 'c3' ? ['failed', true] : ends[last.status])
      assert.equal(result.message, last.message)
    }
    const said = entries.flatMap(({ event, payload }) => (event === 'agent.delta' ? [payload.delta] : []))
    assert.equal(textOf(messages), said.join(''))
    assert.equal(agentIdOf(messages), body.conversationId)
    assert.equal(messages.at(-1)?.metadata.timestamp, body.endedAtMs)
    assert.equal(messages[0]?.timestamp, body.startedAtMs)
  })

  test('a run is the same bytes when it is read again, also one that was started in another dialect', async () => {
    const user = someone()
    await script(user, calls(['lookup', { word: 'tea' }]), says('Tea.'))
    const stream = await say(server, user, user)
    const messages = await stream.toEnd()

    assert.deepEqual(await (await attach(server, user, stream.runId)).toEnd(), messages)

    const native = await server.chat(user, 'hello', {}, '?format=session')
    await native.ended()
    assertWholeStream(withoutHeartbeats(native.frames.map(({ json }) => json as unknown as Message)))
  })

  test('a disconnect does not stop the run, unless the request asked for that', async () => {
    const [stays, goes] = [someone('stays'), someone('goes')]
    await script(stays, [{ text: 'Half' }, { delayMs: 50 }, { text: ' and half.' }, { finish: 'stop' }])
    await script(goes, hangsAfter('Half'))
    const one = await say(server, stays, stays)
    const other = await say(server, goes, { message: goes, onDisconnect: 'cancel' })
    await one.waitFor('text')
    await other.waitFor('text')

    one.raw.leave()
    other.raw.leave()

    await server.reaches(stays, one.runId, 'succeeded')
    await server.reaches(goes, other.runId, 'cancelled')
    assert.equal(textOf(await (await attach(server, stays, one.runId)).toEnd()), 'Half and half.')
  })
})
