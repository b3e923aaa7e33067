// /v1/responses with the real clients of OpenAI, versions 6 and 7, over real sockets.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import OpenAi7 from 'openai'
import OpenAi6 from 'openai-6'
import { zodTextFormat } from 'openai/helpers/zod'
import type { ResponseStreamEvent } from 'openai/resources/responses/responses'
import { z } from 'zod'
import { sharedMcpServerProcess } from '../support/shared-mcp-server.ts'
import { calls, hangsAfter, type Json, runIdOf, says, someone, until } from '../support/test-server.ts'

const { server, effects } = sharedMcpServerProcess()

function clientOf(version: typeof OpenAi7, user: string): OpenAi7 {
  return new version({
    baseURL: `${server.polylog.baseUrl}/v1`,
    apiKey: 'not needed',
    defaultQuery: { userId: user },
  })
}

let amount = 80_000
const model = 'chat_conversation'
const weather = {
  type: 'function' as const,
  name: 'weather',
  description: 'The weather in a city.',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  strict: false,
}
/** A PNG with one pixel. */
const dot = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
/** What the server writes when it asks for a structured answer once more. */
const repairMarker = 'cannot be used as the final answer'

const runsOf = async (user: string) => (await server.call('GET', '/v1/agent/runs', { user })).body as unknown as Json[]

async function eventsOf(stream: AsyncIterable<ResponseStreamEvent>): Promise<ResponseStreamEvent[]> {
  const events: ResponseStreamEvent[] = []
  for await (const event of stream) events.push(event)
  return events
}

function functionCalls(response: OpenAi7.Responses.Response) {
  return response.output.filter((item) => item.type === 'function_call')
}

