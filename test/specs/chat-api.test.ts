// The chat API specification, scenario by scenario, over a real socket.
// Conversations, cancelling and comparisons have files of their own.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { ask, get, post, textOf, typesOf } from '../support/chat-api.ts'
import type { SeenRequest } from '../support/fake-provider.ts'
import { calls, type Json, says, someone, until } from '../support/test-server.ts'
import { openStream } from '../support/sse.ts'
import { sharedMcpServer } from '../support/shared-mcp-server.ts'

const modelConfigs = [
  { name: 'default', description: 'As it comes' },
  {
    name: 'brief',
    description: 'Short answers',
    model: 'openai/brief-model',
    temperature: 0.1,
    systemPrompt: 'Be brief.',
    tools: ['lookup'],
  },
]
const { server, effects } = sharedMcpServer((folder) => {
  const file = join(folder, 'configs.json')
  writeFileSync(file, JSON.stringify(modelConfigs))
  return { POLYLOG_MODEL_CONFIGS: file }
})

const toolNames = (request: SeenRequest | undefined) =>
  ((request?.body.tools ?? []) as Json[]).map((tool) => tool.function.name)
const isoTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

describe('Requirement: Streaming Message Response', () => {
  test('Scenario: Successful streaming response', async () => {
    const client = someone()
    await server.provider.script([says('The sky ', 'is ', 'blue.')], client)

    const stream = await ask(server, client, `Why? ${client}`)
    const frames = await stream.toEnd()

    assert.match(String(stream.raw.headers['content-type']), /^text\/event-stream/)
    assert.deepEqual(typesOf(frames), ['chunk', 'chunk', 'chunk', 'done'])
    assert.deepEqual(
      frames.map((frame) => frame.content),
      ['The sky ', 'is ', 'blue.', undefined],
    )
    for (const frame of frames) assert.equal(frame.conversation_id, stream.conversationId)
    assert.deepEqual(Object.keys(frames[3] ?? {}), ['type', 'conversation_id', 'message_id', 'trace_id'])
    assert.equal(frames[3]?.trace_id, stream.traceId)
    for (const frame of stream.raw.frames)
      assert.equal(frame.event, undefined, 'a browser’s default handler must see it')
  })

  test('Scenario: Streaming with agent tools', async () => {
    const client = someone()
    const word = 'w'.repeat(5000)
    await server.provider.script([calls(['lookup', { word }, 'call_1']), says('It is ', 'long.')], client)

    const frames = await (await ask(server, client, client)).toEnd()

    assert.deepEqual(typesOf(frames), ['tool_start', 'tool_output', 'tool_end', 'chunk', 'chunk', 'done'])
    const [started, output, ended] = frames as unknown as [Json, Json, Json]
    assert.deepEqual([started.tool_name, started.tool_args], ['lookup', { word }])
    assert.match(started.timestamp, isoTime)
    assert.equal(output.truncated, true)
    assert.ok(output.output.length <= 800 && output.output.endsWith('...'))
    assert.ok(output.full_length > 5000)
    assert.equal(ended.status, 'success')
    assert.ok(Number.isInteger(ended.duration_ms) && ended.duration_ms >= 0)
    assert.equal(new Set([started, output, ended].map((frame) => frame.tool_call_id)).size, 1)
    assert.equal(textOf(frames), 'It is long.')
  })

  test('a tool that fails ends with status error, and the answer goes on', async () => {
    const client = someone()
    await server.provider.script([calls(['lookup', { word: '' }]), says('Sorry.')], client)

    const frames = await (await ask(server, client, client)).toEnd()

    assert.equal(frames.find((frame) => frame.type === 'tool_end')?.status, 'error')
    assert.equal(frames.at(-1)?.type, 'done')
  })

  test('a model that fails ends the stream with one error: status, sentence and code', async () => {
    const client = someone()
    await server.provider.script([[{ status: 500 }]], client)

    const frames = await (await ask(server, client, client)).toEnd()

    assert.deepEqual(typesOf(frames), ['error'])
    assert.deepEqual(
      [frames[0]?.status, typeof frames[0]?.message, frames[0]?.code],
      [502, 'string', 'model_unavailable'],
    )
  })

  test('the form of the chat’s own client is understood, without timestamps too', async () => {
    const client = someone()
    const body = {
      last_message: [['User', client]],
      conversation_id: null,
      config_name: null,
      is_refresh: false,
      provider: null,
      model: null,
    }

    for (const more of [
      {},
      { client_sent_msg_ts: null },
      { client_timeout: 600_000 },
      { client_sent_msg_ts: Date.now(), client_timeout: 600_000 },
      { client_sent_msg_ts: 1 },
    ]) {
      const frames = await (await ask(server, client, { ...body, ...more })).toEnd()
      assert.equal(frames.at(-1)?.type, 'done', JSON.stringify(more))
    }
  })

  test('the stream is lines of JSON if the request asks for it: the same frames, one per line', async () => {
    const client = someone()
    await server.provider.script([calls(['lookup', { word: 'a' }]), says('Yes.')], client)

    const answer = await fetch(`${server.polylog.baseUrl}/api/get_chat_response_stream`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/x-ndjson' },
      body: JSON.stringify({ client_id: client, message: client }),
    })

    assert.match(answer.headers.get('content-type') ?? '', /^application\/x-ndjson/)
    const lines = (await answer.text())
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Json)
    assert.deepEqual(
      lines.map((line) => line.type),
      ['tool_start', 'tool_output', 'tool_end', 'chunk', 'done'],
    )
  })

  test('text or tools are left out if the request says so, as booleans or as words', async () => {
    const client = someone()
    const once = async (fields: Json) => {
      await server.provider.script([calls(['lookup', { word: 'a' }]), says('Yes.')], client)
      return typesOf(await (await ask(server, client, { message: client, ...fields })).toEnd())
    }

    assert.deepEqual(await once({ include_agent_steps: false }), ['tool_start', 'tool_output', 'tool_end', 'done'])
    assert.deepEqual(await once({ include_tool_steps: 'false' }), ['chunk', 'done'])
    assert.deepEqual(await once({ include_tool_steps: 'true' }), [
      'tool_start',
      'tool_output',
      'tool_end',
      'chunk',
      'done',
    ])
  })

  test('readers of one run with different options get different frames', async () => {
    const client = someone()
    await server.provider.script([calls(['lookup', { word: 'a' }]), says('Yes.')], client)
    const stream = await ask(server, client, { message: client, include_tool_steps: false })
    const whole = await openStream(
      `${server.polylog.baseUrl}/v1/agent/runs/${stream.traceId}/stream?format=chunks&client_id=${client}`,
    )
    await whole.ended()

    assert.deepEqual(typesOf(await stream.toEnd()), ['chunk', 'done'])
    assert.deepEqual(
      whole.frames.map((frame) => (frame.json as unknown as Json).type),
      ['tool_start', 'tool_output', 'tool_end', 'chunk', 'done'],
    )
  })

  test('a call that needs a person says where to decide; the stream goes on after the decision', async () => {
    const client = someone()
    const amount = 1000 + Math.floor(Math.random() * 1e6)
    await server.provider.script([calls(['charge', { amount }]), says('Charged.')], client)
    const stream = await ask(server, client, client)

    const card = await stream.waitFor('tool_output')
    const id = /\/v1\/tool-confirmations\/(\S+)/.exec(card.output)?.[1]
    const decided = await server.call('POST', `/v1/tool-confirmations/${id}/confirm?client_id=${client}`)
    const frames = await stream.toEnd()

    assert.equal(decided.status, 200, decided.text)
    assert.deepEqual(typesOf(frames), ['tool_start', 'tool_output', 'tool_output', 'tool_end', 'chunk', 'done'])
    assert.match(String(frames[2]?.output), new RegExp(`charged ${amount}`))
    assert.deepEqual(effects.lines().filter((line) => line === `charge ${amount}`).length, 1)
  })

  test('a call that was confirmed with changed arguments shows those that ran, in the stream and in the trace', async () => {
    const client = someone()
    const amount = 1000 + Math.floor(Math.random() * 1e6)
    await server.provider.script([calls(['charge', { amount }]), says('Charged.')], client)
    const stream = await ask(server, client, client)
    const card = await stream.waitFor('tool_output')
    const id = /\/v1\/tool-confirmations\/(\S+)/.exec(card.output)?.[1]

    const decided = await server.call('POST', `/v1/tool-confirmations/${id}/confirm?client_id=${client}`, {
      body: { payload: { amount: amount + 1 } },
    })
    const frames = await stream.toEnd()

    assert.equal(decided.status, 200, decided.text)
    const outputs = frames.filter(({ type }) => type === 'tool_output').map(({ output }) => String(output))
    assert.ok(outputs.some((output) => output.includes('changed arguments') && output.includes(String(amount + 1))))
    const { trace } = (await get(server, `trace/${stream.traceId}`, client)).body
    const start = trace.events.find((event: Json) => event.type === 'tool_start')
    assert.deepEqual([start.tool_args, start.requested_args], [{ amount: amount + 1 }, { amount }])
    assert.equal(effects.lines().filter((line) => line === `charge ${amount + 1}`).length, 1)
  })

  test('a reader that left comes back with the id of its last frame and gets exactly the rest', async () => {
    const client = someone()
    await server.provider.script([says('One ', 'two ', 'three.')], client)
    const first = await ask(server, client, client)
    await first.toEnd()
    const id = first.raw.frames[1]?.id as string

    const rest = await openStream(
      `${server.polylog.baseUrl}/v1/agent/runs/${first.traceId}/stream?format=chunks&client_id=${client}`,
      { headers: { 'last-event-id': id } },
    )
    await rest.ended()

    assert.ok(first.raw.text().endsWith(rest.text()))
    assert.deepEqual(
      rest.frames.map((frame) => (frame.json as unknown as Json).content),
      ['three.', undefined],
    )
  })

  test('the same Idempotency-Key attaches to the same answer', async () => {
    const client = someone()
    const headers = { 'idempotency-key': client }
    const first = await ask(server, client, client, headers)
    await first.toEnd()
    const second = await ask(server, client, client, headers)
    await second.toEnd()

    assert.equal(second.raw.text(), first.raw.text())
    assert.equal((await server.asked(client)).length, 1)
  })

  describe('is refused before the stream, as JSON', () => {
    const refusals: [what: string, body: Json, status: number, code: string][] = [
      ['no client_id', { message: 'hi', client_id: undefined }, 400, 'client_id_missing'],
      ['a blank client_id', { message: 'hi', client_id: ' ' }, 400, 'client_id_missing'],
      ['no message', {}, 400, 'messages_or_prompt_required'],
      ['an empty message', { last_message: [['User', '  ']] }, 400, 'messages_or_prompt_required'],
      ['a message of the wrong form', { last_message: [{ user: 'x' }] }, 400, 'invalid_request'],
      ['an unknown configuration', { message: 'hi', config_name: 'none' }, 400, 'unknown_config'],
      ['an unknown provider', { message: 'hi', provider: 'nobody', model: 'x' }, 400, 'unknown_model'],
      [
        'a message that came too late',
        { message: 'hi', client_sent_msg_ts: 1_000, client_timeout: 5_000 },
        408,
        'client_timed_out',
      ],
      ['a refresh of nothing', { is_refresh: true }, 400, 'nothing_to_regenerate'],
    ]
    for (const [what, body, status, code] of refusals) {
      for (const route of ['get_chat_response_stream', 'get_chat_response']) {
        test(`${what}, by ${route}`, async () => {
          const answer = await post(server, route, someone(), body)

          assert.deepEqual([answer.status, answer.body.code], [status, code], answer.text)
          assert.deepEqual(Object.keys(answer.body), ['error', 'code'])
          assert.equal(typeof answer.body.error, 'string')
        })
      }
    }
  })
})

