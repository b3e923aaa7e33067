// Calls in responses of OpenAI's API, with its real clients: functions of the client, and calls that need consent.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type OpenAi7 from 'openai'
import { eventsOf, functionCalls, model, openAiClient, openAiVersions, weather } from '../support/openai-responses.ts'
import { sharedMcpServerProcess } from '../support/shared-mcp-server.ts'
import { calls, type Json, says, someone } from '../support/test-server.ts'

const { server, effects } = sharedMcpServerProcess()

const clientOf = (version: typeof OpenAi7, user: string) => openAiClient(version, server.polylog.baseUrl, user)

let amount = 80000

const runsOf = async (user: string) => (await server.call('GET', '/v1/agent/runs', { user })).body as unknown as Json[]

for (const [name, version] of openAiVersions) {
  describe(`calls in Responses with ${name}`, () => {
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
  })
}
