// The client libraries behind a load balancer without sticky sessions: each request may reach another node
// than the one before. Real packages, real servers as processes on one database.

import { Client as LangGraphClient } from '@langchain/langgraph-sdk'
import * as ai7 from 'ai'
import * as ai5 from 'ai-5'
import * as ai6 from 'ai-6'
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import OpenAi7 from 'openai'
import OpenAi6 from 'openai-6'
import { createClient, emptyRun, foldRun, type RunFrame } from '../../client/src/index.ts'
import { a2aClients, type PlainUpdate, statesOf, textShown } from '../support/a2a-client.ts'
import { startAgUiUser } from '../support/ag-ui-user.ts'
import { type Cluster, type ClusterNode, startCluster } from '../support/cluster.ts'
import { type NastyProxy, startNastyProxy } from '../support/nasty-proxy.ts'
import { type FakeProcess, spawnFake } from '../support/spawn-fake.ts'
import { calls, hangsAfter, type Json, says, someone, until } from '../support/test-server.ts'
import { linesOfChat, uiChat, type UiSdk, untilLine, untilReady } from '../support/ui-chat-client.ts'

const agent = 'chat_conversation'

let ledger: FakeProcess
let folder: string
let cluster: Cluster
/** The address that all clients have. */
let balancer: NastyProxy