describe('a conversation that is not there, or somebody else’s', () => {
  test('is an error with status 403 in the stream, and starts nothing', async () => {
    const owner = someone()
    const theirs = await ask(server, owner, owner)
    await theirs.toEnd()
    const bodies: Json[] = [
      { is_refresh: true, conversation_id: 'none' },
      { message: 'hi', conversation_id: theirs.conversationId },
      { is_refresh: true, conversation_id: theirs.conversationId },
    ]
    for (const body of bodies) {
      const client = someone('stranger')
      const asEvents = await post(server, 'get_chat_response_stream', client, body)
      assert.equal(asEvents.status, 200)
      const [, frame = ''] = /^data: (.+)\n\n$/.exec(asEvents.text) ?? []
      const { message, ...fields } = JSON.parse(frame) as Json
      assert.deepEqual(fields, { type: 'error', status: 403, code: 'conversation_not_found' })
      assert.equal(typeof message, 'string')
      assert.match(asEvents.headers.get('content-type') ?? '', /^text\/event-stream/)
      assert.equal(asEvents.headers.get('x-trace-id'), null)
      const asLines = await server.call('POST', '/api/get_chat_response_stream', {
        body: { client_id: client, ...body },
        headers: { accept: 'application/x-ndjson' },
      })
      assert.deepEqual([asLines.status, asLines.text], [200, `${frame}\n`])
      assert.match(asLines.headers.get('content-type') ?? '', /^application\/x-ndjson/)
      const whole = await post(server, 'get_chat_response', client, body)
      assert.deepEqual([whole.status, whole.body.code], [404, 'conversation_not_found'])
      assert.deepEqual((await get(server, 'list_conversations', client)).body, { conversations: [] })
    }
  })
})

