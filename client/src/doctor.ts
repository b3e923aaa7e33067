// The stream doctor: reads the timed frames of `GET /v1/doctor/stream` and says whether something between the client and
// the server buffers, compresses, cuts, loses or reorders a stream, and which setting mends it. `diagnoseStream` is a
// pure function of what was observed.

import type { PolylogError } from './error.ts'
import { messagesOf } from './run.ts'
import { type ClientOptions, createTransport, type RequestOptions } from './transport.ts'

export type StreamProblem = 'buffered' | 'compressed' | 'cut' | 'lost' | 'reordered' | 'repeated'

export type StreamFinding = {
  problem: StreamProblem
  /** What was seen. */
  message: string
  /** What to do about it. */
  advice: string
}

/** A frame of the doctor. Both times are in milliseconds, each by its own clock: only differences have a meaning. */
export type ReceivedFrame = { index: number; sentMs: number; receivedMs: number; chars: number }

export type StreamObservation = {
  /** How many frames were asked for. */
  frames: number
  received: readonly ReceivedFrame[]
  /** When the stream ended, by the clock of `receivedMs`. */
  endedMs: number
  /** The headers of the response that tell of proxies; in a browser, other origins hide most of them. */
  headers: Readonly<Record<string, string>>
  /** What the server saw of the request; null if the first frame is missing. */
  request: { httpVersion: string; via: string | null; forwarded: boolean; acceptEncoding: string | null } | null
}

export type StreamReport = {
  ok: boolean
  findings: StreamFinding[]
  /** How much later than the fastest frame the frames came, in milliseconds. */
  delayMs: { median: number; max: number }
  observation: StreamObservation
}

export type DoctorOptions = ClientOptions &
  RequestOptions & {
    /** Default 12. */
    frames?: number
    /** The time between two frames. Default 250; use 60,000 or more to find proxies that cut idle connections. */
    intervalMs?: number
    /** Makes each frame longer. Default 0. */
    paddingBytes?: number
    /** Milliseconds of a clock that never jumps. */
    monotonic?: () => number
  }

const tellingHeaders = ['content-encoding', 'server', 'via', 'cf-ray', 'x-cache', 'x-accel-buffering', 'content-length']

/** Throws a PolylogError if the stream cannot be opened at all. */
export async function doctorStream(options: DoctorOptions = {}): Promise<StreamReport> {
  const { frames = 12, intervalMs = 250, paddingBytes = 0, signal, monotonic = () => performance.now() } = options
  // The silence between two frames is part of the test.
  const idleTimeoutMs = Math.max(options.idleTimeoutMs ?? 0, 45_000 + 2 * frames * intervalMs)
  const transport = createTransport({ ...options, idleTimeoutMs })
  const query = { frames, intervalMs, paddingBytes }
  const connection = await transport.request({ method: 'GET', path: '/v1/doctor/stream', query, signal })
  const { headers } = connection.response
  const received: ReceivedFrame[] = []
  let request: StreamObservation['request'] = null
  try {
    for await (const { data } of messagesOf(connection, transport)) {
      const frame = (JSON.parse(data) as { data: ReceivedFrame & { request?: StreamObservation['request'] } }).data
      if (frame?.index === undefined) continue
      received.push({ index: frame.index, sentMs: frame.sentMs, receivedMs: monotonic(), chars: data.length })
      request = frame.request ?? request
    }
  } catch (error) {
    signal?.throwIfAborted()
    // A broken connection is a finding; an answer that is no stream is an error.
    if ((error as PolylogError).code === 'unexpected_response') throw error
  } finally {
    connection.close()
  }
  const telling = tellingHeaders.flatMap((name) => {
    const value = headers.get(name)
    return value === null ? [] : [[name, value]]
  })
  return diagnoseStream({
    frames,
    received,
    endedMs: monotonic(),
    headers: Object.fromEntries(telling) as Record<string, string>,
    request,
  })
}

/** Two frames came together if they were sent apart and the time between them shrank below this part of it. */
const togetherBelow = 0.25
/** A stream is buffered if at least this part of its frames came together with the one before. */
const bufferedFrom = 0.5

