// Any client reads any run: each library starts a run, and all the others attach to it while it talks, each at its
// own route (or, if it has none, at the one for all formats), and read it to its end.

import { processDataStream } from '@ai-sdk/ui-utils'
import { Client as LangGraphClient } from '@langchain/langgraph-sdk'
import * as ai7 from 'ai'
import { EventSource } from 'eventsource'
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import OpenAi from 'openai'
import { Stream } from 'openai/streaming'
import { createClient } from '../../client/src/index.ts'
import { a2aClients, type PlainUpdate, textShown } from '../support/a2a-client.ts'
import { type AgUiUser, startAgUiUser } from '../support/ag-ui-user.ts'
import type { Action } from '../support/fake-provider.ts'
import { type Json, sharedServerProcess, someone, until } from '../support/test-server.ts'
import { linesOfChat, uiChat, untilReady } from '../support/ui-chat-client.ts'

const server = sharedServerProcess()
let agUi: AgUiUser
before(() => {
  agUi = startAgUiUser('1.0')
})
after(() => agUi.stop())

const agent = 'chat_conversation'
const baseUrl = () => server.polylog.baseUrl
const openAiOf = (user: string) =>
  new OpenAi({ baseURL: `${baseUrl()}/v1`, apiKey: 'any', defaultQuery: { userId: user }, maxRetries: 0 })
/** In open mode, its requests act as the owner of the run that they name. */
const langGraph = () =>
  new LangGraphClient({ apiUrl: `${baseUrl()}/langgraph`, apiKey: null, callerOptions: { maxRetries: 0 } })
const human = (content: string) => ({ messages: [{ type: 'human', content }] })

/** Asks with one library and does not wait for the answer. */
const starters: Readonly<Record<string, (user: string) => Promise<unknown>>> = {
  '@polylog/client': async (user) => await createClient({ baseUrl: baseUrl(), userId: user }).chat({ input: user }),
  'useChat of AI SDK 7': async (user) => {
    const chat = uiChat(ai7, { baseUrl, user, id: `chat-${user}` })
    void chat.sendMessage({ text: user })
  },
  'Chat Completions': async (user) =>
    await openAiOf(user).chat.completions.create({
      model: agent,
      messages: [{ role: 'user', content: user }],
      stream: true,
    }),
  Responses: async (user) => await openAiOf(user).responses.create({ model: agent, input: user, background: true }),
  'AG-UI': async (user) => {
    await agUi.open(user, { url: `${baseUrl()}/v1/ag-ui?userId=${user}`, threadId: `thread-${user}` })
    void agUi.run(user, { message: { id: `m-${user}`, role: 'user', content: user } })
  },
  A2A: async (user) => {
    const client = await a2aClients[0]?.open({ baseUrl: baseUrl() })
    await client?.send(user, { returnAtOnce: true })
  },
  LangGraph: async (user) => {
    const { thread_id } = await langGraph().threads.create()
    await langGraph().runs.create(thread_id, agent, { input: human(user) })
  },
}

type AskedRun = { id: string; user: string; conversationId: string | null }
/** Reads the run to its end; `told` gets the whole text so far. */
type Reader = (run: AskedRun, told: (text: string) => void) => Promise<void>

const streamUrl = ({ id, user }: AskedRun, format: string) =>
  `${baseUrl()}/v1/agent/runs/${id}/stream?format=${format}&userId=${user}`

