// The one place that talks to the server: `@polylog/client`, and plain JSON for the routes that it does not have. Requests
// carry the login or the user of the session. An answer 401 opens the sign-in dialog.

import {
  createClient,
  type ClientOptions,
  type JsonValue,
  type PolylogClient,
  type StreamOptions,
} from '@polylog/client'
import { reopening } from '@polylog/client/run'
import { createTransport } from '@polylog/client/transport'
import { createStore } from '../app/store.ts'
import { type Session, session, signInRequest } from './session.ts'

export type JsonRequest = {
  method?: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE'
  query?: Record<string, string | number | undefined>
  /** Sent as JSON, unless it is a `Blob`. */
  body?: JsonValue | Record<string, unknown> | Blob
  signal?: AbortSignal | undefined
  headers?: Record<string, string>
  /** False: the request is not repeated if it is unknown whether it arrived. Default: true only for GET. */
  repeatable?: boolean
  /** True: the server runs an agent before it answers, so the answer is awaited without a limit. */
  runsAgent?: boolean
}

export type Api = {
  client: PolylogClient
  /** The JSON answer of a route. Throws a PolylogError. */
  json<Body>(path: string, request?: JsonRequest): Promise<Body>
  /** The answer of a route as text, at most `charsMax` characters of it. */
  text(path: string, charsMax: number, signal?: AbortSignal): Promise<{ text: string; isCut: boolean }>
  /**
   * Sends a request whose answer is a stream, and returns the headers of the answer. The stream is closed without being
   * read: the view of the run attaches to it. `key` is an idempotency key, so the request can be repeated safely.
   */
  begin(path: string, request: JsonRequest & { key: string }): Promise<Headers>
  /** A new idempotency key. */
  newKey(): string
  /** The JSON messages of a route that streams; it is opened again after the last one whenever it is lost. */
  stream<Message>(
    path: string,
    options: StreamOptions & { query?: Record<string, string> },
  ): AsyncGenerator<{ id: string; message: Message }, void, undefined>
  /** The bytes of a route, for pictures and downloads. */
  blob(path: string, signal?: AbortSignal, query?: JsonRequest['query']): Promise<Blob>
}

const current = createStore<Api>(apiFor(session.get()))
session.subscribe(() => current.set(apiFor(session.get())))

/** The API for the session. It changes when the person signs in, so use it as a dependency of effects. */
export const useApi = current.use

/** The same outside of components. */
export const currentApi = current.get

function apiFor({ token, user }: Session): Api {
  const options: ClientOptions = {
    ...(token === null ? {} : { headers: { authorization: `Bearer ${token}` } }),
    ...(token === null && user !== null ? { userId: user } : {}),
    // A console that cannot reach its server says so soon; streams go on trying.
    requestRetries: 2,
    fetch: async (...given) => {
      const response = await fetch(...given)
      if (response.status === 401) signInRequest.set(token === null ? 'needed' : 'refused')
      return response
    },
  }
  const transport = createTransport(options)
  return {
    client: createClient(options),
    json: (path, { method = 'GET', repeatable = method === 'GET', ...request } = {}) =>
      transport.json({ method, path, repeatable, ...request }),
    async begin(path, { key, headers, ...request }) {
      const { response, close } = await transport.request({
        method: 'POST',
        path,
        ...request,
        headers: { 'idempotency-key': key, ...headers },
      })
      close()
      return response.headers
    },
    newKey: transport.newKey,
    async text(path, charsMax, signal) {
      const { response, close } = await transport.request({ method: 'GET', path, signal })
      try {
        return await readText(response, charsMax)
      } finally {
        close()
      }
    },
    async *stream<Message>(path: string, { after, ...stream }: StreamOptions & { query?: Record<string, string> }) {
      let cursor = after
      for await (const { id, value } of reopening(transport, path, { ...stream, cursor: () => cursor })) {
        // Pings have no id.
        if (id === undefined) continue
        cursor = id
        yield { id, message: value as Message }
      }
    },
    async blob(path, signal, query) {
      const { response, close } = await transport.request({ method: 'GET', path, signal, ...(query && { query }) })
      try {
        return await response.blob()
      } finally {
        close()
      }
    },
  }
}

/** Stops reading at `charsMax`: a tool may have written hundreds of megabytes. */
async function readText(response: Response, charsMax: number): Promise<{ text: string; isCut: boolean }> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  for (;;) {
    const part = await reader?.read()
    if (part === undefined || part.done) return { text, isCut: false }
    text += part.value
    if (text.length > charsMax) {
      await reader?.cancel()
      return { text: text.slice(0, charsMax), isCut: true }
    }
  }
}
