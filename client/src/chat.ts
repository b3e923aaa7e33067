// A conversation as a store that a user interface subscribes to: the stored messages, and the runs that this page started
// or found at work. It knows no framework; `react.ts` is a hook around it.

import type { ChatRequest, StoredMessage, ToolResult } from './api.ts'
import type { PolylogClient } from './client.ts'
import { PolylogError } from './error.ts'
import { emptyRun, openRequests, reduceRun, type RunState } from './fold.ts'
import type { JsonValue } from './json.ts'
import type { ConnectionState, Run } from './run.ts'

/** A run of the conversation. `key` stays the same from `send` on; `runId` is null until the server has accepted it. */
export type ChatRun = RunState & { readonly key: string; readonly runId: string | null }

export type ChatSnapshot = {
  /** Null until the first run of a new conversation is accepted. */
  readonly conversationId: string | null
  /** The stored messages that belong to none of `runs`, oldest first. */
  readonly messages: readonly StoredMessage[]
  /** Oldest first. */
  readonly runs: readonly ChatRun[]
  readonly status: 'loading' | 'ready' | 'working' | 'awaiting_input'
  /** False while a connection is lost and opened again. */
  readonly connected: boolean
  /** What failed last; null after the next success. */
  readonly error: PolylogError | null
}

/** A tool that this page executes. */
export type PageTool = {
  name: string
  description?: string
  inputSchema: Record<string, unknown>
  execute: (input: JsonValue) => JsonValue | Promise<JsonValue>
}

export type ChatOptions = {
  /** The conversation to continue. Default: a new one. */
  conversationId?: string
  /** Fields of every request, for example `agentId` and `model`. */
  request?: Omit<ChatRequest, 'input' | 'messages' | 'conversationId' | 'clientTools'>
  /** Each call is executed by every page that shows its run; the first result counts. */
  tools?: readonly PageTool[]
}

export type Chat = ReturnType<typeof createChat>

/** The most that the server gives at once. Older ones are there with `conversations.messages`. */
const messagesMax = 200

const ended = ['succeeded', 'failed', 'cancelled']