export function diagnoseStream(observation: StreamObservation): StreamReport {
  const { frames, received, endedMs, headers } = observation
  const findings: StreamFinding[] = []
  const find = (problem: StreamProblem, message: string, advice: string) => findings.push({ problem, message, advice })

  const encoding = headers['content-encoding'] ?? 'identity'
  if (encoding !== 'identity') {
    find(
      'compressed',
      `A proxy compresses the stream (Content-Encoding: ${encoding}), although it says Cache-Control: no-transform.`,
      'Exclude the type text/event-stream from compression: in nginx, remove it from gzip_types; in Caddy, match only other types with encode; at Cloudflare, turn off compression for the path with a compression rule.',
    )
  }

  const together = received.filter((frame, at) => {
    const before = received[at - 1]
    if (before === undefined || frame.sentMs <= before.sentMs) return false
    return frame.receivedMs - before.receivedMs < (frame.sentMs - before.sentMs) * togetherBelow
  })
  if (together.length > 0 && together.length >= (received.length - 1) * bufferedFrom) {
    const chars = largestBurst(received, new Set(together))
    find(
      'buffered',
      `${together.length} of ${received.length} frames came together with the one before; up to ${chars} bytes were held back.`,
      bufferAdvice(headers),
    )
  }

  const indexes = received.map(({ index }) => index)
  const known = new Set(indexes)
  if (known.size < indexes.length) {
    find(
      'repeated',
      'Some frames came more than once.',
      'A proxy repeats parts of responses: do not retry or cache event streams in it.',
    )
  }
  if (indexes.some((index, at) => index < Math.max(-1, ...indexes.slice(0, at)))) {
    find(
      'reordered',
      'Frames came in another order than they were sent.',
      'A proxy reads the stream on several connections: pass event streams through on one.',
    )
  }
  const last = Math.max(-1, ...indexes)
  if (known.size < last + 1) {
    find(
      'lost',
      `${last + 1 - known.size} frames are missing in the middle of the stream.`,
      'A proxy drops parts of responses: pass event streams through unchanged.',
    )
  }
  if (last < frames - 1) {
    const first = received[0]?.receivedMs ?? endedMs
    const newest = received.at(-1)?.receivedMs ?? endedMs
    find(
      'cut',
      `The stream broke after ${last + 1} of ${frames} frames, ${Math.round(endedMs - first)} ms after the first and ${Math.round(endedMs - newest)} ms after the last one.`,
      'A proxy limits how long a response may take or be silent. Allow at least 60 s of silence, and no limit in total: proxy_read_timeout in nginx, the idle timeout of a load balancer. Clients of Polylog read on after a cut, but each cut costs a new connection.',
    )
  }

  return { ok: findings.length === 0, findings, delayMs: delaysOf(received), observation }
}

/** The most characters of frames that came at one time. */
function largestBurst(received: readonly ReceivedFrame[], together: ReadonlySet<ReceivedFrame>): number {
  let burst = 0
  let largest = 0
  for (const frame of received) {
    burst = together.has(frame) ? burst + frame.chars : frame.chars
    largest = Math.max(largest, burst)
  }
  return largest
}

function bufferAdvice(headers: StreamObservation['headers']): string {
  const names = `${headers['server'] ?? ''} ${headers['via'] ?? ''}`.toLowerCase()
  if (headers['cf-ray'] !== undefined || names.includes('cloudflare')) {
    return 'Cloudflare is in between: turn off response buffering for the path, and see that no worker reads the whole body.'
  }
  if (names.includes('nginx') || names.includes('openresty')) {
    return 'nginx is in between: set proxy_buffering off for the path. It obeys X-Accel-Buffering: no unless proxy_ignore_headers names it, or another proxy behind it has removed the header.'
  }
  if (names.includes('caddy')) return 'Caddy is in between: set flush_interval -1 in reverse_proxy.'
  return 'Turn off response buffering in the proxy: proxy_buffering off in nginx, flush_interval -1 in Caddy, responseBuffering off in others. A virus scanner or a VPN on this machine may buffer too.'
}

function delaysOf(received: readonly ReceivedFrame[]): StreamReport['delayMs'] {
  const lags = received.map(({ sentMs, receivedMs }) => receivedMs - sentMs).toSorted((left, right) => left - right)
  const fastest = lags[0] ?? 0
  const median = lags[Math.floor(lags.length / 2)] ?? 0
  return { median: Math.round(median - fastest), max: Math.round((lags.at(-1) ?? 0) - fastest) }
}