for (const [name, version] of [
  ['openai 7', OpenAi7],
  ['openai 6', OpenAi6 as unknown as typeof OpenAi7],
] as const) {
  describe(`Responses with ${name}`, () => {
    test('gives a complete response with its usage, which can be read again', async () => {
      const user = someone()
      const client = clientOf(version, user)
      await server.provider.script(
        [[{ text: ['Hel', 'lo.'] }, { finish: 'stop', usage: { prompt_tokens: 7, completion_tokens: 2 } }]],
        user,
      )

      const response = await client.responses.create({
        model,
        input: user,
        instructions: 'Be short.',
        metadata: { shop: '12' },
      })

      assert.deepEqual([response.status, response.output_text, response.object], ['completed', 'Hello.', 'response'])
      assert.deepEqual([response.model, response.instructions, response.metadata], [model, 'Be short.', { shop: '12' }])
      assert.deepEqual(
        [response.usage?.input_tokens, response.usage?.output_tokens, response.usage?.total_tokens],
        [7, 2, 9],
      )
      assert.deepEqual(await client.responses.retrieve(response.id), response)
      const [asked] = await server.asked(user)
      assert.match(JSON.stringify(asked?.body.messages), /Be short\./)
      assert.deepEqual((await server.call('GET', '/v1/conversations', { user })).body, [])
    })

    test('streams numbered events, which are the same in every replay and after every number', async () => {
      const user = someone()
      const client = clientOf(version, user)
      await server.provider.script([[{ reasoning: ['Hm.'] }, ...says('One ', 'two.')]], user)

      const events = await eventsOf(await client.responses.create({ model, input: user, stream: true }))

      assert.deepEqual(
        events.map(({ sequence_number }) => sequence_number),
        events.map((_, index) => index),
      )
      assert.deepEqual(
        [...new Set(events.map(({ type }) => type))],
        [
          'response.created',
          'response.in_progress',
          'response.output_item.added',
          'response.reasoning_summary_part.added',
          'response.reasoning_summary_text.delta',
          'response.reasoning_summary_text.done',
          'response.reasoning_summary_part.done',
          'response.output_item.done',
          'response.content_part.added',
          'response.output_text.delta',
          'response.output_text.done',
          'response.content_part.done',
          'response.completed',
        ],
      )
      const [first] = events
      assert.ok(first?.type === 'response.created')
      for (let after = 0; after < events.length; after++) {
        const rest: AsyncIterable<ResponseStreamEvent> = await client.responses.retrieve(first.response.id, {
          stream: true,
          starting_after: after,
        })
        assert.deepEqual(await eventsOf(rest), events.slice(after + 1), `after ${after}`)
      }
      await assert.rejects(
        client.responses.retrieve(first.response.id, { stream: true, starting_after: events.length }),
        { code: 'unknown_cursor', param: 'starting_after' },
      )
    })

    test('the stream of a stored response goes on after Last-Event-ID, and an unknown one is refused', async () => {
      const user = someone()
      await server.provider.script([says('One, ', 'two, ', 'three.')], user)
      const { id } = await clientOf(version, user).responses.create({ model, input: user })
      const path = `/v1/responses/${id}?stream=true`
      const read = async (lastEventId?: string, query = '') => {
        const headers = lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
        return await server.call('GET', `${path}${query}`, { user, headers })
      }
      const whole = (await read()).text
      const frames = whole.split('\n\n').filter((frame) => frame !== '')
      const ids = frames.map((frame) => /^id: (\S+)$/m.exec(frame)?.[1] ?? '')

      for (const [at, lastEventId] of ids.slice(0, -1).entries()) {
        assert.equal((await read(lastEventId)).text, `${frames.slice(at + 1).join('\n\n')}\n\n`, lastEventId)
      }
      assert.equal((await read(ids[2], '&starting_after=4')).text, (await read(ids[4])).text)
      assert.equal((await read(ids[4], '&starting_after=2')).text, (await read(ids[4])).text)
      assert.equal((await read(undefined, '&starting_after=')).text, (await read()).text)
      for (const wrong of ['1e1', '0x5', '+1', '-1', '1.0', '%201']) {
        assert.equal((await read(undefined, `&starting_after=${wrong}`)).status, 400)
      }
      assert.equal((await read('0')).text, whole)
      assert.equal((await read(ids.at(-1))).status, 204)
      for (const unknown of ['9999', '1.7', '0.1', 'abc']) {
        const refused = await read(unknown)
        assert.equal(refused.status, 400, unknown)
        assert.match(refused.text, /"code":"unknown_cursor"/)
      }
    })

    test('the stream helper of the client puts the response together, with the calls of the server', async () => {
      const user = someone()
      const client = clientOf(version, user)
      await server.provider.script([calls(['lookup', { word: 'five' }]), says('It is 5.')], user)

      const stream = client.responses.stream({ model, input: user })
      const response = await stream.finalResponse()

      assert.equal(response.output_text, 'It is 5.')
      const [call, message] = response.output
      assert.ok(call?.type === 'mcp_call' && message?.type === 'message')
      assert.deepEqual(
        [call.name, call.arguments, call.status, call.error],
        ['lookup', '{"word":"five"}', 'completed', null],
      )
      assert.equal(call.server_label, 'demo')
      assert.match(call.output ?? '', /five/)
      const again = await client.responses.stream({ response_id: response.id, starting_after: 3 }).finalResponse()
      assert.deepEqual(again.output_text, response.output_text)
    })

    test('functions of the client are called there, in parallel, and the same run goes on', async () => {
      for (const stream of [false, true]) {
        const user = someone()
        const client = clientOf(version, user)
        await server.provider.script(
          [
            calls(['weather', { city: 'Oslo' }], ['weather', { city: 'Rome' }], ['lookup', { word: 'x' }]),
            says('Cold, warm, 5.'),
          ],
          user,
        )
        type Body = OpenAi7.Responses.ResponseCreateParamsNonStreaming
        const create = async (body: Omit<Body, 'stream'>): Promise<OpenAi7.Responses.Response> =>
          stream ? await client.responses.stream(body).finalResponse() : await client.responses.create(body)

        const asked = await create({ model, input: user, tools: [weather] })
        const called = functionCalls(asked)
        assert.deepEqual(
          called.map((call) => [call.name, call.arguments]),
          [
            ['weather', '{"city":"Oslo"}'],
            ['weather', '{"city":"Rome"}'],
          ],
        )
        assert.ok(asked.output.some(({ type }) => type === 'mcp_call'))
        const input = called.map(({ call_id }) => ({
          type: 'function_call_output' as const,
          call_id,
          output: `result of ${call_id}`,
        }))
        const answer = await create({ model, previous_response_id: asked.id, input, tools: [weather] })

        assert.equal(answer.output_text, 'Cold, warm, 5.')
        assert.deepEqual([answer.id, answer.previous_response_id], [`${asked.id}_2`, asked.id])
        const told = JSON.stringify((await server.asked(user))[1]?.body.messages)
        for (const { call_id } of called) assert.ok(told.includes(`result of ${call_id}`))
        assert.equal((await runsOf(user)).length, 1)
        // Both responses can be read, streamed and asked for their input.
        assert.equal(functionCalls(await client.responses.retrieve(asked.id)).length, 2)
        assert.equal((await client.responses.retrieve(answer.id)).output_text, 'Cold, warm, 5.')
        const events = await eventsOf(await client.responses.retrieve(answer.id, { stream: true }))
        assert.deepEqual([events[0]?.type, events[0]?.sequence_number], ['response.created', 0])
        const given = (await client.responses.inputItems.list(answer.id)).data
        assert.deepEqual(
          given.map(({ type }) => type),
          ['function_call_output', 'function_call_output'],
        )
      }
    })

    test('a client without previous_response_id sends the items back, and the same run goes on', async () => {
      const user = someone()
      const client = clientOf(version, user)
      await server.provider.script([calls(['weather', { city: 'Oslo' }]), says('Cold.')], user)
      const question = { role: 'user' as const, content: user }
      const asked = await client.responses.create({ model, input: [question], tools: [weather], store: false })
      const [call] = functionCalls(asked)
      assert.ok(call !== undefined)

      const answer = await client.responses.create({
        model,
        input: [
          question,
          ...(asked.output as OpenAi7.Responses.ResponseInputItem[]),
          { type: 'function_call_output', call_id: call.call_id, output: '4' },
        ],
        tools: [weather],
        store: false,
      })

      assert.equal(answer.output_text, 'Cold.')
      assert.equal((await runsOf(user)).length, 1)
      await assert.rejects(client.responses.retrieve(answer.id), (error: unknown) => {
        assert.ok(error instanceof version.NotFoundError)
        return error.code === 'response_not_found'
      })
    })

    test('strict of a function reaches the provider and is in the response', async () => {
      const user = someone()
      await server.provider.script([says('Fine.')], user)
      const loose = { ...weather, name: 'forecast', strict: false }

      const { tools } = await clientOf(version, user).responses.create({
        model,
        input: user,
        tools: [{ ...weather, strict: true }, loose],
      })

      const shown = tools.map((tool) => tool.type === 'function' && [tool.name, tool.strict])
      assert.deepEqual(shown, [
        ['weather', true],
        ['forecast', false],
      ])
      const [asked] = await server.asked(user)
      const sent = asked?.body['tools'] as { function: { name: string; strict?: boolean } }[]
      assert.deepEqual(
        sent.filter(({ function: { strict } }) => strict !== undefined).map(({ function: { name } }) => name),
        ['weather'],
      )
    })

    test('results must be complete', async () => {
      const user = someone()
      const client = clientOf(version, user)
      await server.provider.script([calls(['weather', { city: 'Oslo' }], ['weather', { city: 'Rome' }])], user)
      const asked = await client.responses.create({ model, input: user, tools: [weather] })
      const outputs = functionCalls(asked).map(({ call_id }) => ({
        type: 'function_call_output' as const,
        call_id,
        output: '4',
      }))
      const next = { model, previous_response_id: asked.id }

      await assert.rejects(client.responses.create({ ...next, input: outputs.slice(0, 1) }), {
        code: 'messages_invalid',
      })
      await assert.rejects(client.responses.create({ ...next, input: 'And?' }), { code: 'messages_invalid' })
      await assert.rejects(client.responses.create({ ...next, input: outputs.slice(0, 1), instructions: 'Other.' }), {
        code: 'messages_invalid',
      })
      assert.equal((await client.responses.retrieve(asked.id)).status, 'completed')
      assert.equal((await runsOf(user))[0]?.status, 'awaiting_input')
      await client.responses.cancel(asked.id)
    })

    for (const history of ['the whole input', 'previous_response_id', 'conversation'] as const) {
      test(`results with other settings go on in a new run, and the one that waited ends: ${history}`, async () => {
        const user = someone()
        const client = clientOf(version, user)
        await server.provider.script([[{ text: 'Let me see.' }, ...calls(['weather', { city: 'Oslo' }])]], user)
        await server.provider.script([says('Cold.')], user)
        const conversation = history === 'conversation' ? { conversation: `conv-${user}` } : {}
        const question = { role: 'user' as const, content: user }
        const first = { model, tools: [weather], instructions: 'Be the first agent.', ...conversation }
        const asked = await client.responses.create({ ...first, input: [question] })
        const [call] = functionCalls(asked)
        assert.ok(call !== undefined)
        const result = { type: 'function_call_output' as const, call_id: call.call_id, output: '4 degrees' }

        const inputs = {
          'the whole input': { input: [question, ...(asked.output as OpenAi7.Responses.ResponseInputItem[]), result] },
          previous_response_id: { previous_response_id: asked.id, input: [result] },
          conversation: { ...conversation, input: [result] },
        }
        const handedOver = { model, instructions: 'Be the second agent.', ...inputs[history] }
        const key = { headers: { 'idempotency-key': user } }
        const answer = await client.responses.create(handedOver, key)

        assert.equal(answer.output_text, 'Cold.')
        const prompt = JSON.stringify((await server.asked(user)).at(-1)?.body.messages)
        for (const told of ['Let me see.', '4 degrees', 'weather', 'Be the second agent.'])
          assert.ok(prompt.includes(told))
        assert.ok(!prompt.includes('Be the first agent.'))
        assert.deepEqual(
          (await runsOf(user)).map(({ status }) => status),
          ['succeeded', 'cancelled'],
        )
        // A client that repeats the request gets the same answer.
        assert.equal((await client.responses.create(handedOver, key)).id, answer.id)
      })
    }

    test('a decision about a call of the server comes with the settings of the response that asked', async () => {
      const user = someone()
      const client = clientOf(version, user)
      amount += 1
      await server.provider.script([calls(['charge', { amount }])], user)
      const asked = await client.responses.create({ model, input: user })
      const request = asked.output.find((item) => item.type === 'mcp_approval_request')
      assert.ok(request !== undefined)

      const decision = { type: 'mcp_approval_response' as const, approval_request_id: request.id, approve: true }
      const next = { model, previous_response_id: asked.id, input: [decision], temperature: 0.3 }
      await assert.rejects(client.responses.create(next), { code: 'unsupported_parameter', param: 'temperature' })

      assert.equal((await runsOf(user))[0]?.status, 'awaiting_input')
      await client.responses.cancel(asked.id)
    })

    for (const approve of [true, false]) {
      test(`a call that needs consent is an approval request, and ${approve ? 'runs' : 'does not run'}`, async () => {
        const user = someone()
        const client = clientOf(version, user)
        amount += 1
        await server.provider.script([calls(['charge', { amount }]), says('Done.')], user)
        const asked = await client.responses.create({ model, input: user })
        const request = asked.output.find((item) => item.type === 'mcp_approval_request')
        assert.ok(request !== undefined)
        assert.deepEqual([request.name, request.arguments], ['charge', JSON.stringify({ amount })])
        assert.ok(!effects.lines().includes(`charge ${amount}`))

        const answer = await client.responses.create({
          model,
          previous_response_id: asked.id,
          input: [{ type: 'mcp_approval_response', approval_request_id: request.id, approve }],
        })

        assert.equal(answer.output_text, 'Done.')
        const call = answer.output.find((item) => item.type === 'mcp_call')
        assert.equal(call?.status, approve ? 'completed' : 'failed')
        assert.equal(effects.lines().filter((line) => line === `charge ${amount}`).length, approve ? 1 : 0)
      })
    }

    test('after the last event of a response nothing follows, also while its run waits and when it has gone on', async () => {
      const user = someone()
      const client = clientOf(version, user)
      amount += 1
      await server.provider.script([calls(['charge', { amount }]), says('Done.')], user)
      const asked = await client.responses.create({ model, input: user })
      const last = (await eventsOf(await client.responses.retrieve(asked.id, { stream: true }))).at(-1)
      assert.equal(last?.type, 'response.completed')
      const rest = async () =>
        await eventsOf(
          await client.responses.retrieve(asked.id, { stream: true, starting_after: last?.sequence_number ?? -1 }),
        )

      assert.deepEqual(await rest(), [])
      const request = asked.output.find((item) => item.type === 'mcp_approval_request')
      await client.responses.create({
        model,
        previous_response_id: asked.id,
        input: [{ type: 'mcp_approval_response', approval_request_id: request?.id ?? '', approve: false }],
      })
      assert.deepEqual(await rest(), [])
    })

    test('a run of another API is a response too: it is read, answered, continued and cancelled, and not deleted', async () => {
      const user = someone()
      const client = clientOf(version, user)
      amount += 1
      await server.provider.script([calls(['charge', { amount }]), says('Charged.'), says('Welcome.')], user)
      const live = await server.chat(user, user)
      const { runId } = await server.reaches(user, runIdOf(live), 'awaiting_input')
      const id = `resp_${runId}`

      const asked = await client.responses.retrieve(id)
      const request = asked.output.find((item) => item.type === 'mcp_approval_request')
      const events = await eventsOf(await client.responses.retrieve(id, { stream: true, starting_after: 1 }))
      assert.deepEqual([asked.status, events[0]?.sequence_number], ['completed', 2])
      assert.equal((await client.responses.inputItems.list(id)).data.length, 1)
      const answer = await client.responses.create({
        model,
        previous_response_id: id,
        input: [{ type: 'mcp_approval_response', approval_request_id: request?.id ?? '', approve: true }],
      })
      assert.deepEqual([answer.id, answer.output_text], [`${id}_2`, 'Charged.'])
      assert.ok(effects.lines().includes(`charge ${amount}`))
      await live.ended()
      const next = await client.responses.create({ model, previous_response_id: answer.id, input: `${user} Thanks.` })
      assert.equal(next.output_text, 'Welcome.')
      assert.match(JSON.stringify((await server.asked(user)).at(-1)?.body.messages), /Charged\..*Thanks\./)
      assert.equal((await client.responses.cancel(id)).status, 'completed')
      await assert.rejects(client.responses.delete(id), { status: 404, code: 'response_not_found' })
      await assert.rejects(clientOf(version, someone()).responses.retrieve(id), { status: 404 })
    })

    test('previous_response_id continues from that response, also in two branches', async () => {
      const user = someone()
      const client = clientOf(version, user)
      await server.provider.script([says('Ada it is.'), says('Left.'), says('Right.'), says('Further.')], user)
      const first = await client.responses.create({ model, input: `${user} My name is Ada.` })
      const left = await client.responses.create({ model, previous_response_id: first.id, input: `${user} go left` })
      const right = await client.responses.create({ model, previous_response_id: first.id, input: `${user} go right` })
      await client.responses.create({ model, previous_response_id: left.id, input: `${user} and on` })

      const asked = (await server.asked(user)).map(({ body }) => JSON.stringify(body.messages))
      assert.match(asked[1] ?? '', /My name is Ada.*Ada it is.*go left/)
      assert.match(asked[2] ?? '', /My name is Ada.*Ada it is.*go right/)
      assert.doesNotMatch(asked[2] ?? '', /go left/)
      assert.match(asked[3] ?? '', /Ada it is.*go left.*Left\..*and on/)
      assert.equal(right.previous_response_id, first.id)
      const items = await client.responses.inputItems.list(left.id, { order: 'asc', limit: 2 })
      assert.deepEqual(
        items.data.map((item) => (item.type === 'message' ? item.role : item.type)),
        ['user', 'assistant'],
      )
      assert.equal(items.has_more, true)
      const all: string[] = []
      for await (const item of client.responses.inputItems.list(left.id, { limit: 1 })) all.push(item.id)
      assert.equal(new Set(all).size, 3)
      await assert.rejects(client.responses.create({ model, previous_response_id: 'resp_none', input: 'x' }), {
        status: 404,
        code: 'response_not_found',
      })
    })

    test('the calls of the server in a response are part of its history', async () => {
      const user = someone()
      const client = clientOf(version, user)
      await server.provider.script([calls(['lookup', { word: 'tea' }]), says('Found.'), says('As I said.')], user)
      const first = await client.responses.create({ model, input: `${user} look up tea` })
      const [call] = first.output
      assert.ok(call?.type === 'mcp_call')

      await client.responses.create({ model, previous_response_id: first.id, input: `${user} again` })

      const messages = (await server.asked(user))[2]?.body.messages ?? []
      const calling = messages.find(({ tool_calls }) => tool_calls !== undefined)
      assert.match(JSON.stringify(calling), /lookup.*tea/)
      assert.ok(messages.some(({ role, content }) => role === 'tool' && content === call.output))
    })

    test('an item of an earlier response can be referenced, by its owner only', async () => {
      const user = someone()
      const client = clientOf(version, user)
      await server.provider.script([says('Ada it is.'), says('Yes.')], user)
      const first = await client.responses.create({ model, input: `${user} My name is Ada.` })
      const [item] = first.output
      assert.ok(item?.id != null)
      const input = [
        { role: 'user' as const, content: `${user} My name is Ada.` },
        { type: 'item_reference' as const, id: item.id },
        { role: 'user' as const, content: `${user} Sure?` },
      ]

      await client.responses.create({ model, input })

      assert.match(JSON.stringify((await server.asked(user))[1]?.body.messages), /name is Ada.*Ada it is\..*Sure/)
      await assert.rejects(clientOf(version, someone()).responses.create({ model, input }), {
        code: 'response_not_found',
        param: 'input[1]',
      })
    })

    test('with conversation the messages are stored under that name', async () => {
      const user = someone()
      const client = clientOf(version, user)
      const conversation = `talk of ${user}`
      await server.provider.script([says('One.'), says('Two.')], user)

      const first = await client.responses.create({ model, input: `${user} first`, conversation })
      await client.responses.create({ model, input: `${user} second`, conversation: { id: conversation } })

      assert.deepEqual(first.conversation, { id: conversation })
      assert.match(JSON.stringify((await server.asked(user))[1]?.body.messages), /first.*One\./)
    })

    test('a structured answer is parsed, also after a wrong one', async () => {
      const user = someone()
      const client = clientOf(version, user)
      const Weather = z.object({ city: z.string(), degrees: z.number() })
      const body = { model, input: user, text: { format: zodTextFormat(Weather, 'weather') } }
      const good = says('{"city":"Oslo","degrees":4}')
      await server.provider.script([good, says('{"city":1}'), says('{"city":')], user)
      await server.provider.script([good, good], repairMarker)

      const first = await client.responses.parse(body)
      const repaired = await client.responses.parse(body)
      const streamed = await client.responses.stream(body).finalResponse()

      for (const { output_parsed } of [first, repaired, streamed])
        assert.deepEqual(output_parsed, { city: 'Oslo', degrees: 4 })
    })

    test('images are stored, and are items of the input', async () => {
      const user = someone()
      const client = clientOf(version, user)
      await server.provider.script([says('A dot.')], user)

      const response = await client.responses.create({
        model,
        input: [
          {
            role: 'user',
            content: [
              { type: 'input_text', text: user },
              { type: 'input_image', image_url: `data:image/png;base64,${dot}`, detail: 'auto' },
            ],
          },
        ],
      })

      const [item] = (await client.responses.inputItems.list(response.id)).data
      assert.ok(item?.type === 'message')
      assert.deepEqual(
        (item.content as { type: string }[]).map(({ type }) => type),
        ['input_text', 'input_image'],
      )
      assert.equal(((await server.call('GET', '/v1/files', { user })).body.data as Json[]).length, 1)
    })

    test('in the background the response is there at once, and goes on without its reader', async () => {
      const user = someone()
      const client = clientOf(version, user)
      await server.provider.script([hangsAfter('Beg', 'inning')], user)

      const queued = await client.responses.create({ model, input: user, background: true })
      assert.ok(queued.status === 'queued' || queued.status === 'in_progress')
      assert.equal(queued.background, true)
      let last = -1
      for await (const event of await client.responses.retrieve(queued.id, { stream: true })) {
        last = event.sequence_number
        if (event.type === 'response.output_text.delta' && event.delta === 'Beg') break
      }
      const partial = await until('the second delta', async () => {
        const now = await client.responses.retrieve(queued.id)
        return now.output_text === 'Beginning' ? now : undefined
      })
      assert.equal(partial.status, 'in_progress')
      await assert.rejects(client.responses.create({ model, previous_response_id: queued.id, input: 'x' }), {
        code: 'conversation_busy',
      })

      const rest = await client.responses.retrieve(queued.id, { stream: true, starting_after: last })
      const cancelled = await client.responses.cancel(queued.id)
      const events = await eventsOf(rest)

      assert.equal(cancelled.status, 'cancelled')
      assert.deepEqual(await client.responses.cancel(queued.id), cancelled)
      assert.equal(events[0]?.sequence_number, last + 1)
      const end = events.at(-1)
      assert.ok(end?.type === 'response.incomplete')
      assert.equal(end.response.status, 'cancelled')
    })

    test('a deleted response is gone', async () => {
      const user = someone()
      const client = clientOf(version, user)
      await server.provider.script([says('Gone soon.')], user)
      const { id } = await client.responses.create({ model, input: user })

      await client.responses.delete(id)

      await assert.rejects(client.responses.retrieve(id), { status: 404, code: 'response_not_found' })
      await assert.rejects(client.responses.delete(id), { status: 404 })
      assert.deepEqual(await runsOf(user), [])
    })

    test('a response that was cut off is incomplete, and one that failed says why', async () => {
      const user = someone()
      const client = clientOf(version, user)
      await server.provider.script(
        [
          [{ text: 'Once upon' }, { finish: 'length' }],
          [{ text: 'a' }, { cut: true }],
          [{ status: 400, body: { error: { message: 'no' } } }],
        ],
        user,
      )

      const cut = await client.responses.create({ model, input: user, max_output_tokens: 5 })
      const events = await eventsOf(await client.responses.create({ model, input: user, stream: true }))

      assert.deepEqual([cut.status, cut.incomplete_details], ['incomplete', { reason: 'max_output_tokens' }])
      const end = events.at(-1)
      assert.ok(end?.type === 'response.failed')
      assert.deepEqual([end.response.status, end.response.error?.code], ['failed', 'model_stream_incomplete'])
      assert.equal((await client.responses.retrieve(end.response.id)).status, 'failed')
      await assert.rejects(client.responses.create({ model, input: user }), (error: unknown) => {
        assert.ok(error instanceof version.InternalServerError)
        return error.code === 'model_error'
      })
      assert.equal((await runsOf(user)).length, 3)
    })

    test('what is not supported is refused by name', async () => {
      const user = someone()
      const client = clientOf(version, user)
      const refused: [string, object][] = [
        ['max_tool_calls', { max_tool_calls: 3 }],
        ['tools[0]', { tools: [{ type: 'mcp', server_label: 'x' }] }],
        ['tool_choice', { tools: [weather], tool_choice: { type: 'function', name: 'none' } }],
        ['background', { background: true, store: false }],
        ['previous_response_id', { previous_response_id: 'resp_1', conversation: 'c' }],
        ['prompt', { prompt: { id: 'pmpt_1' } }],
      ]
      for (const [param, fields] of refused) {
        const request = client.responses.create({ model, input: user, ...fields }) as Promise<unknown>
        await assert.rejects(request, { status: 400, code: 'unsupported_parameter', param })
      }
      await assert.rejects(
        client.responses.create({ model, input: [{ type: 'compaction', encrypted_content: 'x' }] }),
        {
          code: 'unsupported_content',
          param: 'input[0]',
        },
      )
      await assert.rejects(client.responses.create({ model, input: user, tools: [{ type: 'web_search' }] }), {
        status: 400,
        code: 'provider_tool_unavailable',
      })
      const large = { format: { type: 'text' as const, filler: 'x'.repeat(200_000) } }
      await assert.rejects(client.responses.create({ model, input: user, text: large }), { code: 'invalid_request' })
      assert.deepEqual(await runsOf(user), [])
    })

    test('another user has no part in it', async () => {
      const [user, other] = [someone(), someone()]
      await server.provider.script([calls(['weather', { city: 'Oslo' }])], user)
      const asked = await clientOf(version, user).responses.create({ model, input: user, tools: [weather] })
      const stranger = clientOf(version, other)
      const [call] = functionCalls(asked)
      assert.ok(call !== undefined)

      const missing = { status: 404, code: 'response_not_found' }
      await assert.rejects(stranger.responses.retrieve(asked.id), missing)
      await assert.rejects(stranger.responses.retrieve(asked.id, { stream: true }), missing)
      await assert.rejects(stranger.responses.cancel(asked.id), missing)
      await assert.rejects(stranger.responses.delete(asked.id), missing)
      await assert.rejects(async () => await stranger.responses.inputItems.list(asked.id), missing)
      await assert.rejects(stranger.responses.create({ model, input: 'x', previous_response_id: asked.id }), missing)
      const forged = { type: 'function_call_output' as const, call_id: call.call_id, output: 'forged' }
      await assert.rejects(stranger.responses.create({ model, input: [forged] }), { code: 'messages_invalid' })

      const [run] = await runsOf(user)
      assert.equal(run?.status, 'awaiting_input')
      await clientOf(version, user).responses.cancel(asked.id)
    })
  })
}
