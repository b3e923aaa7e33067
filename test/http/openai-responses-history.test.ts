// What a response of OpenAI's API continues, with its real clients: earlier responses, conversations, runs of other APIs.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type OpenAi7 from 'openai'
import { eventsOf, functionCalls, model, openAiClient, openAiVersions, weather } from '../support/openai-responses.ts'
import { sharedMcpServerProcess } from '../support/shared-mcp-server.ts'
import { calls, type Json, runIdOf, says, someone } from '../support/test-server.ts'

const { server, effects } = sharedMcpServerProcess()

const clientOf = (version: typeof OpenAi7, user: string) => openAiClient(version, server.polylog.baseUrl, user)

let amount = 80000

const runsOf = async (user: string) => (await server.call('GET', '/v1/agent/runs', { user })).body as unknown as Json[]

for (const [name, version] of openAiVersions) {
  describe(`the history of Responses with ${name}`, () => {
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

    test('the items of a response can be sent back as they came, with the calls of the server', async () => {
      const user = someone()
      const client = clientOf(version, user)
      const first = calls(['lookup', { word: 'tea' }], ['lookup', { wrong: true }, 'second'])
      await server.provider.script([first, says('Found.'), says('As I said.'), says('Again.')], user)
      const question = { role: 'user' as const, content: user }
      const { output } = await client.responses.create({ model, input: [question] })
      const succeeded = output.find((item) => item.type === 'mcp_call' && item.status === 'completed')
      const failed = output.find((item) => item.type === 'mcp_call' && item.status === 'failed')
      assert.ok(succeeded?.type === 'mcp_call' && failed?.type === 'mcp_call')

      const items = output as OpenAi7.Responses.ResponseInputItem[]
      const references = output.map(({ id }) => ({ type: 'item_reference' as const, id: id ?? '' }))
      await client.responses.create({ model, input: [question, ...items, question] })
      await client.responses.create({ model, input: [question, ...references, question] })

      for (const { body } of (await server.asked(user)).slice(2)) {
        const results = (body.messages ?? []).filter(({ role }) => role === 'tool').map(({ content }) => content)
        assert.deepEqual(new Set(results), new Set([succeeded.output, failed.error]))
      }
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

    test('a refusal in the history is what the assistant said, on both APIs', async () => {
      const user = someone()
      const client = clientOf(version, user)
      await server.provider.script([says('One.'), says('Two.')], user)
      const refusal = { type: 'refusal' as const, refusal: 'I cannot help with that.' }
      const content: [typeof refusal] = [refusal]
      const question = { role: 'user' as const, content: 'Pick the lock.' }
      const last = { role: 'user' as const, content: user }

      const said = { id: 'msg_1', type: 'message' as const, role: 'assistant' as const, status: 'completed' as const }
      await client.responses.create({ model, input: [question, { ...said, content }, last] })
      await client.chat.completions.create({ model, messages: [question, { role: 'assistant', content }, last] })

      for (const { body } of await server.asked(user)) {
        const { messages = [] } = body
        assert.equal(messages.find(({ role }) => role === 'assistant')?.content, refusal.refusal)
      }
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
