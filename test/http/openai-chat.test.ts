// POST /v1/chat/completions with the real clients of OpenAI, versions 6 and 7, over real sockets.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import OpenAi7 from 'openai'
import OpenAi6 from 'openai-6'
import { zodResponseFormat } from 'openai/helpers/zod'
import { z } from 'zod'
import { apiKeysSetting } from '../support/api-keys.ts'
import { sharedMcpServerProcess } from '../support/shared-mcp-server.ts'
import { calls, hangsAfter, type Json, says, someone, startTestServer, until } from '../support/test-server.ts'

const { server, effects } = sharedMcpServerProcess()

/** A type of one version, because the two differ only in details that these tests do not use. */
type Client = OpenAi7

function clientOf(version: typeof OpenAi7, user: string, headers: Record<string, string> = {}): Client {
  return new version({
    baseURL: `${server.polylog.baseUrl}/v1`,
    apiKey: 'not needed',
    defaultQuery: { userId: user },
    defaultHeaders: headers,
  })
}

let amount = 70_000

/** A PNG with one pixel. */
const dot = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

const weather = {
  type: 'function' as const,
  function: {
    name: 'weather',
    description: 'The weather in a city.',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
}

const model = 'chat_conversation'
/** What the server writes when it asks for a structured answer once more. */
const repairMarker = 'cannot be used as the final answer'
const ask = (text: string) => [{ role: 'user' as const, content: text }]
const runsOf = async (user: string) => (await server.call('GET', '/v1/agent/runs', { user })).body as unknown as Json[]

for (const [name, version] of [
  ['openai 7', OpenAi7],
  ['openai 6', OpenAi6 as unknown as typeof OpenAi7],
] as const) {
  describe(`Chat Completions with ${name}`, () => {
    test('gives one answer with its usage, and no conversation is created', async () => {
      const user = someone()
      await server.provider.script(
        [[{ text: ['Hel', 'lo.'] }, { finish: 'stop', usage: { prompt_tokens: 7, completion_tokens: 2 } }]],
        user,
      )

      const { data, response } = await clientOf(version, user)
        .chat.completions.create({ model, messages: ask(user) })
        .withResponse()

      assert.equal(data.object, 'chat.completion')
      assert.deepEqual(data.choices, [
        {
          index: 0,
          message: { role: 'assistant', content: 'Hello.', refusal: null },
          logprobs: null,
          finish_reason: 'stop',
        },
      ])
      assert.equal(data.model, model)
      assert.deepEqual([data.usage?.prompt_tokens, data.usage?.completion_tokens, data.usage?.total_tokens], [7, 2, 9])
      assert.match(response.headers.get('x-request-id') ?? '', /^req_/)
      assert.equal(data.id, `chatcmpl-${response.headers.get('x-run-id')}`)
      assert.deepEqual((await server.call('GET', '/v1/conversations', { user })).body, [])
    })

    test('streams the answer in chunks, with the usage only if it is asked for', async () => {
      const user = someone()
      const client = clientOf(version, user)
      await server.provider.script([says('One ', 'two.'), says('Three.')], user)

      const chunks: OpenAi7.ChatCompletionChunk[] = []
      for await (const chunk of await client.chat.completions.create({ model, messages: ask(user), stream: true }))
        chunks.push(chunk)
      const withUsage = await client.chat.completions
        .stream({ model, messages: ask(user), stream_options: { include_usage: true } })
        .finalChatCompletion()

      assert.equal(chunks[0]?.choices[0]?.delta.role, 'assistant')
      assert.equal(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join(''), 'One two.')
      assert.deepEqual(
        chunks.flatMap((chunk) => chunk.choices[0]?.finish_reason ?? []),
        ['stop'],
      )
      assert.ok(chunks.every((chunk) => chunk.usage == null && chunk.id === chunks[0]?.id))
      assert.equal(withUsage.choices[0]?.message.content, 'Three.')
      assert.equal(typeof withUsage.usage?.total_tokens, 'number')
    })

    test('the messages are the history, and system messages are instructions', async () => {
      const user = someone()
      await server.provider.script([says('Fine.')], user)

      await clientOf(version, user).chat.completions.create({
        model,
        messages: [
          { role: 'developer', content: 'Answer in one word.' },
          { role: 'user', content: 'My name is Ada.' },
          { role: 'assistant', content: 'Hello Ada.' },
          { role: 'user', content: user },
        ],
      })

      const [asked] = await server.asked(user)
      const told = (asked?.body.messages ?? []).map(({ role, content }) => `${role}: ${String(content)}`)
      assert.ok(told.some((line) => line.startsWith('system:') && line.includes('Answer in one word.')))
      assert.deepEqual(told.slice(-3), ['user: My name is Ada.', 'assistant: Hello Ada.', `user: ${user}`])
    })

    test('with metadata.conversation_id the conversation is stored, and its history counts', async () => {
      const user = someone()
      const client = clientOf(version, user)
      const metadata = { conversation_id: `talk of ${user}` }
      await server.provider.script([says('One.'), says('Two.')], user)

      await client.chat.completions.create({ model, messages: ask(`${user} first`), metadata })
      await client.chat.completions.create({ model, messages: ask(`${user} second`), metadata })

      const asked = JSON.stringify((await server.asked(user))[1])
      assert.match(asked, /first/)
      const conversations = (await server.call('GET', '/v1/conversations', { user })).body as unknown as Json[]
      assert.deepEqual(
        conversations.map(({ id }) => id),
        [metadata.conversation_id],
      )
    })

    test('tools of the server run there, and a client that does not know them just gets the answer', async () => {
      const user = someone()
      await server.provider.script([calls(['lookup', { word: 'five' }]), says('It is 5.')], user)

      const stream = clientOf(version, user).chat.completions.stream({ model, messages: ask(user) })
      const told: unknown[] = []
      stream.on('chunk', (chunk) => told.push((chunk as { polylog?: { outcome?: string } }).polylog?.outcome))
      const final = await stream.finalChatCompletion()

      assert.deepEqual(
        [final.choices[0]?.message.content, final.choices[0]?.finish_reason, final.choices[0]?.message.tool_calls],
        ['It is 5.', 'stop', undefined],
      )
      assert.ok(told.includes('succeeded'), 'the call is beside the choices')
      const [run] = await runsOf(user)
      assert.equal(run?.status, 'succeeded')
    })

    test('a structured answer is parsed, also if the model needs a second attempt', async () => {
      const user = someone()
      const client = clientOf(version, user)
      const Weather = z.object({ city: z.string(), degrees: z.number() })
      const format = { model, messages: ask(user), response_format: zodResponseFormat(Weather, 'weather') }
      const good = says('{"city":"Oslo","degrees":4}')
      await server.provider.script([good, says('{"city":1}'), says('{"city":')], user)
      await server.provider.script([good, good], repairMarker)

      const first = await client.chat.completions.parse(format)
      const repaired = await client.chat.completions.parse(format)
      const streamed = await client.chat.completions.stream(format).finalChatCompletion()

      for (const { choices } of [first, repaired, streamed])
        assert.deepEqual(choices[0]?.message.parsed, { city: 'Oslo', degrees: 4 })
    })

    test('an answer that was cut off says so', async () => {
      const user = someone()
      await server.provider.script([[{ text: 'Once upon' }, { finish: 'length' }]], user)

      const answer = await clientOf(version, user).chat.completions.create({
        model,
        messages: ask(user),
        max_completion_tokens: 5,
      })

      assert.equal(answer.choices[0]?.finish_reason, 'length')
      const [asked] = await server.asked(user)
      assert.equal(asked?.body['max_tokens'], 5)
    })

    test('errors are the classes of the client, with code and param', async () => {
      const user = someone()
      const client = clientOf(version, user)
      const bad = (fields: object) =>
        client.chat.completions.create({ model, messages: ask(user), ...fields }) as Promise<unknown>

      await assert.rejects(bad({ n: 2 }), (error: unknown) => {
        assert.ok(error instanceof version.BadRequestError)
        assert.deepEqual([error.code, error.param, error.type], ['unsupported_parameter', 'n', 'invalid_request_error'])
        assert.match(error.message, /one request gives one answer/)
        assert.match(error.requestID ?? '', /^req_/)
        return true
      })
      await assert.rejects(bad({ logprobs: true }), { code: 'unsupported_parameter', param: 'logprobs' })
      await assert.rejects(bad({ model: 'anthropic/none' }), { code: 'unknown_model', status: 400 })
      await assert.rejects(bad({ model: 'agent/none' }), { code: 'agent_not_found', status: 404 })
      await assert.rejects(bad({ messages: [] }), { code: 'invalid_request', param: 'messages' })
      await assert.rejects(bad({ messages: [{ role: 'assistant', content: 'I' }] }), { code: 'messages_invalid' })
      assert.deepEqual(await runsOf(user), [])
    })

    test('a failing model is one failed run: the client does not send the request again', async () => {
      const user = someone()
      const client = clientOf(version, user)
      await server.provider.script(
        [[{ status: 400, body: { error: { message: 'no' } } }], [{ text: 'a' }, { cut: true }]],
        user,
      )

      await assert.rejects(client.chat.completions.create({ model, messages: ask(user) }), (error: unknown) => {
        assert.ok(error instanceof version.InternalServerError)
        assert.equal(error.code, 'model_error')
        return true
      })
      const stream = await client.chat.completions.create({ model, messages: ask(user), stream: true })
      await assert.rejects(
        async () => {
          for await (const _chunk of stream);
        },
        (error: unknown) => {
          assert.ok(error instanceof version.APIError)
          assert.equal(error.code, 'model_stream_incomplete')
          return true
        },
      )

      assert.equal((await runsOf(user)).length, 2)
    })

    test('the same Idempotency-Key gives the same answer; with another body it is refused', async () => {
      const user = someone()
      const client = clientOf(version, user)
      await server.provider.script([says('Once.')], user)
      const headers = { 'idempotency-key': `key of ${user}` }

      const first = await client.chat.completions.create({ model, messages: ask(user) }, { headers })
      const again = await client.chat.completions.create({ model, messages: ask(user) }, { headers })

      assert.deepEqual(again, first)
      await assert.rejects(client.chat.completions.create({ model, messages: ask('other') }, { headers }), {
        status: 409,
        code: 'idempotency_key_reused',
      })
      assert.equal((await runsOf(user)).length, 1)
    })

    test('a client that aborts leaves the run alone, unless it asked for a cancel', async () => {
      const user = someone()
      const client = clientOf(version, user)
      for (const onDisconnect of ['continue', 'cancel']) {
        const marker = `${user}${onDisconnect}`
        await server.provider.script([hangsAfter('Beg')], marker)
        const body = { model, messages: ask(marker), stream: true as const, onDisconnect }
        const stream = await client.chat.completions.create(body)
        for await (const chunk of stream) if (chunk.choices[0]?.delta.content === 'Beg') break
      }

      const [cancelled, going] = await until('the cancel', async () => {
        const runs = await runsOf(user)
        return runs[0]?.status === 'cancelled' ? runs : undefined
      })
      assert.deepEqual([cancelled?.status, going?.status], ['cancelled', 'running'])
      await server.call('POST', `/v1/agent/runs/${going?.runId}/cancel`, { user })
    })

    test('the tools of the client are called there, in parallel, and the same run goes on with their results', async () => {
      for (const stream of [false, true]) {
        const user = someone()
        const client = clientOf(version, user)
        const messages: OpenAi7.ChatCompletionMessageParam[] = ask(user)
        await server.provider.script(
          [
            calls(['weather', { city: 'Oslo' }], ['weather', { city: 'Rome' }], ['lookup', { word: 'x' }]),
            says('Cold, warm, 5.'),
          ],
          user,
        )
        const next = async (): Promise<OpenAi7.ChatCompletion> =>
          stream
            ? await client.chat.completions.stream({ model, messages, tools: [weather] }).finalChatCompletion()
            : await client.chat.completions.create({ model, messages, tools: [weather] })

        const asked = await next()
        const [choice] = asked.choices
        assert.equal(choice?.finish_reason, 'tool_calls')
        const called = choice?.message.tool_calls?.filter((call) => call.type === 'function') ?? []
        assert.deepEqual(
          called.map(({ function: { name: tool, arguments: input } }) => [tool, input]),
          [
            ['weather', '{"city":"Oslo"}'],
            ['weather', '{"city":"Rome"}'],
          ],
        )
        assert.ok(choice !== undefined)
        messages.push(choice.message)
        for (const { id } of called) messages.push({ role: 'tool', tool_call_id: id, content: `result of ${id}` })
        const answer = await next()

        assert.equal(answer.choices[0]?.message.content, 'Cold, warm, 5.')
        assert.equal(answer.id, `${asked.id}-2`)
        const told = JSON.stringify((await server.asked(user))[1]?.body.messages)
        for (const { id } of called) assert.ok(told.includes(`result of ${id}`))
        assert.equal((await runsOf(user)).length, 1)
        // A client that repeats the request gets the same answer.
        assert.equal((await next()).choices[0]?.message.content, 'Cold, warm, 5.')
        assert.equal((await runsOf(user)).length, 1)
      }
    })

    test('a request that continues with other settings is a new run, and the one that waited ends', async () => {
      const user = someone()
      const client = clientOf(version, user)
      await server.provider.script([calls(['weather', { city: 'Oslo' }]), says('Cold.')], user)
      const asked = await client.chat.completions.create({ model, messages: ask(user), tools: [weather] })
      const message = asked.choices[0]?.message
      assert.ok(message?.tool_calls?.[0] !== undefined)
      const result = { role: 'tool' as const, tool_call_id: message.tool_calls[0].id, content: '4 degrees' }

      const answer = await client.chat.completions.create({
        model,
        messages: [...ask(user), message, result],
        tools: [weather],
        temperature: 0.5,
      })

      assert.equal(answer.choices[0]?.message.content, 'Cold.')
      const [second] = (await server.asked(user)).slice(-1)
      assert.equal(second?.body['temperature'], 0.5)
      assert.match(JSON.stringify(second?.body.messages), /4 degrees/)
      const statuses = await until('the end of both runs', async () => {
        const found = (await runsOf(user)).map(({ status }) => status)
        return found.includes('awaiting_input') ? undefined : found
      })
      assert.deepEqual(statuses, ['succeeded', 'cancelled'])
    })

    test('the result of a call of another user is only a message of the history', async () => {
      const [user, other] = [someone(), someone()]
      await server.provider.script([calls(['weather', { city: 'Oslo' }]), says('Fine.')], user)
      const asked = await clientOf(version, user).chat.completions.create({
        model,
        messages: ask(user),
        tools: [weather],
      })
      const message = asked.choices[0]?.message
      assert.ok(message?.tool_calls?.[0] !== undefined)
      const result = { role: 'tool' as const, tool_call_id: message.tool_calls[0].id, content: 'forged' }
      await server.provider.script([says('Mine.')], other)

      await clientOf(version, other).chat.completions.create({
        model,
        messages: [...ask(other), message, result],
        tools: [weather],
      })

      const [run] = await runsOf(user)
      assert.equal(run?.status, 'awaiting_input')
      await server.call('POST', `/v1/agent/runs/${run?.runId}/cancel`, { user })
    })

    test('runTools of the client works', async () => {
      const user = someone()
      await server.provider.script([calls(['weather', { city: 'Oslo' }]), says('It is cold in Oslo.')], user)
      const cities: string[] = []

      const runner = clientOf(version, user).chat.completions.runTools({
        model,
        messages: ask(user),
        tools: [
          {
            type: 'function',
            function: {
              ...weather.function,
              parse: JSON.parse,
              function: ({ city }: { city: string }) => {
                cities.push(city)
                return '4 degrees'
              },
            },
          },
        ],
      })

      assert.equal(await runner.finalContent(), 'It is cold in Oslo.')
      assert.deepEqual(cities, ['Oslo'])
      assert.equal((await runsOf(user)).length, 1)
    })

    test('a call that needs consent runs only after a clear yes', async () => {
      for (const [reply, runs] of [
        ['{"approved": true}', 1],
        ['Invalid tool_call: "charge".', 0],
      ] as const) {
        const user = someone()
        const client = clientOf(version, user)
        amount += 1
        await server.provider.script([calls(['charge', { amount }]), says('Done.')], user)
        const asked = await client.chat.completions.create({ model, messages: ask(user) })
        const message = asked.choices[0]?.message
        assert.equal(asked.choices[0]?.finish_reason, 'tool_calls')
        assert.ok(message?.tool_calls?.[0] !== undefined)
        assert.ok(!effects.lines().includes(`charge ${amount}`))

        const answer = await client.chat.completions.create({
          model,
          messages: [...ask(user), message, { role: 'tool', tool_call_id: message.tool_calls[0].id, content: reply }],
        })

        assert.equal(answer.choices[0]?.message.content, 'Done.')
        assert.equal(effects.lines().filter((line) => line === `charge ${amount}`).length, runs)
      }
    })

    test('a call whose result is missing is named', async () => {
      const user = someone()
      const client = clientOf(version, user)
      await server.provider.script([calls(['weather', { city: 'Oslo' }], ['weather', { city: 'Rome' }])], user)
      const asked = await client.chat.completions.create({ model, messages: ask(user), tools: [weather] })
      const message = asked.choices[0]?.message
      assert.ok(message?.tool_calls?.[0] !== undefined)
      const one = { role: 'tool' as const, tool_call_id: message.tool_calls[0].id, content: '4' }

      await assert.rejects(
        client.chat.completions.create({ model, messages: [...ask(user), message, one], tools: [weather] }),
        { code: 'messages_invalid', message: new RegExp(String(message.tool_calls[1]?.id)) },
      )
      const [run] = await runsOf(user)
      await server.call('POST', `/v1/agent/runs/${run?.runId}/cancel`, { user })
    })

    test('with tool_choice "none" the model is offered no tools', async () => {
      const user = someone()
      await server.provider.script([says('Alone.')], user)

      await clientOf(version, user).chat.completions.create({
        model,
        messages: ask(user),
        tools: [weather],
        tool_choice: 'none',
      })

      assert.equal((await server.asked(user))[0]?.body['tools'], undefined)
    })

    test('settings of the sampling and the forced tool reach the model, the latter in the first step only', async () => {
      const user = someone()
      const client = clientOf(version, user)
      await server.provider.script([calls(['weather', { city: 'Oslo' }]), says('Cold.')], user)
      const body = {
        model,
        tools: [weather],
        tool_choice: { type: 'function' as const, function: { name: 'weather' } },
        top_p: 0.5,
        stop: 'END',
        seed: 7,
        presence_penalty: 0.25,
        frequency_penalty: -0.5,
        reasoning_effort: 'low' as const,
        parallel_tool_calls: false,
        providerOptions: { openai: { topK: 3 } },
      }
      const asked = await client.chat.completions.create({ ...body, messages: ask(user) })
      const message = asked.choices[0]?.message
      assert.ok(message?.tool_calls?.[0] !== undefined)
      const result = { role: 'tool' as const, tool_call_id: message.tool_calls[0].id, content: '4' }
      await client.chat.completions.create({ ...body, messages: [...ask(user), message, result] })

      const [first, second] = (await server.asked(user)).map((request) => request.body)
      const { messages: _messages, tools: _tools, stream: _stream, stream_options: _options, ...sent } = first ?? {}
      assert.deepEqual(sent, {
        model: 'fake',
        top_p: 0.5,
        stop: ['END'],
        seed: 7,
        presence_penalty: 0.25,
        frequency_penalty: -0.5,
        tool_choice: { type: 'function', function: { name: 'weather' } },
        reasoning_effort: 'low',
        parallel_tool_calls: false,
        top_k: 3,
      })
      assert.deepEqual([second?.['top_p'], second?.['tool_choice']], [0.5, undefined])
    })

    test('images are stored as files, and the model gets them', async () => {
      const user = someone()
      await server.provider.script([says('A dot.')], user)

      await clientOf(version, user).chat.completions.create({
        model,
        messages: [
          {
            role: 'user',
            content: [
              { type: 'text', text: user },
              { type: 'image_url', image_url: { url: `data:image/png;base64,${dot}` } },
            ],
          },
        ],
      })

      const files = (await server.call('GET', '/v1/files', { user })).body.data as Json[]
      assert.equal(files.length, 1)
      const [asked] = await server.asked(user)
      assert.ok(JSON.stringify(asked?.body.messages).includes(dot))
    })

    test('models and agents are listed, and one of them can be looked up', async () => {
      const client = clientOf(version, someone())
      const ids: string[] = []
      for await (const each of client.models.list()) ids.push(each.id)

      assert.ok(ids.includes('agent/chat_conversation') && ids.includes('openai/fake'))
      for (const id of ['openai/fake', 'agent/chat_conversation'])
        assert.equal((await client.models.retrieve(id)).id, id)
      await assert.rejects(client.models.retrieve('none'), (error: unknown) => error instanceof version.NotFoundError)
    })
  })
}

test('the apiKey of the client is the login, and a wrong one is an AuthenticationError', async () => {
  const closed = await startTestServer({
    POLYLOG_AUTH: 'required',
    POLYLOG_API_KEYS: apiKeysSetting({ ada: 'key-of-ada' }),
  })
  try {
    const clientWith = (apiKey: string) => new OpenAi7({ baseURL: `${closed.polylog.baseUrl}/v1`, apiKey })
    await closed.provider.script([says('Hello Ada.')], 'who am I')

    const answer = await clientWith('key-of-ada').chat.completions.create({ model, messages: ask('who am I') })

    assert.equal(answer.choices[0]?.message.content, 'Hello Ada.')
    await assert.rejects(
      clientWith('key-of-bob').chat.completions.create({ model, messages: ask('who am I') }),
      (error: unknown) => {
        assert.ok(error instanceof OpenAi7.AuthenticationError)
        assert.match(error.requestID ?? '', /^req_/)
        return error.code === 'unauthorized'
      },
    )
  } finally {
    await closed.close()
  }
})
