// Tools that the client executes: the model calls them, the run waits, and the client sends the
// results over HTTP. Native wire; the AI SDK's wires have tests of their own.

import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { agentFolder } from '../support/agent-folder.ts'
import type { SseStream } from '../support/sse.ts'
import {
  assertCallsArePaired,
  calls,
  endOf,
  messagesOf,
  runIdOf,
  says,
  sharedTestServer,
  someone,
  toolState,
  toolStatuses,
} from '../support/test-server.ts'

const agents = agentFolder()
after(() => agents.dispose())
agents.agent('guide', {
  tools: { mode: 'denylist', allowedTools: [] },
  clientTools: [{ name: 'locate', description: 'By the agent.', inputSchema: { type: 'object', properties: {} } }],
})
agents.agent('torn', { clientTools: [{ name: 'locate', inputSchema: { type: 'array' } }] })
const server = sharedTestServer({ POLYLOG_AGENTS_DIR: agents.path })

const locate = {
  name: 'locate',
  description: 'Where the user is.',
  inputSchema: { type: 'object', properties: { precise: { type: 'boolean' } }, required: ['precise'] },
}

type Waiting = { user: string; runId: string; stream: SseStream }

/** A run that waits for the result of `locate`. */
async function askToLocate(): Promise<Waiting> {
  const user = someone()
  await server.provider.script([calls(['locate', { precise: true }, 'call_a']), says('Nice place.')], user)
  const stream = await server.chat(user, { input: user, conversationId: `conv-${user}`, clientTools: [locate] })
  await stream.waitFor(toolState('awaiting_input'))
  const runId = runIdOf(stream)
  await server.reaches(user, runId, 'awaiting_input')
  return { user, runId, stream }
}

const send = ({ user, runId }: Waiting, ...results: object[]) =>
  server.call('POST', `/v1/agent/runs/${runId}/tool-results`, { user, body: { results } })