describe('the whole answer at once', () => {
  test('has the text, the ids and the times', async () => {
    const client = someone()
    await server.provider.script([calls(['lookup', { word: 'a' }]), says('All ', 'of it.')], client)

    const { status, body, headers } = await post(server, 'get_chat_response', client, { message: client })

    assert.equal(status, 200)
    assert.equal(body.response, 'All of it.')
    assert.equal(headers.get('x-trace-id'), body.trace_id)
    assert.equal(headers.get('x-conversation-id'), body.conversation_id)
    assert.ok(body.server_response_msg_ts > 1e9 && body.server_response_msg_ts < 1e11)
    assert.equal((await get(server, `trace/by_message/${body.message_id}`, client)).body.trace.trace_id, body.trace_id)
  })

  test('is an error with its status if the model fails', async () => {
    const client = someone()
    await server.provider.script([[{ status: 500 }]], client)

    const { status, body } = await post(server, 'get_chat_response', client, { message: client })

    assert.deepEqual([status, body.code], [502, 'model_unavailable'])
    assert.equal((await get(server, `trace/${body.trace_id}`, client)).body.trace.status, 'error')
  })

  test('is 202 with the open decision if a person is needed', async () => {
    const client = someone()
    await server.provider.script([calls(['charge', { amount: 5 }]), says('Not charged.')], client)

    const { status, body } = await post(server, 'get_chat_response', client, { message: client })
    const rejected = await server.call(
      'POST',
      `/v1/tool-confirmations/${body.confirmations[0].confirmation_id}/reject?client_id=${client}`,
    )

    assert.deepEqual([status, body.status, body.confirmations[0].tool_name], [202, 'awaiting_input', 'charge'])
    assert.equal(rejected.status, 200)
    const trace = await until('the end', async () => {
      const found = (await get(server, `trace/${body.trace_id}`, client)).body.trace
      return found.status === 'running' ? undefined : found
    })
    assert.equal(trace.status, 'completed')
  })
})

