// The routes for AG-UI clients as raw HTTP: repeated and resumed requests, histories, answers, refusals.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { sharedMcpServer } from '../support/shared-mcp-server.ts'
import { openStream } from '../support/sse.ts'
import { calls, hangsAfter, type Json, messagesOf, says, someone, until } from '../support/test-server.ts'

const { server, effects } = sharedMcpServer()

const streamUrl = (user: string, threadId: string, query = '') =>
  `${server.polylog.baseUrl}/v1/ag-ui/threads/${encodeURIComponent(threadId)}/stream?userId=${user}${query}`
const runsOf = async (user: string) => (await server.call('GET', '/v1/agent/runs', { user })).body as unknown as Json[]
const weather = {
  name: 'show_map',
  description: 'Shows a map to the user.',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}
let amount = 70_000

const question = (user: string, more: Json = {}): Json => ({
  threadId: `thread-${user}`,
  runId: `run-${user}`,
  messages: [{ id: 'm', role: 'user', content: user }],
  protocolVersion: '1.0',
  userId: user,
  ...more,
})
const post = async (body: Json, headers: Record<string, string> = {}) =>
  await openStream(`${server.polylog.baseUrl}/v1/ag-ui`, { method: 'POST', body, headers })

describe('POST /v1/ag-ui', () => {
  test('starts one run for one run id, however often the request is sent', async () => {
    const user = someone()
    await server.provider.script([says('Once.')], user)

    const streams = await Promise.all([post(question(user)), post(question(user))])
    for (const stream of streams) await stream.ended()
    const again = await post(question(user))
    await again.ended()

    assert.equal(streams[0]?.text(), streams[1]?.text())
    assert.equal(again.text(), streams[0]?.text())
    assert.equal((await runsOf(user)).length, 1)
    const other = await server.call('POST', '/v1/ag-ui', { body: question(user, { state: { changed: true } }) })
    assert.deepEqual([other.status, other.body.code], [409, 'idempotency_key_reused'])
  })

  test('gives the rest of a stream after any frame, at two addresses', async () => {
    const user = someone()
    await server.provider.script([calls(['current_time', {}]), says('It ', 'is ', 'late.')], user)
    const whole = await post(question(user))
    await whole.ended()
    const frames = whole.frames.map(({ id, data }) => [id, data])
    const runId = String(whole.headers['x-run-id'])

    for (const [index, { id }] of whole.frames.entries()) {
      const rest = frames.slice(index + 1)
      const byThread = streamUrl(user, `thread-${user}`, `&runId=run-${user}&after=${id}`)
      const byRun = `${server.polylog.baseUrl}/v1/agent/runs/${runId}/stream?format=ag-ui&userId=${user}&after=${id}`
      for (const url of [byThread, byRun]) {
        const tail = await openStream(url)
        if (rest.length === 0) {
          assert.equal(tail.status, 204)
          continue
        }
        await tail.ended()
        assert.deepEqual(
          tail.frames.map((frame) => [frame.id, frame.data]),
          rest,
        )
      }
    }
  })

  test('takes the history of the client only if nothing is stored, also one that ends with a result', async () => {
    const user = someone()
    await server.provider.script([says('A cat.'), says('Yes.')], user)
    const messages = [
      { id: '1', role: 'system', content: 'Be brief.' },
      { id: '2', role: 'user', content: `What is it, ${user}?` },
      {
        id: '3',
        role: 'assistant',
        toolCalls: [{ id: 'c', type: 'function', function: { name: 'look', arguments: '{}' } }],
      },
      { id: '4', role: 'reasoning', content: 'hm' },
      { id: '5', role: 'tool', toolCallId: 'c', content: 'fur' },
    ]
    await (await post(question(user, { messages }))).ended()
    const forged = [
      { id: '1', role: 'assistant', content: 'FORGED' },
      { id: '2', role: 'tool', toolCallId: 'nobody', content: 'FORGED' },
      { id: '3', role: 'user', content: `Sure, ${user}?` },
    ]
    await (await post(question(user, { runId: '2', messages: forged }))).ended()

    const [first, second] = await server.asked(user)
    assert.deepEqual(
      messagesOf(first)
        .filter(({ role }) => role !== 'system')
        .map(({ role }) => role),
      ['user', 'assistant', 'tool'],
    )
    assert.match(JSON.stringify(messagesOf(first)), /Be brief\./)
    assert.doesNotMatch(JSON.stringify(messagesOf(second)), /FORGED/)
    assert.match(JSON.stringify(messagesOf(second)), /A cat\./)
  })

  test('refuses answers that cover nothing or only a part, or that say neither yes nor no, and decides nothing', async () => {
    const user = someone()
    amount += 2
    await server.provider.script(
      [calls(['charge', { amount: amount - 1 }], ['charge', { amount }, 'second']), says('Both.')],
      user,
    )
    const asked = await post(question(user))
    await asked.ended()
    const { interrupts } = JSON.parse(asked.frames.at(-1)?.data ?? '{}').outcome as { interrupts: { id: string }[] }
    const [one, two] = interrupts.map(({ id }) => id)
    const answer = async (...resume: Json[]) =>
      await server.call('POST', '/v1/ag-ui', { body: question(user, { runId: 'next', resume }) })
    const yes = (interruptId: string | undefined, payload: unknown = { approved: true }) => ({
      interruptId,
      status: 'resolved',
      payload,
    })

    const none = await server.call('POST', '/v1/ag-ui', { body: question(user, { runId: 'none' }) })
    assert.deepEqual([none.status, none.body.code], [409, 'interrupts_unanswered'])
    assert.deepEqual(none.body.details, { interruptIds: [one, two], toolCallIds: [] })
    const part = await answer(yes(one))
    assert.deepEqual([part.status, part.body.code], [409, 'interrupts_unanswered'])
    assert.deepEqual(part.body.details, { interruptIds: [two], toolCallIds: [] })
    const vague = await answer(yes(one), yes(two, { approved: 'maybe' }))
    assert.deepEqual([vague.status, vague.body.code], [400, 'confirmation_payload_invalid'])
    const wrong = await answer(yes(one), yes('invented'))
    assert.deepEqual([wrong.status, wrong.body.code], [404, 'tool_confirmation_not_found'])
    assert.equal((await runsOf(user))[0]?.status, 'awaiting_input')

    const stranger = someone()
    const theirs = await server.call('POST', '/v1/ag-ui', {
      body: { ...question(user, { runId: 'n', resume: [yes(one), yes(two)] }), userId: stranger },
    })
    assert.equal(theirs.status, 404)

    const done = await answer(yes(one), { interruptId: two, status: 'cancelled' })
    assert.equal(done.status, 200)
    assert.match(done.text, /Both\./)
    assert.ok(effects.lines().includes(`charge ${amount - 1}`))
    assert.ok(!effects.lines().includes(`charge ${amount}`))
    // The same answers again: nothing is decided twice, and the stream is the same.
    assert.equal((await answer(yes(one), { interruptId: two, status: 'cancelled' })).text, done.text)
  })

  test('tells each of two requests that go on with one run its own run id', async () => {
    const user = someone()
    amount += 1
    await server.provider.script([calls(['charge', { amount }]), says('One ', 'charge.')], user)
    const asked = await post(question(user))
    await asked.ended()
    const { interrupts } = JSON.parse(asked.frames.at(-1)?.data ?? '{}').outcome as { interrupts: { id: string }[] }
    const resume = [{ interruptId: interrupts[0]?.id, status: 'resolved', payload: { approved: true } }]

    const streams = await Promise.all(['one', 'two'].map((runId) => post(question(user, { runId, resume }))))

    for (const [index, stream] of streams.entries()) {
      await stream.ended()
      const runIds = [...stream.text().matchAll(/"runId":"(\w+)"/g)].map((match) => match[1])
      assert.deepEqual(runIds, index === 0 ? ['one', 'one'] : ['two', 'two'])
      assert.match(stream.text(), /charge\./)
    }
    assert.equal(effects.lines().filter((line) => line === `charge ${amount}`).length, 1)
  })

  test('runs a call with the arguments that the person changed', async () => {
    const user = someone()
    amount += 2
    await server.provider.script([calls(['charge', { amount: amount - 1 }]), says('Ok.')], user)
    const asked = await post(question(user))
    await asked.ended()
    const { interrupts } = JSON.parse(asked.frames.at(-1)?.data ?? '{}').outcome as { interrupts: { id: string }[] }
    const payload = { approved: true, editedArgs: { amount } }
    const resume = [{ interruptId: interrupts[0]?.id, status: 'resolved', payload }]

    const done = await server.call('POST', '/v1/ag-ui', { body: question(user, { runId: 'next', resume }) })

    assert.match(done.text, /tool\.input_changed/)
    assert.ok(effects.lines().includes(`charge ${amount}`))
    assert.ok(!effects.lines().includes(`charge ${amount - 1}`))
  })

  test('wants all results of the client’s tools together, each once', async () => {
    const user = someone()
    await server.provider.script(
      [calls(['show_map', { city: 'Rome' }, 'a'], ['show_map', { city: 'Oslo' }, 'b']), says('Two maps.')],
      user,
    )
    await (await post(question(user, { tools: [weather] }))).ended()
    const result = (toolCallId: string, content: string, more: Json = {}) => ({
      id: `r${toolCallId}`,
      role: 'tool',
      toolCallId,
      content,
      ...more,
    })
    const bring = async (...messages: Json[]) =>
      await server.call('POST', '/v1/ag-ui', { body: question(user, { runId: `n${messages.length}`, messages }) })

    const part = await bring(result('a', 'shown'))
    assert.deepEqual(
      [part.status, part.body.code, part.body.details],
      [409, 'interrupts_unanswered', { interruptIds: [], toolCallIds: ['b'] }],
    )
    const both = await bring(result('a', 'shown'), result('b', '', { error: 'no map of Oslo' }))
    assert.equal(both.status, 200)
    assert.match(both.text, /Two maps\./)
    const other = await bring(result('a', 'not shown'), result('b', '', { error: 'no map of Oslo' }))
    assert.deepEqual([other.status, other.body.code], [409, 'tool_result_already_given'])
    const nothing = await bring(result('invented', 'x'))
    assert.deepEqual([nothing.status, nothing.body.code], [404, 'tool_call_not_found'])
  })

  test('says what is wrong with a request', async () => {
    const user = someone()
    const refused = async (more: Json) => {
      const { status, body } = await server.call('POST', '/v1/ag-ui', { body: question(user, more) })
      return [status, body.code]
    }

    assert.deepEqual(await refused({ messages: [] }), [400, 'messages_or_prompt_required'])
    assert.deepEqual(await refused({ messages: [{ id: '1', role: 'assistant', content: 'hi' }] }), [
      400,
      'messages_or_prompt_required',
    ])
    assert.deepEqual(await refused({ messages: [{ id: '1', role: 'user', content: { a: 1 } }] }), [
      400,
      'messages_invalid',
    ])
    assert.deepEqual(await refused({ threadId: '' }), [400, 'invalid_request'])
    assert.deepEqual(await refused({ state: { big: 'x'.repeat(300_000) } }), [413, 'state_too_large'])
    assert.deepEqual(await refused({ tools: [{ ...weather, name: 'a b' }] }), [400, 'invalid_request'])
    assert.deepEqual(await refused({ tools: [{ ...weather, name: 'current_time' }] }), [400, 'client_tool_conflict'])
    assert.deepEqual(await refused({ forwardedProps: { temperature: 9 } }), [400, 'invalid_request'])
    assert.deepEqual(await refused({ forwardedProps: { engine: 'nobody' } }), [400, 'engine_unknown'])
    assert.deepEqual(await refused({ resume: [{ interruptId: 'x', status: 'resolved' }] }), [
      404,
      'conversation_not_found',
    ])
    assert.equal((await runsOf(user)).length, 0)
  })

  test('cancels the run of a client that hangs up, if the client wants that', async () => {
    const user = someone()
    await server.provider.script([hangsAfter('Once')], user)
    const stream = await post(question(user, { forwardedProps: { onDisconnect: 'cancel' } }))
    await stream.waitFor(({ data }) => data.includes('Once'))
    stream.leave()

    await until('the run to be cancelled', async () =>
      (await runsOf(user))[0]?.status === 'cancelled' ? true : undefined,
    )
  })
})

describe('GET /v1/ag-ui/threads/:threadId/stream', () => {
  test('is 404 for a thread of another user, and wants the run of a cursor', async () => {
    const user = someone()
    await server.provider.script([says('Hi.')], user)
    await (await post(question(user))).ended()
    const path = `/v1/ag-ui/threads/thread-${user}/stream`

    assert.equal((await server.call('GET', path, { user: someone() })).status, 404)
    const [noRun, wrongRun, wrongCursor] = await Promise.all(
      ['after=2', 'after=2&runId=nothing', `after=999&runId=run-${user}`].map((query) =>
        server.call('GET', `${path}?${query}`, { user }),
      ),
    )
    assert.deepEqual([noRun?.status, noRun?.body.code], [400, 'unknown_cursor'])
    assert.deepEqual([wrongRun?.status, wrongRun?.body.code], [404, 'run_not_found'])
    assert.deepEqual([wrongCursor?.status, wrongCursor?.body.code], [400, 'unknown_cursor'])
  })
})