describe('a tool of the client', () => {
  test('is offered to the model, and its call tells the client all that it needs', async () => {
    const waiting = await askToLocate()

    const frame = waiting.stream.frames.find(toolState('awaiting_input'))?.json.data
    const [request] = await server.asked(waiting.user)
    const tools = (request?.body['tools'] ?? []) as { function: { name: string; parameters: object } }[]
    const offered = tools.at(-1)
    assert.equal(offered?.function.name, 'locate')
    assert.deepEqual(offered?.function.parameters, locate.inputSchema)
    assert.partialDeepStrictEqual(frame, {
      toolId: 'call_a',
      name: 'locate',
      source: 'client',
      previousStatus: 'running',
      input: { precise: true },
    })
    assert.equal(typeof frame?.interactionId, 'string')
    assert.equal(frame?.confirmationId, undefined)
  })

  test('is named by the run while it waits, and by no list of confirmations', async () => {
    const waiting = await askToLocate()
    const { user, runId } = waiting

    const run = (await server.call('GET', `/v1/agent/runs/${runId}`, { user })).body
    const confirmations = (await server.call('GET', '/v1/tool-confirmations', { user })).body
    assert.partialDeepStrictEqual(run.clientToolCalls, [
      { toolCallId: 'call_a', toolName: 'locate', input: { precise: true } },
    ])
    assert.ok(run.clientToolCalls[0].expiresAtMs > run.createdAtMs)
    assert.deepEqual(confirmations, [])
    await send(waiting, { toolCallId: 'call_a', output: 'Oslo' })
    await waiting.stream.ended()
    assert.equal((await server.call('GET', `/v1/agent/runs/${runId}`, { user })).body.clientToolCalls, undefined)
  })

  test('gives the run its result, and the stream goes on', async () => {
    const waiting = await askToLocate()

    const answer = await send(waiting, { toolCallId: 'call_a', output: { city: 'Oslo' } })
    await waiting.stream.ended()

    assert.equal(answer.status, 200)
    assert.partialDeepStrictEqual(answer.body, { runId: waiting.runId, accepted: ['call_a'], waiting: [] })
    assert.deepEqual(toolStatuses(waiting.stream.frames, 'locate'), [
      'queued',
      'running',
      'awaiting_input',
      'succeeded',
    ])
    assert.equal(endOf(waiting.stream.frames).output, 'Nice place.')
    const messages = messagesOf((await server.asked(waiting.user))[1])
    assertCallsArePaired(messages)
    assert.equal(messages.at(-1)?.content, '{"city":"Oslo"}')
  })

  test('may fail, and the model reads why', async () => {
    const waiting = await askToLocate()

    await send(waiting, { toolCallId: 'call_a', error: 'No permission.' })
    await waiting.stream.ended()

    assert.equal(toolStatuses(waiting.stream.frames, 'locate').at(-1), 'failed')
    const messages = messagesOf((await server.asked(waiting.user))[1])
    assert.equal(messages.at(-1)?.content, 'The tool failed: No permission.')
  })

  test('has one result', async () => {
    const waiting = await askToLocate()
    const given = { toolCallId: 'call_a', output: 'Oslo' }

    const answers = await Promise.all([send(waiting, given), send(waiting, given)])
    const other = await send(waiting, { toolCallId: 'call_a', output: 'Rome' })
    await waiting.stream.ended()

    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200],
    )
    assert.deepEqual([other.status, other.body.code], [409, 'tool_result_already_given'])
    assert.equal((await server.asked(waiting.user)).length, 2)
  })

  test('takes no result that makes no sense', async () => {
    const waiting = await askToLocate()
    const both = await send(waiting, { toolCallId: 'call_a', output: 1, error: 'no' })
    const neither = await send(waiting, { toolCallId: 'call_a' })
    const unknown = await send(waiting, { toolCallId: 'call_b', output: 1 })
    const large = await send(waiting, { toolCallId: 'call_a', output: 'x'.repeat(300_000) })

    assert.deepEqual(
      [both, neither, unknown, large].map(({ status, body }) => [status, body.code]),
      [
        [400, 'invalid_request'],
        [400, 'invalid_request'],
        [404, 'tool_call_not_found'],
        [413, 'tool_result_too_large'],
      ],
    )
    assert.equal((await send(waiting)).status, 400)
  })

  test('is closed by a cancel', async () => {
    const waiting = await askToLocate()

    await server.call('POST', `/v1/agent/runs/${waiting.runId}/cancel`, { user: waiting.user })
    await waiting.stream.ended()
    const late = await send(waiting, { toolCallId: 'call_a', output: 'Oslo' })

    assert.equal(toolStatuses(waiting.stream.frames, 'locate').at(-1), 'cancelled')
    assert.deepEqual([late.status, late.body.code], [409, 'tool_result_too_late'])
  })

  test('may be declared by the agent, and the request may replace it', async () => {
    const offered = async (body: object) => {
      const user = someone()
      await server.provider.script([says('Hi.')], user)
      await server.chatToEnd(user, { input: user, agentId: 'guide', ...body })
      const [request] = await server.asked(user)
      const tools = (request?.body['tools'] ?? []) as { function: { name: string; description?: string } }[]
      return tools
        .filter(({ function: { name } }) => name === 'locate')
        .map(({ function: { description } }) => description)
    }

    assert.deepEqual(await offered({}), ['By the agent.'])
    assert.deepEqual(await offered({ clientTools: [locate] }), ['Where the user is.'])
    const broken = await server.call('POST', '/v1/agent/chat', { body: { input: 'hi', agentId: 'torn' } })
    assert.equal(broken.body.code, 'agent_unavailable')
    assert.match(broken.body.message, /clientTools: the inputSchema of "locate" cannot be used/)
  })

  test('must have a name and a schema of its own', async () => {
    const user = someone()
    const start = async (clientTools: unknown, path = '/v1/agent/chat') =>
      (await server.call('POST', path, { user, body: { input: 'hi', clientTools } })).body.code as string

    assert.equal(await start([{ name: 'current_time', inputSchema: {} }]), 'client_tool_conflict')
    assert.equal(await start([locate, locate]), 'client_tools_invalid')
    assert.equal(await start([{ ...locate, inputSchema: { type: 'string' } }]), 'client_tools_invalid')
    assert.equal(await start([{ ...locate, name: 'not valid' }]), 'invalid_request')
    assert.equal(await start([{ name: 'locate' }]), 'invalid_request')
    const once = await server.call('POST', '/v1/agent/run', {
      user,
      body: { agentId: 'chat_conversation', input: { message: 'hi', clientTools: [locate] } },
    })
    assert.equal(once.body.code, 'client_tools_invalid')
  })
})
