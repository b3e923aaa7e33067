// /v1/responses with the real clients of OpenAI, versions 6 and 7, over real sockets.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type OpenAi7 from 'openai'
import { zodTextFormat } from 'openai/helpers/zod'
import type { ResponseStreamEvent } from 'openai/resources/responses/responses'
import { z } from 'zod'
import { eventsOf, model, openAiClient, openAiVersions, weather } from '../support/openai-responses.ts'
import { sharedMcpServerProcess } from '../support/shared-mcp-server.ts'
import { calls, hangsAfter, type Json, says, someone, until } from '../support/test-server.ts'

const { server } = sharedMcpServerProcess()

const clientOf = (version: typeof OpenAi7, user: string) => openAiClient(version, server.polylog.baseUrl, user)

let amount = 80000
/** A PNG with one pixel. */
const dot = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
/** What the server writes when it asks for a structured answer once more. */
const repairMarker = 'cannot be used as the final answer'

const runsOf = async (user: string) => (await server.call('GET', '/v1/agent/runs', { user })).body as unknown as Json[]

for (const [name, version] of openAiVersions) {
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
  })
}
