// The specification of the agent chat (agent-chat-sse), scenario by scenario, against the running
// server over real sockets, once with each client of the OpenAI wire.

import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { type FakeFeishu, startFakeFeishu } from '../support/fake-feishu.ts'
import {
  calls,
  endOf,
  hangsAfter,
  type Json,
  named,
  runIdOf,
  says,
  someone,
  toolState,
  toolStatuses,
  until,
  sharedTestServer,
} from '../support/test-server.ts'
import { eventNames, journaled, type SseFrame } from '../support/sse.ts'

for (const client of ['lean', 'ai-sdk']) {
  describe(`agent-chat-sse (${client})`, () => scenarios(client))
}

function scenarios(client: string): void {
  let feishu: FakeFeishu
  const server = sharedTestServer(async () => {
    feishu = await startFakeFeishu()
    return {
      POLYLOG_OPENAI_CLIENT: client,
      POLYLOG_PING_MS: '40',
      FEISHU_APP_ID: feishu.appId,
      FEISHU_APP_SECRET: feishu.appSecret,
      FEISHU_BASE_URL: feishu.baseUrl,
    }
  })
  after(() => feishu?.stop())

  describe('CHAT-010 User can create and list conversations', () => {
    test('CHAT-010 POST /v1/conversations answers 200 with id, title, createdAt and updatedAt', async () => {
      const user = someone()

      const titled = await server.call('POST', '/v1/conversations', { user, body: { title: 'Plans' } })
      const empty = await server.call('POST', '/v1/conversations', { user, body: {} })
      const without = await server.call('POST', '/v1/conversations', { user })

      for (const { status, body } of [titled, empty, without]) {
        assert.equal(status, 200)
        assert.equal(typeof body.id, 'string')
        assert.equal(new Date(body.createdAt).toISOString(), body.createdAt)
        assert.equal(new Date(body.updatedAt).toISOString(), body.updatedAt)
        assert.equal(body.createdAtMs, Date.parse(body.createdAt))
      }
      assert.equal(titled.body.title, 'Plans')
      assert.equal(empty.body.title, null)
      assert.equal(new Set([titled, empty, without].map(({ body }) => body.id)).size, 3)
    })

    test('CHAT-010 GET /v1/conversations lists the own conversations by updatedAt, newest first', async () => {
      const user = someone()
      const ids: string[] = []
      for (const title of ['a', 'b', 'c']) {
        ids.push((await server.call('POST', '/v1/conversations', { user, body: { title } })).body.id)
      }
      await server.call('POST', '/v1/conversations', { user: someone('stranger') })
      // Using the oldest one makes it the newest.
      await server.chatToEnd(user, { input: 'hello', conversationId: ids[0] })

      const { status, body } = await server.call('GET', '/v1/conversations', { user })

      assert.equal(status, 200)
      const listed = body as unknown as Json[]
      assert.deepEqual(new Set(listed.map(({ id }) => id as string)), new Set(ids))
      assert.equal(listed[0]?.id, ids[0])
      const times = listed.map(({ updatedAtMs }) => updatedAtMs as number)
      assert.deepEqual(
        times,
        times.toSorted((left, right) => right - left),
      )
    })
  })

  describe('CHAT-020 User can fetch message history', () => {
    test('CHAT-020 GET /v1/conversations/:id/messages gives the messages by createdAt, oldest first', async () => {
      const user = someone()
      const { id } = (await server.call('POST', '/v1/conversations', { user })).body
      await server.provider.script([says('First answer.'), says('Second answer.')], user)
      await server.chatToEnd(user, { input: `first ${user}`, conversationId: id })
      await server.chatToEnd(user, { input: `second ${user}`, conversationId: id })

      const { status, body } = await server.call('GET', `/v1/conversations/${id}/messages`, { user })

      assert.equal(status, 200)
      const messages = body as unknown as Json[]
      assert.deepEqual(
        messages.map(({ role, content }) => [role, content]),
        [
          ['user', `first ${user}`],
          ['assistant', 'First answer.'],
          ['user', `second ${user}`],
          ['assistant', 'Second answer.'],
        ],
      )
      const times = messages.map(({ createdAtMs }) => createdAtMs as number)
      assert.deepEqual(
        times,
        times.toSorted((left, right) => left - right),
      )
    })

    test('CHAT-020 the history of an unknown conversation, or of another user’s, is 404', async () => {
      const { id } = (await server.call('POST', '/v1/conversations', { user: someone() })).body

      for (const foreign of [id, 'no-such-conversation']) {
        const answer = await server.call('GET', `/v1/conversations/${foreign}/messages`, { user: someone() })

        assert.equal(answer.status, 404)
        assert.equal(answer.body.code, 'conversation_not_found')
      }
    })
  })

  describe('CHAT-030 Agent chat streams SSE events', () => {
    test('CHAT-030 a successful run streams start → delta → message → end', async () => {
      const user = someone()
      await server.provider.script([says('Hel', 'lo, ', '世界')], user)

      const stream = await server.chat(user, { input: `hi ${user}` })
      await stream.ended()

      assert.equal(stream.status, 200)
      assert.equal(stream.headers['content-type'], 'text/event-stream; charset=utf-8')
      const names = eventNames(stream.frames)
      assert.deepEqual(names, [
        'agent.start',
        'context.patch',
        'agent.delta',
        'agent.delta',
        'agent.delta',
        'agent.message',
        'agent.end',
      ])
      const [start, patch, ...rest] = journaled(stream.frames).map(({ json }) => json.data)
      const [message, end] = rest.slice(-2)
      assert.equal(start?.runId, runIdOf(stream))
      assert.equal(start?.input, `hi ${user}`)
      assert.equal(new Date(start?.createdAt).toISOString(), start?.createdAt)
      assert.equal(patch?.layer, 'session')
      assert.equal(patch?.patch.conversationId, start?.conversationId)
      assert.equal(message?.role, 'assistant')
      assert.equal(message?.content, 'Hello, 世界')
      assert.deepEqual(
        rest.slice(0, -2).map(({ id, delta, role }) => [id, delta, role]),
        ['Hel', 'lo, ', '世界'].map((delta) => [message?.id, delta, 'assistant']),
      )
      assert.equal(end?.status, 'succeeded')
      assert.equal(end?.runId, start?.runId)
      assert.equal(end?.output, 'Hello, 世界')
      assert.equal(new Date(end?.finishedAt).toISOString(), end?.finishedAt)
    })

    test('CHAT-030 every data line is JSON {event, data}, named as its SSE event, and every frame but a ping has an id', async () => {
      const user = someone()
      await server.provider.script([calls(['current_time', {}]), says('It is late.')], user)

      const frames = await server.chatToEnd(user, `time? ${user}`)

      for (const frame of frames) {
        assert.deepEqual(Object.keys(frame.json), ['event', 'data'])
        assert.equal(frame.json.event, frame.event)
        assert.equal(frame.id === undefined, frame.event === 'ping')
      }
      const addresses = journaled(frames).map((frame) => (frame.id ?? '').split('.').map(Number))
      for (const [index, [seq = 0, part = 0]] of addresses.slice(1).entries()) {
        const [seqBefore = 0, partBefore = 0] = addresses[index] ?? []
        assert.ok(seq > seqBefore || (seq === seqBefore && part > partBefore), 'ids grow')
      }
    })

    test('CHAT-030 a request that the provider refuses ends with error, then agent.end failed, with the same code and message', async () => {
      const user = someone()
      await server.provider.script([[{ status: 500, body: { error: { message: 'boom' } } }]], user)

      const frames = await server.chatToEnd(user, `hi ${user}`)

      assertFailed(frames)
    })

    test('CHAT-030 an answer that breaks off in the middle ends with error, then agent.end failed', async () => {
      const user = someone()
      await server.provider.script([[{ text: ['half an ans'] }, { cut: true }]], user)

      const frames = await server.chatToEnd(user, `hi ${user}`)

      assertFailed(frames)
      assert.equal(frames.filter(named('agent.message')).length, 0)
      assert.equal(frames.filter(named('agent.delta')).length, 1)
    })
  })

  describe('CHAT-040 Agent chat persists messages', () => {
    test('CHAT-040 the user’s input is in the history as soon as the run has started', async () => {
      const user = someone()
      const conversationId = `conv-${user}`
      await server.provider.script([hangsAfter('Let me')], user)
      const stream = await server.chat(user, { input: `tell me ${user}`, conversationId })
      await stream.waitFor(named('agent.delta'))

      const { body } = await server.call('GET', `/v1/conversations/${conversationId}/messages`, { user })

      const messages = body as unknown as Json[]
      assert.deepEqual(
        messages.map(({ role, content }) => [role, content]),
        [['user', `tell me ${user}`]],
      )
      await server.call('POST', `/v1/agent/runs/${runIdOf(stream)}/cancel`, { user })
    })

    test('CHAT-040 the assistant’s final output is in the history, under the id that its deltas had', async () => {
      const user = someone()
      const conversationId = `conv-${user}`
      await server.provider.script([says('Once ', 'upon a time.')], user)
      const frames = await server.chatToEnd(user, { input: `a story ${user}`, conversationId })

      const { body } = await server.call('GET', `/v1/conversations/${conversationId}/messages`, { user })

      const stored = (body as unknown as Json[]).filter(({ role }) => role === 'assistant')
      const delta = frames.find(named('agent.delta'))?.json.data
      assert.equal(stored.length, 1)
      assert.equal(stored[0]?.content, 'Once upon a time.')
      assert.equal(stored[0]?.id, delta?.id)
    })

    test('CHAT-040 an answer without text is in the history too; a step that only called a tool is not', async () => {
      const user = someone()
      const conversationId = `conv-${user}`
      await server.provider.script([calls(['current_time', {}, 'call_clock']), says()], user)
      const frames = await server.chatToEnd(user, { input: `nothing ${user}`, conversationId })

      const { body } = await server.call('GET', `/v1/conversations/${conversationId}/messages`, { user })

      const answer = frames.find(named('agent.message'))?.json.data
      assert.deepEqual(
        (body as unknown as Json[]).map(({ role }) => role),
        ['user', 'tool', 'assistant'],
      )
      const stored = (body as unknown as Json[])[2]
      assert.deepEqual([stored?.id, stored?.content], [answer?.id, ''])
    })

    test('CHAT-040 a failed run keeps the input, and no half answer is taken for one', async () => {
      const user = someone()
      const conversationId = `conv-${user}`
      await server.provider.script([[{ text: ['half'] }, { cut: true }]], user)
      await server.chatToEnd(user, { input: `a story ${user}`, conversationId })

      const { body } = await server.call('GET', `/v1/conversations/${conversationId}/messages`, { user })

      assert.deepEqual(
        (body as unknown as Json[]).map(({ role }) => role),
        ['user'],
      )
    })

    test('CHAT-040 a tool’s result is in the history too, with the id of its call', async () => {
      const user = someone()
      const conversationId = `conv-${user}`
      await server.provider.script([calls(['current_time', {}, 'call_clock']), says('Late.')], user)
      await server.chatToEnd(user, { input: `time? ${user}`, conversationId })

      const { body } = await server.call('GET', `/v1/conversations/${conversationId}/messages`, { user })

      const tool = (body as unknown as Json[]).find(({ role }) => role === 'tool')
      assert.equal(tool?.toolCallId, 'call_clock')
      assert.match(tool?.content, /utc/)
    })
  })

  describe('CHAT-050 Streaming includes tool trace and confirmation signals', () => {
    const message = (user: string) => ({ recipientId: 'ou_1', message: `Lunch? ${user}` })

    async function askToSend(user: string) {
      await server.provider.script(
        [calls(['send_feishu_message', message(user), 'call_send']), says('All done.')],
        user,
      )
      const stream = await server.chat(user, { input: `send it ${user}`, conversationId: `conv-${user}` })
      const { json } = await stream.waitFor(toolState('awaiting_input'))
      return { stream, asked: json.data }
    }

    const sentBy = async (user: string) => (await feishu.sent()).filter(({ text }) => text.includes(user))

    test('CHAT-050 a tool that sends something waits with awaiting_input and a confirmationId', async () => {
      const user = someone()

      const { stream, asked } = await askToSend(user)

      assert.equal(typeof asked.confirmationId, 'string')
      assert.equal(asked.toolId, 'call_send')
      assert.equal(asked.name, 'send_feishu_message')
      assert.equal(asked.previousStatus, 'running')
      assert.deepEqual(asked.input, message(user))
      assert.match(asked.message, /Feishu message to ou_1/)
      assert.deepEqual(toolStatuses(stream.frames), ['queued', 'running', 'awaiting_input'])
      assert.deepEqual(await sentBy(user), [])
      const run = await server.reaches(user, runIdOf(stream), 'awaiting_input')
      assert.equal(run.endedAt, null)
      await server.call('POST', `/v1/tool-confirmations/${asked.confirmationId}/reject`, { user })
      await stream.ended()
    })

    test('CHAT-050 after the confirmation the same stream shows running, then succeeded with the output', async () => {
      const user = someone()
      const { stream, asked } = await askToSend(user)

      const decided = await server.call('POST', `/v1/tool-confirmations/${asked.confirmationId}/confirm`, { user })
      await stream.ended()

      assert.equal(decided.status, 200)
      assert.equal(decided.body.status, 'confirmed')
      assert.deepEqual(toolStatuses(stream.frames), ['queued', 'running', 'awaiting_input', 'running', 'succeeded'])
      const done = stream.frames.find(toolState('succeeded'))?.json.data
      assert.equal(done?.output.recipientId, 'ou_1')
      assert.equal(done?.error, undefined)
      assert.equal(endOf(stream.frames).output, 'All done.')
      assert.deepEqual(
        (await sentBy(user)).map(({ text, requests }) => [text, requests]),
        [[message(user).message, 1]],
      )
    })

    test('CHAT-050 a confirmed tool that fails shows failed with an error, and the agent goes on', async () => {
      const user = someone()
      const { stream, asked } = await askToSend(user)
      await feishu.behave({ sendCode: 230002, sendMessage: 'the bot is not in the group' })

      await server.call('POST', `/v1/tool-confirmations/${asked.confirmationId}/confirm`, { user })
      await stream.ended()
      await feishu.behave({})

      assert.deepEqual(toolStatuses(stream.frames).slice(-2), ['running', 'failed'])
      const failed = stream.frames.find(toolState('failed'))?.json.data
      assert.match(failed?.error.message, /not in the group/)
      assert.equal(endOf(stream.frames).status, 'succeeded')
      const { body } = await server.call('GET', `/v1/tool-confirmations/${asked.confirmationId}`, { user })
      assert.equal(body.status, 'failed')
      assert.match(body.error.message, /not in the group/)
    })

    test('CHAT-050 a client that left before the decision finds the rest in the timeline', async () => {
      const user = someone()
      const { stream, asked } = await askToSend(user)
      stream.leave()

      await server.call('POST', `/v1/tool-confirmations/${asked.confirmationId}/confirm`, { user })
      await server.reaches(user, runIdOf(stream), 'succeeded')

      const { body } = await server.call('GET', `/v1/agent/runs/${runIdOf(stream)}/timeline`, { user })
      const statuses = (body.events as Json[])
        .filter(({ event }) => event === 'tool.state')
        .map(({ payload }) => payload.status)
      assert.deepEqual(statuses, ['queued', 'running', 'awaiting_input', 'running', 'succeeded'])
    })
  })

  describe('CHAT-060 Keep-alive pings', () => {
    test('CHAT-060 pings come periodically while a run takes its time, and carry no id', async () => {
      const user = someone()
      await server.provider.script([hangsAfter('Thinking')], user)
      const stream = await server.chat(user, `slowly ${user}`)

      await stream.waitFor(() => stream.frames.filter(named('ping')).length >= 3)

      const pings = stream.frames.filter(named('ping'))
      const times = pings.map(({ json }) => json.data.at as string)
      assert.deepEqual(times, [...new Set(times)].toSorted())
      for (const ping of pings) {
        assert.equal(ping.event, 'ping')
        assert.equal(ping.id, undefined)
        assert.equal(new Date(ping.json.data.at).toISOString(), ping.json.data.at)
      }
      await server.call('POST', `/v1/agent/runs/${runIdOf(stream)}/cancel`, { user })
    })
  })

  describe('CHAT-070 Agent chat SSE contract remains stable across engine routing', () => {
    test('CHAT-070 format=vercel-ai sends conversation.created and tool.awaiting_input with their key fields', async () => {
      const user = someone()
      await server.provider.script([calls(['remember_note', { text: user }, 'call_note']), says('Noted.')], user)

      const stream = await server.chat(user, `note ${user}`, {}, '?format=vercel-ai')
      const waiting = await lineItem(stream, 'tool.awaiting_input')
      const created = await lineItem(stream, 'conversation.created')
      await server.call('POST', `/v1/tool-confirmations/${waiting.confirmationId}/confirm`, { user })
      await stream.ended()

      assert.equal(stream.headers['content-type'], 'text/plain; charset=utf-8')
      assert.equal(stream.headers['x-vercel-ai-data-stream'], 'v1')
      assert.equal(typeof created.conversationId, 'string')
      const messages = await server.call('GET', `/v1/conversations/${created.conversationId}/messages`, { user })
      assert.equal(messages.status, 200)
      assert.equal(waiting.toolCallId, 'call_note')
      assert.equal(waiting.toolName, 'remember_note')
      assert.deepEqual(waiting.input, { text: user })
      assert.equal(typeof waiting.confirmationId, 'string')
      // Blank lines are this wire's keep-alive.
      const lines = stream
        .text()
        .split('\n')
        .filter((line) => line !== '')
      assert.deepEqual(
        lines.filter((line) => !/^[0-9a-h]:/.test(line)),
        [],
        'nothing but data stream parts',
      )
      assert.ok(lines.some((line) => line === '0:"Noted."'))
      assert.match(lines.at(-1) ?? '', /^d:\{"finishReason":"stop"/)
    })

    test('CHAT-070 the native stream names the new conversation and the engine that serves it', async () => {
      const frames = await server.chatToEnd(someone(), 'hello')

      const start = frames.find(named('agent.start'))?.json.data
      const patch = frames.find(named('context.patch'))?.json.data
      assert.equal(start?.metadata.engine, 'local')
      assert.deepEqual(patch, { layer: 'session', patch: { conversationId: start?.conversationId } })
    })
  })

  describe('CHAT-080 Full timeline trace API for trust and troubleshooting', () => {
    test('CHAT-080 the timeline of a run holds every frame of its stream, numbered and in order', async () => {
      const user = someone()
      await server.provider.script([calls(['current_time', {}]), says('It is ', 'late.')], user)
      const frames = await server.chatToEnd(user, `time? ${user}`)
      const runId = frames[0]?.json.data.runId as string

      const { status, body } = await server.call('GET', `/v1/agent/runs/${runId}/timeline`, { user })

      assert.equal(status, 200)
      assert.equal(body.runId, runId)
      assert.equal(body.status, 'succeeded')
      assert.equal(new Date(body.startedAt).toISOString(), body.startedAt)
      assert.equal(new Date(body.endedAt).toISOString(), body.endedAt)
      const events = body.events as Json[]
      assert.deepEqual(
        events.map(({ seq }) => seq),
        events.map((_, index) => index + 1),
      )
      const times = events.map(({ atMs }) => atMs as number)
      assert.deepEqual(
        times,
        times.toSorted((left, right) => left - right),
      )
      const shown = new Set(['agent.start', 'agent.delta', 'agent.message', 'tool.state', 'context.patch', 'agent.end'])
      assert.deepEqual(
        events.filter(({ event }) => shown.has(event)).map(({ id, event, payload }) => ({ id, event, payload })),
        journaled(frames).map(({ id, json }) => ({ id, event: json.event, payload: json.data })),
      )
      assert.deepEqual(new Set(journaled(frames).map(({ event }) => event)), shown)
    })

    test('CHAT-080 the model’s reasoning is shown as it comes, and stands in the timeline', async () => {
      const user = someone()
      await server.provider.script(
        [[{ reasoning: ['First, ', 'tea. '] }, { text: ['Tea.'] }, { finish: 'stop' }]],
        user,
      )
      const frames = await server.chatToEnd(user, `think ${user}`)

      const { body } = await server.call('GET', `/v1/agent/runs/${frames[0]?.json.data.runId}/timeline`, { user })

      const thoughts = frames.filter(named('agent.reasoning')).map(({ json }) => json.data)
      assert.equal(thoughts.map(({ delta }) => delta as string).join(''), 'First, tea. ')
      assert.equal(new Set(thoughts.map(({ id }) => id as string)).size, 1)
      assert.equal(endOf(frames).output, 'Tea.')
      assert.deepEqual(
        (body.events as Json[])
          .filter(({ event }) => event === 'agent.reasoning')
          .map(({ payload }) => payload as Json),
        thoughts,
      )
    })

    test('CHAT-080 the timeline of a run that is under way has no end yet, and that of a failed one has its error', async () => {
      const user = someone()
      await server.provider.script([hangsAfter('Well')], user)
      const stream = await server.chat(user, `hm ${user}`)
      await stream.waitFor(named('agent.delta'))

      const running = await server.call('GET', `/v1/agent/runs/${runIdOf(stream)}/timeline`, { user })

      assert.equal(running.body.status, 'running')
      assert.equal('endedAt' in running.body, false)
      await server.call('POST', `/v1/agent/runs/${runIdOf(stream)}/cancel`, { user })

      await server.provider.script([[{ status: 401, body: { error: { message: 'no' } } }]], user)
      const failed = await server.chatToEnd(user, `again ${user}`)
      const { body } = await server.call('GET', `/v1/agent/runs/${failed[0]?.json.data.runId}/timeline`, { user })
      assert.equal(body.status, 'failed')
      assert.deepEqual(
        (body.events as Json[]).slice(-2).map(({ event }) => event),
        ['error', 'agent.end'],
      )
    })

    test('CHAT-080 an unknown runId, and another user’s, is 404 with run_timeline_not_found', async () => {
      const frames = await server.chatToEnd(someone(), 'hello')

      for (const runId of ['no-such-run', frames[0]?.json.data.runId]) {
        const answer = await server.call('GET', `/v1/agent/runs/${runId}/timeline`, { user: someone() })

        assert.equal(answer.status, 404)
        assert.equal(answer.body.code, 'run_timeline_not_found')
        assert.equal(typeof answer.body.message, 'string')
      }
    })
  })

  // Last, since the provider does not come back.
  describe('CHAT-030 LLM provider unavailable', () => {
    test('CHAT-030 a provider that cannot be reached ends with error, then agent.end failed', async () => {
      await server.provider.kill()

      const frames = await server.chatToEnd(someone(), 'hi')

      assertFailed(frames)
      assert.equal(endOf(frames).error.code, 'model_unavailable')
    })
  })
}

function assertFailed(frames: SseFrame[]): void {
  const [error, end] = journaled(frames).slice(-2)
  assert.equal(error?.json.event, 'error')
  assert.equal(end?.json.event, 'agent.end')
  assert.equal(end?.json.data.status, 'failed')
  assert.equal(frames.at(-1), end)
  assert.equal(frames.filter(named('agent.end')).length, 1)
  assert.deepEqual(end?.json.data.error, error?.json.data)
  assert.match(error?.json.data.code, /^[a-z_]+$/)
  assert.match(error?.json.data.message, /\w+ \w+/)
}

/** An item of a data stream's `2:` lines, now or later. */
async function lineItem(stream: { text(): string; ended(): Promise<unknown> }, type: string): Promise<Json> {
  return await until(`a ${type} item`, () =>
    stream
      .text()
      .split('\n')
      .slice(0, -1)
      .filter((line) => line.startsWith('2:'))
      .flatMap((line) => JSON.parse(line.slice(2)) as Json[])
      .find((item) => item.type === type),
  )
}