export function createChat(client: PolylogClient, { conversationId, ...given }: ChatOptions = {}) {
  let { request, tools = [] } = given
  const listeners = new Set<() => void>()
  const executed = new Set<string>()
  const stopped = new Set<string>()
  let reading = new AbortController()
  let sent = 0
  let snapshot: ChatSnapshot = {
    conversationId: conversationId ?? null,
    messages: [],
    runs: [],
    status: conversationId === undefined ? 'ready' : 'loading',
    connected: true,
    error: null,
  }

  function update(changes: Partial<ChatSnapshot>): void {
    const next = { ...snapshot, ...changes }
    const open = next.runs.filter(({ status }) => !ended.includes(status))
    const awaits = open.some(({ status }) => status === 'awaiting_input')
    const atRest = next.status === 'loading' && changes.status === undefined ? 'loading' : 'ready'
    snapshot = { ...next, status: awaits ? 'awaiting_input' : open.length > 0 ? 'working' : atRest }
    for (const listener of listeners) listener()
  }

  function updateRun(key: string, change: (run: ChatRun) => ChatRun): void {
    update({ runs: snapshot.runs.map((run) => (run.key === key ? change(run) : run)) })
  }

  function fail(error: unknown): void {
    if (error instanceof PolylogError) update({ error })
    else throw error
  }

  /** Reads a run until it ends or the page leaves. */
  async function read(key: string, run: Run): Promise<void> {
    for await (const frame of run) {
      updateRun(key, (before) => ({ ...before, ...reduceRun(before, frame) }))
      execute(key, run.id)
    }
  }

  function execute(key: string, runId: string): void {
    const state = snapshot.runs.find((run) => run.key === key)
    for (const call of state === undefined ? [] : openRequests(state)) {
      const tool = tools.find(({ name }) => call.type === 'tool' && call.source === 'client' && call.name === name)
      if (tool === undefined || call.type !== 'tool' || executed.has(call.id)) continue
      executed.add(call.id)
      void (async () => {
        let result: ToolResult
        try {
          result = { toolCallId: call.id, output: await tool.execute(call.input ?? null) }
        } catch (error) {
          result = { toolCallId: call.id, error: String(error) }
        }
        // Another page may have been faster.
        await client.toolResults(runId, [result]).catch((error: PolylogError) => error.status !== 409 && fail(error))
      })()
    }
  }

  const onConnection = ({ state }: ConnectionState) => update({ connected: state === 'open' })

  /** Runs `work` until the page leaves; what the server refuses is shown. */
  async function attempt(work: (signal: AbortSignal) => Promise<void>, { signal } = reading): Promise<void> {
    try {
      await work(signal)
    } catch (error) {
      if (!signal.aborted) fail(error)
    }
  }

  /** The stored messages, and the run that is at work. */
  async function load(id: string, signal: AbortSignal): Promise<void> {
    const [{ activeRun }, stored] = await Promise.all([
      client.conversations.get(id, { signal }),
      client.conversations.messages(id, { signal, limit: messagesMax }),
    ])
    const isNew = activeRun != null && !snapshot.runs.some(({ runId }) => runId === activeRun.runId)
    const found = isNew ? [{ ...emptyRun, key: activeRun.runId, runId: activeRun.runId }] : []
    const runs = [...snapshot.runs, ...found]
    const shown = new Set<unknown>(runs.map(({ runId }) => runId))
    const messages = stored.filter(({ metadata }) => !shown.has(metadata['runId']))
    update({ messages, runs, status: 'ready', error: null })
  }

  /** Reads every run that has not ended, after what is already shown. */
  function follow(): void {
    for (const { key, runId, status, cursor } of snapshot.runs) {
      if (runId === null || ended.includes(status)) continue
      void attempt((signal) => read(key, client.attach(runId, { after: cursor, signal, onConnection })))
    }
  }

  return {
    getSnapshot: () => snapshot,

    subscribe(listener: () => void): () => void {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },

    /** Options for what is sent from now on. */
    configure(next: Omit<ChatOptions, 'conversationId'>): void {
      request = next.request
      tools = next.tools ?? []
    },

    /** Loads the conversation and attaches to its run. Call it when the page shows the conversation. */
    async open(): Promise<void> {
      const visit = new AbortController()
      reading = visit
      const id = snapshot.conversationId
      await attempt(async (signal) => {
        try {
          if (id !== null) await load(id, signal)
        } catch (error) {
          // A conversation with a name of your own exists from its first run on.
          if ((error as Partial<PolylogError>).code !== 'conversation_not_found') throw error
          update({ status: 'ready' })
        }
      })
      if (!visit.signal.aborted) follow()
    },

    /** Stops reading; the runs go on. */
    close: () => reading.abort(),

    /** Asks. Resolves when the run has ended, or with an error in the snapshot. */
    async send(input: string | Pick<ChatRequest, 'input' | 'messages' | 'context'>): Promise<void> {
      const fields = typeof input === 'string' ? { input } : input
      sent += 1
      const key = `sent-${sent}`
      const question: ChatRun = { ...emptyRun, input: fields.input ?? '', key, runId: null }
      update({ runs: [...snapshot.runs, question], error: null })
      // Leaving the page does not abort the request: the run may have been accepted already.
      const connection = new AbortController()
      let run: Run
      try {
        run = await client.chat(
          {
            ...request,
            ...fields,
            ...(snapshot.conversationId === null ? {} : { conversationId: snapshot.conversationId }),
            ...(tools.length === 0 ? {} : { clientTools: tools.map(({ execute: _execute, ...tool }) => tool) }),
          },
          { signal: connection.signal, onConnection },
        )
      } catch (error) {
        const { code, message } = error as PolylogError
        updateRun(key, (before) => ({ ...before, status: 'failed', error: { code, message } }))
        fail(error)
        return
      }
      update({ conversationId: run.conversationId ?? snapshot.conversationId })
      updateRun(key, (before) => ({ ...before, runId: run.id }))
      if (stopped.has(key)) await client.cancel(run.id).catch(fail)
      await attempt(async (signal) => {
        const leave = () => connection.abort(signal.reason)
        signal.addEventListener('abort', leave)
        if (signal.aborted) leave()
        await read(key, run)
      })
    },

    /** Cancels everything that has not ended. */
    async stop(): Promise<void> {
      await Promise.all(
        snapshot.runs.map(async ({ key, runId, status }) => {
          if (ended.includes(status)) return
          stopped.add(key)
          if (runId !== null) await client.cancel(runId).catch(fail)
        }),
      )
    },

    confirm: (id: string, payload?: Record<string, JsonValue>) =>
      client.confirm(id, payload === undefined ? {} : { payload }).then(() => {}, fail),
    reject: (id: string, reason?: string) =>
      client.reject(id, reason === undefined ? {} : { reason }).then(() => {}, fail),
    reply: (id: string, answer: JsonValue) => client.reply(id, answer).then(() => {}, fail),
  }
}
