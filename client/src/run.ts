// A run as an async iterable of frames. The iteration survives everything that happens to its connection: it attaches
// again after the last frame that it gave out, as often as needed, and never gives out a frame twice. It ends after
// `agent.end`. Leaving the loop, or aborting the signal, stops reading and never cancels the run.

import { isAfter } from './cursor.ts'
import { PolylogError } from './error.ts'
import { emptyRun, reduceRun, type RunState } from './fold.ts'
import type { NativeFrame } from './native.ts'
import { sseReader } from './sse.ts'
import { type Connection, lostConnection, page, type RequestOptions, type Transport } from './transport.ts'

/** A frame of a run. Its `id` is a cursor: `attach(runId, { after: id })` gives what follows. */
export type RunFrame = Exclude<NativeFrame, { event: 'ping' }> & { id: string }

/** `waiting`: the connection was lost for the reason `error`, and is opened again after `delayMs`. */
export type ConnectionState =
  | { state: 'open' }
  | { state: 'waiting'; attempt: number; delayMs: number; error: PolylogError }

export type StreamOptions = RequestOptions & {
  /** The cursor to start after. Default: the beginning of the run. */
  after?: string
  /** Called whenever the connection is opened or lost. */
  onConnection?: (connection: ConnectionState) => void
}

export interface Run extends AsyncIterable<RunFrame> {
  readonly id: string
  /** Null if it is not known yet: `attach` does not ask for it. */
  readonly conversationId: string | null
  /** Reads the run to its end and returns its state. */
  result(): Promise<RunState>
}

/** Answers of the server when there is no such stream, in words that name the likely reason. */
const notAStream = 'The answer is not an event stream. Is this the address of a Polylog server?'

/** `opened` is the response to the request that started the run; the first iteration reads it. */
export function runOf(transport: Transport, id: string, options: StreamOptions, opened?: Connection): Run {
  const name = opened?.response.headers.get('x-conversation-id')
  const iterate = () => {
    const connection = opened
    opened = undefined
    return follow(transport, id, options, connection)
  }
  return {
    id,
    conversationId: name == null ? null : decodeURIComponent(name),
    [Symbol.asyncIterator]: iterate,
    async result() {
      let state = emptyRun
      for await (const frame of iterate()) state = reduceRun(state, frame)
      return state
    },
  }
}

async function* follow(
  transport: Transport,
  runId: string,
  { after = '0', ...options }: StreamOptions,
  opened: Connection | undefined,
): AsyncGenerator<RunFrame, void, undefined> {
  const path = `/v1/agent/runs/${encodeURIComponent(runId)}/stream`
  let cursor = after
  for await (const { id, value } of reopening(transport, path, { ...options, cursor: () => cursor }, opened)) {
    if (id === undefined || !isAfter(id, cursor)) continue
    const frame = { ...(value as NativeFrame), id } as RunFrame
    cursor = id
    yield frame
    if (frame.event === 'agent.end') return
  }
}

export type ReopeningOptions = Omit<StreamOptions, 'after'> & {
  cursor: () => string | undefined
  query?: Record<string, string>
}

/** The JSON values of a stream that is opened again at its cursor whenever it is lost. Ends if the server says that nothing follows. */
export async function* reopening(
  transport: Transport,
  path: string,
  { signal, onConnection, cursor, query }: ReopeningOptions,
  opened?: Connection,
): AsyncGenerator<{ id: string | undefined; value: unknown }, void, undefined> {
  let connection = opened
  /** Attempts since something was received. */
  let failed = 0
  let firstWaitMs: number | undefined
  for (;;) {
    let problem: PolylogError
    try {
      connection ??= await transport.open({ method: 'GET', path, query: { ...query, after: cursor() }, signal })
      if (connection.response.status === 204) return
      onConnection?.({ state: 'open' })
      for await (const { id, data, retryMs } of messagesOf(connection, transport)) {
        failed = 0
        firstWaitMs = retryMs ?? firstWaitMs
        if (data !== '') yield { id, value: JSON.parse(data) as unknown }
      }
      problem = new PolylogError({ code: 'stream_cut', message: 'The stream ended too early.', retryable: true })
    } catch (error) {
      signal?.throwIfAborted()
      problem = lostConnection(error, 'stream_cut', 'The connection broke or went silent.')
      if (!problem.retryable) throw problem
    } finally {
      connection?.close()
    }
    connection = undefined
    failed += 1
    if (failed > transport.streamRetries) throw problem
    const delayMs = transport.waitMs(failed, problem, firstWaitMs)
    onConnection?.({ state: 'waiting', attempt: failed, delayMs, error: problem })
    await transport.pause(delayMs, signal)
  }
}

/**
 * Throws if nothing comes for too long: a connection that died while the machine slept never reports an end. A connection
 * that was open when the browser went offline is given up when it is online again.
 */
export async function* messagesOf({ response, close }: Connection, { watch }: Transport) {
  if (response.body === null || response.headers.get('content-type')?.startsWith('text/event-stream') !== true) {
    throw new PolylogError({ code: 'unexpected_response', message: notAStream, status: response.status })
  }
  const reader = response.body.getReader()
  const decoder = new TextDecoder()
  const read = sseReader()
  const giveUp = () => close()
  const silence = watch(giveUp)
  page.addEventListener?.('online', giveUp)
  try {
    for (;;) {
      const part = await reader.read()
      if (part.done) return
      silence.touch()
      yield* read(decoder.decode(part.value, { stream: true }))
      // The time that the reader of the frames takes is not silence of the server.
      silence.touch()
    }
  } finally {
    silence.end()
    page.removeEventListener?.('online', giveUp)
  }
}
