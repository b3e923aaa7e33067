// Resuming after any frame, by header or query: the rest of a run has the same bytes as for an
// uninterrupted client. A cursor that the run never gave out is an error, never a silent
// restart.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  calls,
  endOf,
  hangsAfter,
  named,
  runIdOf,
  says,
  someone,
  toolState,
  sharedTestServer,
} from '../support/test-server.ts'
import { journaled, openStream, type SseStream } from '../support/sse.ts'

const server = sharedTestServer()

/** Requests that start a run and are not answered with a stream. */
const wholeAnswers: Record<string, (text: string) => object> = {
  '/v1/agent/run': (text) => ({ agentId: 'chat_conversation', input: { prompt: text } }),
  '/v1/chat/completions': (text) => ({ model: 'chat_conversation', messages: [{ role: 'user', content: text }] }),
  '/v1/responses': (text) => ({ model: 'chat_conversation', input: text, background: true }),
  '/langgraph/runs': (text) => ({ assistant_id: 'chat_conversation', input: text }),
  '/langgraph/runs/wait': (text) => ({ assistant_id: 'chat_conversation', input: text }),
  '/api/get_chat_response': (text) => ({ last_message: [['User', text]] }),
  '/v1/jobs': () => ({ skill_id: 'demo-report', engine: 'local', input: {} }),
  '/v1/temp-skill-runs': () => ({}),
}

function attach(user: string, runId: string, cursor: { header?: string; query?: string } = {}): Promise<SseStream> {
  const query = cursor.query === undefined ? '' : `&after=${encodeURIComponent(cursor.query)}`
  const headers = cursor.header === undefined ? {} : { 'last-event-id': cursor.header }
  return openStream(`${server.polylog.baseUrl}/v1/agent/runs/${runId}/stream?userId=${user}${query}`, { headers })
}

/** Reads to the end. */
async function rest(user: string, runId: string, cursor: { header?: string; query?: string } = {}): Promise<SseStream> {
  const stream = await attach(user, runId, cursor)
  await stream.ended()
  return stream
}

/** A run with text, parallel tools, a confirmation (an event with two frames), and a failure (another one). */
async function eventfulRun(): Promise<{ user: string; runId: string; stream: SseStream }> {
  const user = someone()
  await server.provider.script(
    [
      [
        { text: ['Let me ', 'see. '] },
        ...calls(['current_time', {}, 'c1'], ['remember_note', { text: '你好 🎉' }, 'c2']),
      ],
      [{ text: ['Half an '] }, { cut: true }],
    ],
    user,
  )
  const stream = await server.chat(user, user)
  const { json } = await stream.waitFor(toolState('awaiting_input'))
  await server.call('POST', `/v1/tool-confirmations/${json.data.confirmationId}/confirm`, { user })
  await stream.ended()
  return { user, runId: runIdOf(stream), stream }
}