before(async () => {
  ledger = await spawnFake('ledger-server.ts')
  folder = mkdtempSync(join(tmpdir(), 'polylog-balanced-'))
  const config = join(folder, 'mcp.json')
  writeFileSync(config, JSON.stringify({ mcpServers: { ledger: { url: `${ledger.baseUrl}/mcp` } } }))
  // No lease ends within the time of a test, so what one node does for another was caused by a signal.
  cluster = await startCluster({ nodes: 2, environment: { POLYLOG_LEASE_MS: '600000', POLYLOG_MCP_CONFIG: config } })
  balancer = await startNastyProxy()
})
after(async () => {
  await balancer.close()
  await cluster.close()
  await ledger.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** From now on, requests of all clients go to this node. */
function use(node: 0 | 1): void {
  balancer.target = nodeAt(node).server.polylog.baseUrl
}

const nodeAt = (node: 0 | 1) => cluster.nodes[node] as ClusterNode

async function runsOf(user: string): Promise<Json[]> {
  const { body } = await nodeAt(0).server.call('GET', '/v1/agent/runs', { user })
  return body as unknown as Json[]
}

/** One run, which ended like this. */
async function assertOneRun(user: string, status: string): Promise<void> {
  assert.deepEqual(
    (await runsOf(user)).map((run) => run.status),
    [status],
  )
}

async function assertPaidOnce(user: string): Promise<void> {
  const entries = (await (await fetch(`${ledger.baseUrl}/ledger`)).json()) as Record<string, number>
  assert.equal(entries[user], 1)
}

/** The model wants to pay, which needs consent, and then says so. */
async function wantsToPay(): Promise<string> {
  const user = someone()
  await cluster.provider.script([calls(['pay', { payment: user }]), says('Paid', '.')], user)
  return user
}

/** The model begins an answer and does not end it. */
async function talks(): Promise<string> {
  const user = someone()
  await cluster.provider.script([hangsAfter('One ', 'moment. ')], user)
  return user
}

/** The model calls a tool of the client, and then says that it is cold there. */
async function wantsToKnow(): Promise<string> {
  const user = someone()
  await cluster.provider.script([calls(['locate', { precise: true }]), says('Cold', '.')], user)
  return user
}

const locate = {
  description: 'Where the user is.',
  parameters: { type: 'object', properties: { precise: { type: 'boolean' } } },
}

for (const [name, sdk, path] of [
  ['AI SDK 7', ai7, '/v1/ui/chat'],
  ['AI SDK 6', ai6 as unknown as UiSdk, '/v1/ui/chat'],
  ['AI SDK 5', ai5 as unknown as UiSdk, '/v1/ui/v5/chat'],
] as const) {
  describe(`useChat of ${name} behind a balancer`, () => {
    const chatOf = (user: string, more: Partial<Parameters<typeof uiChat>[1]> = {}) =>
      uiChat(sdk, { baseUrl: () => balancer.baseUrl, path, user, id: `chat-${user}`, ...more })

    test('allows at one node what the other asked', async () => {
      const user = await wantsToPay()
      const chat = chatOf(user)
      use(0)
      await chat.sendMessage({ text: user })
      const call = chat.lastMessage?.parts.find(sdk.isToolUIPart)
      use(1)
      if (call?.state === 'approval-requested')
        await chat.addToolApprovalResponse({ id: call.approval?.id ?? '', approved: true })
      else {
        const { toolCallId = '' } = call ?? {}
        await chat.addToolOutput({ tool: 'pay' as never, toolCallId, output: { approved: true } })
        await chat.sendMessage()
      }
      await untilLine(chat, 'Paid.')
      await untilReady(chat)
      await assertPaidOnce(user)
      await assertOneRun(user, 'succeeded')
    })

    test('executes its own tool for a run of another node', async () => {
      const user = await wantsToKnow()
      const onToolCall = () => {
        use(1)
        return 'Oslo'
      }
      const tools = { locate: { description: locate.description, inputSchema: locate.parameters } }
      const chat = chatOf(user, { body: { tools }, onToolCall })
      use(0)
      await chat.sendMessage({ text: user })
      await untilLine(chat, 'Cold.')
      await untilReady(chat)
      await assertOneRun(user, 'succeeded')
    })

    test('resumes at one node what the other drives, and stops it there', async () => {
      const user = await talks()
      const [first, second] = [chatOf(user), chatOf(user)]
      use(0)
      const sent = first.sendMessage({ text: user })
      await untilLine(first, 'One moment.')
      use(1)
      second.messages = first.messages.slice(0, 1)
      const resumed = second.resumeStream()
      await untilLine(second, 'One moment.')
      const stop = `${path}/${encodeURIComponent(first.id)}/stop`
      const { status, body } = await nodeAt(1).server.call('POST', stop, { user, body: {} })
      assert.equal(status, 200, JSON.stringify(body))
      await Promise.all([sent, resumed])
      assert.deepEqual(linesOfChat(second), linesOfChat(first))
      await assertOneRun(user, 'cancelled')
      assert.equal(await second.resumeStream(), undefined)
    })
  })
}

for (const [name, version] of [
  ['openai 7', OpenAi7],
  ['openai 6', OpenAi6 as unknown as typeof OpenAi7],
] as const) {
  describe(`${name} behind a balancer`, () => {
    const clientOf = (user: string) =>
      new version({ baseURL: `${balancer.baseUrl}/v1`, apiKey: 'any', defaultQuery: { userId: user }, maxRetries: 0 })
    const responseTool = { type: 'function' as const, name: 'locate', ...locate, strict: false }

    test('a completion goes on at the other node, with consent and with the result of a tool', async () => {
      const user = await wantsToPay()
      const client = clientOf(user)
      const messages: OpenAi7.ChatCompletionMessageParam[] = [{ role: 'user', content: user }]
      use(0)
      const asked = (await client.chat.completions.create({ model: agent, messages })).choices[0]
      assert.equal(asked?.finish_reason, 'tool_calls')
      const [call] = asked?.message.tool_calls ?? []
      use(1)
      const answer = await client.chat.completions.create({
        model: agent,
        messages: [
          ...messages,
          asked?.message ?? { role: 'assistant' },
          { role: 'tool', tool_call_id: call?.id ?? '', content: 'approved' },
        ],
      })
      assert.equal(answer.choices[0]?.message.content, 'Paid.')
      await assertPaidOnce(user)
      await assertOneRun(user, 'succeeded')

      const other = await wantsToKnow()
      use(0)
      const runner = clientOf(other).chat.completions.runTools({
        model: agent,
        messages: [{ role: 'user', content: other }],
        stream: true,
        tools: [
          {
            type: 'function',
            function: {
              name: 'locate',
              description: locate.description,
              parameters: locate.parameters,
              parse: JSON.parse,
              function: () => {
                use(1)
                return 'Oslo'
              },
            },
          },
        ],
      })
      assert.equal(await runner.finalContent(), 'Cold.')
      await assertOneRun(other, 'succeeded')
    })

    test('a response goes on at the other node, with consent and with the result of a tool', async () => {
      const user = await wantsToPay()
      const client = clientOf(user)
      use(0)
      const asked = await client.responses.create({ model: agent, input: user })
      const request = asked.output.find((item) => item.type === 'mcp_approval_request')
      use(1)
      const answer = await client.responses.create({
        model: agent,
        previous_response_id: asked.id,
        input: [{ type: 'mcp_approval_response', approval_request_id: request?.id ?? '', approve: true }],
      })
      assert.equal(answer.output_text, 'Paid.')
      await assertPaidOnce(user)
      await assertOneRun(user, 'succeeded')

      const other = await wantsToKnow()
      use(0)
      const first = await clientOf(other).responses.create({ model: agent, input: other, tools: [responseTool] })
      const call = first.output.find((item) => item.type === 'function_call')
      use(1)
      const second = await clientOf(other)
        .responses.stream({
          model: agent,
          previous_response_id: first.id,
          input: [{ type: 'function_call_output', call_id: call?.call_id ?? '', output: 'Oslo' }],
          tools: [responseTool],
        })
        .finalResponse()
      assert.equal(second.output_text, 'Cold.')
      await assertOneRun(other, 'succeeded')
    })

    test('a response in the background is read, resumed, continued, cancelled and deleted at any node', async () => {
      const user = await talks()
      const client = clientOf(user)
      use(0)
      const { id } = await client.responses.create({ model: agent, input: user, background: true })
      let text = ''
      let last = 0
      for (const node of [1, 0] as const) {
        use(node)
        for await (const event of await client.responses.retrieve(id, { stream: true, starting_after: last })) {
          last = event.sequence_number
          if (event.type !== 'response.output_text.delta') continue
          text += event.delta
          break
        }
      }
      assert.equal(text, 'One moment. ')
      use(1)
      assert.equal((await client.responses.cancel(id)).status, 'cancelled')
      use(0)
      const types: string[] = []
      for await (const event of await client.responses.retrieve(id, { stream: true, starting_after: last }))
        types.push(event.type)
      assert.equal(types.at(-1), 'response.incomplete')
      assert.equal((await client.responses.retrieve(id)).status, 'cancelled')
      use(1)
      assert.equal((await client.responses.inputItems.list(id)).data.length, 1)
      await client.responses.delete(id)
      use(0)
      await assert.rejects(client.responses.retrieve(id), { status: 404 })
    })
  })
}

for (const version of ['1.0', '0.0'] as const) {
  describe(`AG-UI ${version} behind a balancer`, () => {
    const client = () => startAgUiUser(version)
    const open = async (agUi: ReturnType<typeof client>, user: string) => {
      const threadId = `thread-${user}`
      await agUi.open(user, { url: `${balancer.baseUrl}/v1/ag-ui?userId=${user}`, threadId })
      return threadId
    }
    const ask = (content: string) => ({ id: `m-${content}`, role: 'user', content })

    test('answers at one node what the other asked, reads along, and stops', async (context) => {
      const agUi = client()
      context.after(() => agUi.stop())
      const user = await wantsToPay()
      await open(agUi, user)
      use(0)
      const { interrupts } = await agUi.run(user, { message: ask(user) })
      use(1)
      const resume = interrupts.map(({ id }) => ({
        interruptId: id,
        status: 'resolved' as const,
        payload: { approved: true },
      }))
      const done = await agUi.run(user, { parameters: { resume } })
      assert.equal(done.refused, undefined)
      assert.equal(done.messages.at(-1)?.['content'], 'Paid.')
      await assertPaidOnce(user)
      await assertOneRun(user, 'succeeded')

      const knows = await wantsToKnow()
      await open(agUi, knows)
      const tools = [{ name: 'locate', ...locate }]
      use(0)
      const called = await agUi.run(knows, { message: ask(knows), parameters: { tools } })
      const [call] = (called.messages.at(-1)?.['toolCalls'] ?? []) as { id: string }[]
      use(1)
      const result = { id: `r-${knows}`, role: 'tool', toolCallId: call?.id, content: 'Oslo' }
      const told = await agUi.run(knows, { message: result, parameters: { tools } })
      assert.deepEqual([told.refused, told.messages.at(-1)?.['content']], [undefined, 'Cold.'])
      await assertOneRun(knows, 'succeeded')

      const talking = await talks()
      const threadId = await open(agUi, talking)
      const second = `${talking} second`
      await agUi.open(second, { url: balancer.baseUrl, threadId })
      use(0)
      const running = agUi.run(talking, { message: ask(talking) })
      const isMoment = ({ type, ...fields }: { type: string; [field: string]: unknown }) =>
        type === 'TEXT_MESSAGE_CONTENT' && fields['delta'] === 'moment. '
      await agUi.saw(talking, isMoment)
      use(1)
      const thread = `${balancer.baseUrl}/v1/ag-ui/threads/${threadId}`
      const attached = agUi.connect(second, `${thread}/stream?userId=${talking}`)
      await agUi.saw(second, isMoment)
      const stopped = await fetch(`${thread}/stop?userId=${talking}`, { method: 'POST' })
      assert.equal(stopped.status, 200)
      const [one, two] = await Promise.all([running, attached])
      assert.deepEqual([one.refused, two.refused], [undefined, undefined])
      assert.deepEqual(two.messages.at(-1), one.messages.at(-1))
      await assertOneRun(talking, 'cancelled')
    })
  })
}

for (const { name, open } of a2aClients) {
  test(`${name} behind a balancer answers, subscribes and cancels at the other node`, async () => {
    const user = await wantsToPay()
    use(0)
    const client = await open({ baseUrl: balancer.baseUrl })
    const task = await client.send(user)
    assert.equal(task.state, 'INPUT_REQUIRED')
    use(1)
    const ended = await client.send('yes', { taskId: task.id })
    assert.deepEqual([ended.state, ended.artifacts], ['COMPLETED', ['Paid.']])
    await assertPaidOnce(user)
    use(0)
    assert.deepEqual(await client.get(task.id), ended)

    const talking = await talks()
    const first: PlainUpdate[] = []
    const second: PlainUpdate[] = []
    for await (const update of client.stream(talking)) {
      first.push(update)
      if (textShown(first)[0] !== 'One moment. ' || second.length > 0) continue
      use(1)
      const opening = first[0]
      const id = opening !== undefined && 'task' in opening ? opening.task.id : ''
      for await (const seen of client.subscribe(id)) {
        second.push(seen)
        if (second.length === 1) assert.equal((await client.cancel(id)).state, 'CANCELED')
      }
    }
    assert.deepEqual([statesOf(first).at(-1), statesOf(second).at(-1)], ['CANCELED', 'CANCELED'])
    assert.deepEqual(textShown(second), ['One moment. '])
  })
}

test('LangGraph behind a balancer resumes an interrupt, joins and cancels at the other node', async () => {
  const client = new LangGraphClient({
    apiUrl: `${balancer.baseUrl}/langgraph`,
    apiKey: null,
    callerOptions: { maxRetries: 0 },
  })
  const human = (content: string) => ({ messages: [{ type: 'human', content }] })
  const user = await wantsToPay()
  use(0)
  const { thread_id } = await client.threads.create()
  const asked = (await client.runs.wait(thread_id, agent, { input: human(user) })) as Json
  assert.equal(asked.__interrupt__?.length, 1)
  use(1)
  assert.equal((await client.threads.get(thread_id)).status, 'interrupted')
  const resume = { decisions: [{ type: 'approve' }] }
  const done = (await client.runs.wait(thread_id, agent, { command: { resume } })) as Json
  assert.equal(done.messages.at(-1).content, 'Paid.')
  await assertPaidOnce(user)

  const talking = await talks()
  use(0)
  const { run_id } = await client.runs.create(thread_id, agent, { input: human(talking) })
  use(1)
  let text = ''
  const streamMode = ['messages-tuple' as const]
  for await (const { event, data } of client.runs.joinStream(thread_id, run_id, { lastEventId: '-1', streamMode })) {
    if (event !== 'messages') continue
    text += String((data as unknown as Json[])[0]?.['content'])
    if (text === 'One moment. ') await client.runs.cancel(thread_id, run_id, true)
  }
  assert.equal(text, 'One moment. ')
  use(0)
  assert.equal((await client.runs.get(thread_id, run_id)).status, 'interrupted')
  assert.equal((await client.threads.get(thread_id)).status, 'idle')
})

test('@polylog/client behind a balancer reads on at the other node, confirms and cancels there', async () => {
  const user = await wantsToPay()
  const client = createClient({ baseUrl: balancer.baseUrl, userId: user })
  use(0)
  const run = await client.chat({ input: user })
  const frames: RunFrame[] = []
  for await (const frame of run) {
    frames.push(frame)
    if (frame.event !== 'tool.state' || frame.data.status !== 'awaiting_input') continue
    use(1)
    await client.confirm(frame.data.confirmationId ?? '')
    balancer.cutAll()
  }
  const state = foldRun(frames, emptyRun)
  assert.deepEqual([state.status, state.output], ['succeeded', 'Paid.'])
  assert.equal(new Set(frames.map(({ id }) => id)).size, frames.length)
  await assertPaidOnce(user)

  const talking = await talks()
  const other = createClient({ baseUrl: balancer.baseUrl, userId: talking })
  use(0)
  const long = await other.chat({ input: talking })
  use(1)
  for await (const frame of other.attach(long.id)) {
    if (frame.event === 'agent.delta' && frame.data.delta === 'moment. ') await other.cancel(long.id)
    if (frame.event === 'agent.end') assert.equal(frame.data.status, 'cancelled')
  }
  await until('the end at the first node', async () => (await runsOf(talking))[0]?.status === 'cancelled' || undefined)
})