const readers: Readonly<Record<string, Reader>> = {
  async '@polylog/client'({ id, user }, told) {
    let text = ''
    for await (const frame of createClient({ baseUrl: baseUrl(), userId: user }).attach(id))
      if (frame.event === 'agent.delta') told((text += frame.data.delta))
  },
  async 'useChat of AI SDK 7'(run, told) {
    const { user, conversationId } = run
    const path =
      conversationId === null
        ? streamUrl(run, 'ui-message')
        : `${baseUrl()}/v1/ui/chat/${encodeURIComponent(conversationId)}/stream?userId=${user}`
    const chat = uiChat(ai7, { baseUrl, user, id: 'any', resumeUrl: path })
    const done = chat.resumeStream()
    const shown = () => (linesOfChat(chat).find((line) => line.startsWith('text ')) ?? '').replace(/^text \w+: /, '')
    await until('the first word', () => shown() || undefined)
    told(shown())
    await done
    await untilReady(chat)
    told(shown())
  },
  async 'useChat of AI SDK 4'(run, told) {
    let text = ''
    const { body } = await fetch(streamUrl(run, 'vercel-ai'))
    assert.ok(body !== null)
    await processDataStream({ stream: body, onTextPart: (part) => told((text += part)) })
  },
  async 'Chat Completions'(run, told) {
    let text = ''
    const stream = Stream.fromSSEResponse<OpenAi.ChatCompletionChunk>(
      await fetch(streamUrl(run, 'openai-chat')),
      new AbortController(),
    )
    for await (const { choices } of stream) told((text += choices[0]?.delta.content ?? ''))
  },
  async Responses({ id, user }, told) {
    let text = ''
    for await (const event of await openAiOf(user).responses.retrieve(`resp_${id}`, { stream: true }))
      if (event.type === 'response.output_text.delta') told((text += event.delta))
  },
  async 'AG-UI'(run, told) {
    const { id, user, conversationId } = run
    const name = `reader of ${id}`
    await agUi.open(name, { url: baseUrl(), threadId: conversationId ?? id })
    const url =
      conversationId === null
        ? streamUrl(run, 'ag-ui')
        : `${baseUrl()}/v1/ag-ui/threads/${encodeURIComponent(conversationId)}/stream?userId=${user}`
    const done = agUi.connect(name, url)
    const first = await agUi.saw(name, ({ type }) => type === 'TEXT_MESSAGE_CONTENT')
    told(String(first['delta']))
    const { refused, messages } = await done
    assert.equal(refused, undefined)
    told(String(messages.at(-1)?.['content']))
  },
  async A2A({ id }, told) {
    const seen: PlainUpdate[] = []
    const client = await a2aClients[0]?.open({ baseUrl: baseUrl() })
    for await (const update of client?.subscribe(id) ?? []) {
      seen.push(update)
      told(textShown(seen)[0] ?? '')
    }
  },
  async LangGraph({ id, conversationId }, told) {
    let text = ''
    const options = { lastEventId: '-1', streamMode: ['messages-tuple' as const] }
    for await (const { event, data } of langGraph().runs.joinStream(conversationId ?? id, id, options))
      if (event === 'messages') told((text += String((data as unknown as Json[])[0]?.['content'])))
  },
  async EventSource(run, told) {
    let text = ''
    const source = new EventSource(streamUrl(run, 'sse'))
    source.addEventListener('agent.delta', ({ data }) => told((text += String(JSON.parse(data).data.delta))))
    await new Promise<void>((resolve) => source.addEventListener('agent.end', () => resolve()))
    source.close()
  },
}

const answer: Action[] = [{ text: ['One, '] }, { stall: true }, { text: ['two', '.'] }, { finish: 'stop' }]

for (const [name, start] of Object.entries(starters)) {
  test(`a run that ${name} started is read by every client while it talks, and to its end`, async () => {
    const user = someone()
    await server.provider.script([answer], user)
    await start(user)
    await server.askedTimes(user, 1)
    const run = await until('the run', async () => (await newestRun(user)) ?? (await newestRun('anonymous')))

    const told = new Map<string, string>()
    const reading = Promise.all(
      Object.entries(readers).map(([reader, read]) => read(run, (text) => void told.set(reader, text))),
    )
    await Promise.race([
      reading,
      until('the first word in every client', () => Object.keys(readers).every((each) => told.get(each)) || undefined),
    ])
    for (const [reader, text] of told) assert.equal(text, 'One, ', reader)
    await server.provider.release()
    await reading

    for (const reader of Object.keys(readers)) assert.equal(told.get(reader), 'One, two.', reader)
  })
}

/** A2A and LangGraph name no user here, so their runs belong to the anonymous one. */
async function newestRun(user: string): Promise<AskedRun | undefined> {
  const { body } = await server.call('GET', '/v1/agent/runs?limit=1', { user })
  const [run] = body as unknown as { runId: string; conversationId: string | null }[]
  return run === undefined ? undefined : { id: run.runId, user, conversationId: run.conversationId }
}