describe('after any frame', () => {
  test('the rest is byte for byte what the first client got', async () => {
    const { user, runId, stream } = await eventfulRun()
    const whole = stream.text()
    const frames = journaled(stream.frames)
    assert.ok(
      frames.some(({ id }) => id?.endsWith('.2') === true),
      'the run has events with two frames',
    )

    assert.equal((await rest(user, runId)).text(), whole)
    assert.equal((await rest(user, runId, { query: '0' })).text(), whole)
    for (const { id } of frames.slice(0, -1)) {
      const marker = `id: ${id}\n`
      const expected = whole.slice(whole.indexOf('\n\n', whole.indexOf(marker)) + 2)
      assert.equal((await rest(user, runId, { header: id as string })).text(), expected, `after ${id}`)
    }
    const middle = frames[3]?.id as string
    assert.equal(
      (await rest(user, runId, { query: middle })).text(),
      (await rest(user, runId, { header: middle })).text(),
    )
  })

  test('the number of an event with several frames means all of them', async () => {
    const { user, runId, stream } = await eventfulRun()
    const [first, second, next] = journaled(stream.frames).slice(
      journaled(stream.frames).findIndex(({ id }) => id?.endsWith('.1') === true),
    )

    const afterEvent = await rest(user, runId, { header: String(first?.id?.split('.')[0]) })
    const afterFirstFrame = await rest(user, runId, { header: first?.id as string })

    assert.equal(afterEvent.frames[0]?.id, next?.id)
    assert.equal(afterFirstFrame.frames[0]?.id, second?.id)
  })

  test('of header and query the larger counts, also between frames of one event', async () => {
    const { user, runId, stream } = await eventfulRun()
    const ids = journaled(stream.frames).map(({ id }) => id as string)

    for (const [header, query, next] of [
      [ids[1], ids[4], ids[5]],
      [ids[4], ids[1], ids[5]],
      ['0', ids[2], ids[3]],
      [ids[2], '0', ids[3]],
      ['10', '9', ids[ids.findIndex((id) => Number(id) > 10)]],
    ]) {
      const resumed = await rest(user, runId, { header: header as string, query: query as string })
      assert.equal(resumed.frames[0]?.id, next, `${header} and ${query}`)
    }
  })

  test('a run that is under way is caught up with, and then followed live', async () => {
    const user = someone()
    await server.provider.script(
      [[{ text: ['one ', 'two '] }, { stall: true }, { text: ['three ', 'four'] }, { finish: 'stop' }]],
      user,
    )
    const first = await server.chat(user, user)
    const two = await first.waitFor(({ json }) => json.data.delta === 'two ')

    const late = await attach(user, runIdOf(first))
    const resumed = await attach(user, runIdOf(first), { header: two.id as string })
    await late.waitFor(({ json }) => json.data.delta === 'two ')
    first.leave()
    await server.provider.release()
    await Promise.all([late.ended(), resumed.ended()])

    assert.equal(endOf(late.frames).output, 'one two three four')
    assert.ok(late.text().startsWith(first.text()))
    assert.equal(first.text() + resumed.text(), late.text())
    assert.equal(resumed.frames[0]?.json.data.delta, 'three ')
  })

  test('after the last frame so far of a run under way, only what comes next is sent', async () => {
    const user = someone()
    await server.provider.script([hangsAfter('Hm')], user)
    const first = await server.chat(user, user)
    const delta = await first.waitFor(named('agent.delta'))

    const resumed = await attach(user, runIdOf(first), { header: delta.id as string })
    await server.call('POST', `/v1/agent/runs/${runIdOf(first)}/cancel`, { user })
    await resumed.ended()

    assert.deepEqual(
      resumed.frames.map(({ event }) => event),
      ['agent.end'],
    )
  })
})

describe('at the end', () => {
  test('a cursor at the end of an ended run is 204, so that an EventSource stops', async () => {
    const { user, runId, stream } = await eventfulRun()
    const last = stream.frames.at(-1)?.id as string
    const [seq] = last.split('.')

    for (const cursor of [{ header: last }, { query: last }, { header: seq as string }]) {
      const answer = await rest(user, runId, cursor)
      assert.equal(answer.status, 204)
      assert.equal(answer.text(), '')
    }
    const oneBefore = await rest(user, runId, { header: `${seq}.1` })
    assert.deepEqual(
      oneBefore.frames.map(({ event }) => event),
      ['agent.end'],
    )
  })
})

describe('invalid cursors', () => {
  test('beyond the end, unreadable, or never given out: 400 with a sentence', async () => {
    const { user, runId, stream } = await eventfulRun()
    const last = String(stream.frames.at(-1)?.id?.split('.')[0])
    const beyond = [String(Number(last) + 1), '999999999', `${last}.3`, '1.2', '1.1', '0.1']
    const unreadable = ['abc', '-1', '1.0', '1.2.3', '1e3', '0x1', '1,2', '٣', '99999999999999999999']

    for (const text of [...beyond, ...unreadable]) {
      for (const cursor of [{ header: text }, { query: text }]) {
        if (cursor.header !== undefined && /[^\x20-\x7e]/.test(text)) continue // not a header that HTTP can carry
        const answer = await rest(user, runId, cursor)
        assert.equal(answer.status, 400, JSON.stringify(cursor))
        assert.match(answer.text(), /"code":"unknown_cursor"/)
      }
    }
    const mixed = await rest(user, runId, { header: '1', query: 'abc' })
    assert.equal(mixed.status, 400)
  })

  test('a run of another user, and one that does not exist, is 404 with any cursor', async () => {
    const { runId } = await eventfulRun()

    for (const id of [runId, 'no-such-run']) {
      for (const cursor of [{}, { header: '1' }, { query: '99999' }]) {
        const answer = await rest(someone('stranger'), id, cursor)
        assert.equal(answer.status, 404)
        assert.match(answer.text(), /"code":"run_not_found"/)
      }
    }
  })

  test('an unknown format is 400', async () => {
    const answer = await server.call('GET', '/v1/agent/runs/any/stream?format=morse', { user: someone() })

    assert.deepEqual([answer.status, answer.body.code], [400, 'unknown_format'])
  })
})