describe('model configurations', () => {
  test('are listed for the client to choose from', async () => {
    const { body } = await server.call('GET', '/api/get_configs')

    assert.deepEqual(body.options, [
      { id: 'default', name: 'default', description: 'As it comes' },
      { id: 'brief', name: 'brief', description: 'Short answers' },
    ])
    assert.equal(body.client_timeout_ms, body.client_timeout_seconds * 1000)
  })

  test('give the request its model, temperature, instructions and tools; the trace names them', async () => {
    const client = someone()
    const stream = await ask(server, client, { message: client, config_name: 'brief' })
    await stream.toEnd()

    const [request] = await server.asked(client)
    assert.equal(request?.body.model, 'brief-model')
    assert.equal(request?.body.temperature, 0.1)
    assert.equal(request?.body.messages?.[0]?.content, 'Be brief.')
    assert.deepEqual(toolNames(request), ['lookup'])
    assert.equal((await get(server, `trace/${stream.traceId}`, client)).body.trace.config_id, 'brief')
  })

  test('of one request never affect another that runs at the same time', async () => {
    const clients = Array.from({ length: 12 }, () => someone())
    const fields = [
      {},
      { config_name: 'brief' },
      { model: 'other-model' },
      { provider: 'openai', model: 'third-model', config_name: 'brief' },
    ]

    await Promise.all(
      clients.map(
        async (client, index) => await (await ask(server, client, { message: client, ...fields[index % 4] })).toEnd(),
      ),
    )

    for (const [index, client] of clients.entries()) {
      const [request] = await server.asked(client)
      assert.equal(request?.body.model, ['fake', 'brief-model', 'other-model', 'third-model'][index % 4])
      assert.equal(request?.body.temperature, index % 2 === 1 ? 0.1 : undefined)
    }
  })
})

