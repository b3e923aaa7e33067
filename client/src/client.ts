// The client of a Polylog server. Requests that start a run carry an idempotency key, so a request that is repeated
// because its answer was lost finds the run that it started.

import type {
  AgentRequest,
  CancelledRun,
  ChatRequest,
  Confirmation,
  Conversation,
  FileInfo,
  RunInfo,
  StoredMessage,
  StoredToolResults,
  Timeline,
  ToolResult,
} from './api.ts'
import { PolylogError } from './error.ts'
import { feedOf } from './feed.ts'
import type { JsonValue } from './json.ts'
import { type Run, runOf, type StreamOptions } from './run.ts'
import { type ClientOptions, createTransport, type RequestOptions } from './transport.ts'

export type StartOptions = Omit<StreamOptions, 'after'> & {
  /** Default: a new one. The same key with the same request finds the same run, also after a reload of the page. */
  idempotencyKey?: string
}

export type PageOptions = RequestOptions & { limit?: number; before?: string }

export type RunListOptions = PageOptions & { status?: string; conversationId?: string }

export type TimelineOptions = RequestOptions & { after?: number; limit?: number }

export type UploadOptions = RequestOptions & { name?: string; mediaType?: string }

export type PolylogClient = ReturnType<typeof createClient>

export function createClient(options: ClientOptions = {}) {
  const transport = createTransport(options)
  const { json } = transport

  async function start(path: string, body: object, { idempotencyKey, ...stream }: StartOptions): Promise<Run> {
    const connection = await transport.request({
      method: 'POST',
      path,
      query: { format: 'sse' },
      body,
      headers: { 'idempotency-key': idempotencyKey ?? transport.newKey() },
      signal: stream.signal,
    })
    const id = connection.response.headers.get('x-run-id')
    if (id === null) {
      connection.close()
      const message = 'The answer names no run: a proxy removed X-Run-Id, or this is no Polylog server.'
      throw new PolylogError({ code: 'unexpected_response', message, status: connection.response.status })
    }
    return runOf(transport, id, stream, connection)
  }

  const get = <Body>(path: string, { signal, ...query }: RunListOptions | TimelineOptions = {}) =>
    json<Body>({ method: 'GET', path, query, signal })

  /** A decision is made once: it is not sent again if it is unknown whether it arrived. */
  const decide = (id: string, verb: 'confirm' | 'reject', body: object, { signal }: RequestOptions) =>
    json<Confirmation>({
      method: 'POST',
      path: `/v1/tool-confirmations/${encodeURIComponent(id)}/${verb}`,
      body,
      repeatable: false,
      signal,
    })

  const filePath = (id: string) => `/v1/files/${encodeURIComponent(id)}`
  const runPath = (runId: string) => `/v1/agent/runs/${encodeURIComponent(runId)}`
  const conversationPath = (id: string) => `/v1/conversations/${encodeURIComponent(id)}`

  return {
    /** Asks an agent. Resolves when the run is accepted and stored; iterate over it to read it. */
    chat: (request: ChatRequest, options: StartOptions = {}) => start('/v1/agent/chat', request, options),

    /** Runs an agent once. A stored result is replayed as the run that produced it. */
    run: (request: AgentRequest, options: StartOptions = {}) => start('/v1/agent/run', request, options),

    /** Reads a run that exists, from the beginning or after a cursor. */
    attach: (runId: string, options: StreamOptions = {}) => runOf(transport, runId, options),

    /** Everything of the user that changes, over one connection that is opened again whenever it is lost. */
    feed: (options?: StreamOptions) => feedOf(transport, options),

    /** The status of a run. */
    getRun: (runId: string, options?: RequestOptions) => get<RunInfo>(runPath(runId), options),

    cancel: (runId: string, { reason, signal }: RequestOptions & { reason?: string } = {}) =>
      json<CancelledRun>({ method: 'POST', path: `${runPath(runId)}/cancel`, body: { reason }, signal }),

    /** Lets a tool call run; `payload` changes its arguments. */
    confirm: (id: string, options: RequestOptions & { payload?: Record<string, JsonValue> } = {}) =>
      decide(id, 'confirm', { payload: options.payload }, options),

    reject: (id: string, options: RequestOptions & { reason?: string } = {}) =>
      decide(id, 'reject', { reason: options.reason }, options),

    /** Answers a question. */
    reply: (interactionId: string, answer: JsonValue, options: RequestOptions = {}) =>
      decide(interactionId, 'confirm', { payload: { answer } }, options),

    /** Sends the results of calls that this client has executed. The same result may be sent again. */
    toolResults: (runId: string, results: ToolResult[], { signal }: RequestOptions = {}) =>
      json<StoredToolResults>({ method: 'POST', path: `${runPath(runId)}/tool-results`, body: { results }, signal }),

    runs: {
      /** Newest first. `status` is one or more, with commas; `before` is the id of the last one on the page before. */
      list: (options?: RunListOptions) => get<RunInfo[]>('/v1/agent/runs', options),
      /** Everything that happened in a run, page by page: `after` is the `seq` of the last entry of the page before. */
      timeline: (runId: string, options?: TimelineOptions) => get<Timeline>(`${runPath(runId)}/timeline`, options),
    },

    conversations: {
      create: (fields: { title?: string; contactId?: string } = {}, { signal }: RequestOptions = {}) =>
        json<Conversation>({ method: 'POST', path: '/v1/conversations', body: fields, repeatable: false, signal }),
      /** Most recently used first. `before` is the id of the last one on the page before; `q` searches titles and summaries. */
      list: (options?: PageOptions & { q?: string }) => get<Conversation[]>('/v1/conversations', options),
      get: (id: string, options?: RequestOptions) => get<Conversation>(conversationPath(id), options),
      update: (
        id: string,
        changes: { title?: string | null; contactId?: string | null },
        { signal }: RequestOptions = {},
      ) => json<Conversation>({ method: 'PATCH', path: conversationPath(id), body: changes, signal }),
      /** Deletes it with everything in it; a run that has not ended is cancelled first. */
      delete: (id: string, { signal }: RequestOptions = {}) =>
        json<void>({ method: 'DELETE', path: conversationPath(id), signal }),
      /** The newest messages, oldest first. `before` is the id of the first one on the page before. */
      messages: (id: string, options?: PageOptions) =>
        get<StoredMessage[]>(`${conversationPath(id)}/messages`, options),
    },

    files: {
      /** The same bytes with the same name have the same id, so a repeated upload is the same file. */
      upload: (file: Blob | Uint8Array, { signal, name, mediaType }: UploadOptions = {}) => {
        const { type = '', name: ownName } = file as { type?: string; name?: string }
        return json<FileInfo>({
          method: 'POST',
          path: '/v1/files',
          query: { name: name ?? ownName },
          body: file,
          headers: { 'content-type': mediaType ?? (type || 'application/octet-stream') },
          signal,
        })
      },
      get: (id: string, { signal }: RequestOptions = {}) =>
        json<FileInfo>({ method: 'GET', path: filePath(id), headers: { accept: 'application/json' }, signal }),
      delete: (id: string, { signal }: RequestOptions = {}) =>
        json<unknown>({ method: 'DELETE', path: filePath(id), signal }),
      /** Where its bytes are, for `<img>` and links. It works without headers only if the server requires no login. */
      url: (id: string) => transport.urlOf(filePath(id)),
    },
  }
}