describe('POST with Last-Event-ID', () => {
  test('without an Idempotency-Key it is 400, names the re-attach route, and starts nothing', async () => {
    const user = someone()

    const stream = await server.chat(user, user, { 'last-event-id': '3' })
    await stream.ended()

    assert.equal(stream.status, 400)
    assert.match(stream.text(), /"code":"resume_by_post"/)
    assert.match(stream.text(), /\/v1\/agent\/runs\/\{runId\}\/stream/)
    assert.equal((await server.asked(user)).length, 0)
  })

  test('with the key of a run it goes on with that run, after that frame', async () => {
    const user = someone()
    const key = { 'idempotency-key': `key-${user}` }
    await server.provider.script([says('one ', 'two')], user)
    const first = await server.chat(user, user, key)
    await first.ended()
    const ids = journaled(first.frames).map(({ id }) => id as string)

    const resumed = await server.chat(user, user, { ...key, 'last-event-id': ids[2] as string })
    await resumed.ended()
    const atTheEnd = await server.chat(user, user, { ...key, 'last-event-id': ids.at(-1) as string })
    await atTheEnd.ended()
    const beyond = await server.chat(user, user, { ...key, 'last-event-id': '9999' })
    await beyond.ended()

    assert.equal(runIdOf(resumed), runIdOf(first))
    assert.ok(first.text().endsWith(resumed.text()))
    assert.deepEqual(
      resumed.frames.map(({ id }) => id),
      ids.slice(3),
    )
    assert.equal(atTheEnd.status, 204)
    assert.equal(beyond.status, 400)
    assert.equal((await server.asked(user)).length, 1)
  })

  test('with a key that started nothing it is 404, and with another body 409; neither starts a run', async () => {
    const user = someone()
    const key = { 'idempotency-key': `key-${user}` }

    const unknown = await server.chat(user, user, { ...key, 'last-event-id': '1' })
    await unknown.ended()
    await server.chatToEnd(user, 'hello', key)
    const other = await server.chat(user, user, { ...key, 'last-event-id': '1' })
    await other.ended()

    assert.equal(unknown.status, 404)
    assert.equal(other.status, 409)
    assert.equal((await server.asked(user)).length, 0)
  })

  for (const [path, bodyOf] of Object.entries(wholeAnswers)) {
    test(`to ${path}, whose answer is no stream, it is 400 and starts nothing`, async () => {
      const user = someone()
      const headers = { 'last-event-id': '3', 'idempotency-key': `key-${user}` }

      const answer = await server.call('POST', path, { user, headers, body: bodyOf(user) })

      assert.equal(answer.status, 400, answer.text)
      assert.match(answer.text, /"resume_by_post"/)
      assert.deepEqual((await server.call('GET', '/v1/agent/runs', { user })).body, [])
    })
  }

  test('to /a2a it attaches to the task of the same message, and starts none for another', async () => {
    const user = someone()
    await server.provider.script([says('Once.')], user)
    const send = (messageId: string, headers: Record<string, string>) => {
      const message = { messageId, role: 'ROLE_USER', parts: [{ text: user }] }
      const body = { jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params: { message } }
      return server.call('POST', '/a2a', { user, headers: { 'a2a-version': '1.0', ...headers }, body })
    }
    await send(`m-${user}`, {})

    const again = await send(`m-${user}`, { 'last-event-id': '3' })
    const other = await send(`n-${user}`, { 'last-event-id': '3' })

    assert.match(again.text, /TASK_STATE_COMPLETED/)
    assert.match(other.text, /"code":"run_not_found"/)
    assert.equal((await server.asked(user)).length, 1)
  })
})