describe('Requirement: Agent Trace Retrieval', () => {
  test('Scenario: Get trace by ID', async () => {
    const client = someone()
    await server.provider.script([calls(['lookup', { word: 'x'.repeat(2000) }]), says('Seen ', 'it.')], client)
    const stream = await ask(server, client, client)
    const done = (await stream.toEnd()).at(-1)

    const { status, body } = await get(server, `trace/${done?.trace_id}`, client)

    assert.equal(status, 200)
    assert.equal(body.success, true)
    const { trace } = body
    assert.deepEqual(
      [trace.status, trace.trace_id, trace.conversation_id, trace.message_id],
      ['completed', stream.traceId, stream.conversationId, done?.message_id],
    )
    assert.deepEqual(
      trace.events.map((event: Json) => event.type).filter((type: string) => type !== 'usage'),
      ['tool_start', 'tool_output', 'tool_end', 'text', 'text'],
    )
    for (const event of trace.events) assert.match(event.timestamp, isoTime)
    const output = trace.events.find((event: Json) => event.type === 'tool_output')
    assert.equal(output.output.length, output.full_length, 'a trace keeps the whole output')
    assert.equal(trace.total_tool_calls, 1)
    assert.ok(trace.total_tokens_used > 0)
    assert.equal(Date.parse(trace.completed_at) - Date.parse(trace.started_at), trace.total_duration_ms)
  })

  test('Scenario: Get trace by message ID', async () => {
    const client = someone()
    const stream = await ask(server, client, client)
    const done = (await stream.toEnd()).at(-1)
    const { body } = await get(server, `trace/${stream.traceId}`, client)

    for (const path of ['by_message', 'message']) {
      for (const message of [done?.message_id, body.trace.user_message_id]) {
        assert.deepEqual((await get(server, `trace/${path}/${message}`, client)).body, body)
      }
    }
    for (const path of ['none', 'by_message/none', 'message/none']) {
      const missing = await get(server, `trace/${path}`, client)
      assert.equal(missing.status, 404)
      assert.deepEqual(Object.keys(missing.body), ['error', 'code'])
    }
  })

  test('the timeline, the chunks and the trace of one run agree on text, tools and times', async () => {
    const client = someone()
    await server.provider.script(
      [
        [{ text: ['Let me ', 'see. '] }, ...calls(['lookup', { word: 'a' }, 'c1'], ['lookup', { word: 'b' }, 'c2'])],
        says('Both ', 'found.'),
      ],
      client,
    )
    const stream = await ask(server, client, client)
    const frames = await stream.toEnd()

    const timeline = (await server.call('GET', `/v1/agent/runs/${stream.traceId}/timeline?client_id=${client}`)).body
    const { trace } = (await get(server, `trace/${stream.traceId}`, client)).body

    const deltas = timeline.events.filter((entry: Json) => entry.event === 'agent.delta')
    const texts = trace.events.filter((event: Json) => event.type === 'text')
    assert.equal(textOf(frames), 'Let me see. \n\nBoth found.')
    assert.deepEqual(
      texts.map((event: Json) => event.content),
      frames.flatMap((frame) => (frame.type === 'chunk' ? [frame.content] : [])),
    )
    assert.deepEqual(
      texts.map((event: Json) => [event.content.replace(/^\n\n/, ''), event.timestamp]),
      deltas.map((entry: Json) => [entry.payload.delta, entry.at]),
    )

    const states = (status: string) =>
      timeline.events.filter((entry: Json) => entry.event === 'tool.state' && entry.payload.status === status)
    const of = (list: readonly Json[], type: string) => list.filter((item) => item.type === type)
    assert.deepEqual(
      of(frames, 'tool_start').map((frame) => [frame.tool_call_id, frame.tool_args, frame.timestamp]),
      states('running').map((entry: Json) => [entry.payload.toolId, entry.payload.input, entry.at]),
    )
    assert.deepEqual(of(trace.events, 'tool_start'), of(frames, 'tool_start'))
    assert.deepEqual(
      of(trace.events, 'tool_end').map((event: Json) => [event.tool_call_id, event.timestamp]),
      states('succeeded').map((entry: Json) => [entry.payload.toolId, entry.at]),
    )
    const ends = of(trace.events, 'tool_end').map(({ tool_call_id, status, duration_ms }) => ({
      type: 'tool_end',
      tool_call_id,
      status,
      duration_ms,
    }))
    assert.deepEqual(ends, of(frames, 'tool_end'))
    assert.deepEqual([trace.started_at, trace.completed_at], [timeline.startedAt, timeline.endedAt])
  })
})

test('health says OK, and other paths under /api say so in JSON', async () => {
  assert.deepEqual((await server.call('GET', '/api/health')).body, { status: 'OK' })
  const missing = await server.call('GET', '/api/none')
  assert.deepEqual([missing.status, missing.body.error], [404, 'NOT_FOUND'])
})
