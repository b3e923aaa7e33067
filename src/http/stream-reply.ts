// The only code that writes a stream to a socket. The bytes come from a source: one run in
// one dialect, or the two arms of a comparison. Back-pressure is handled here and nowhere
// else: a slow reader costs the buffers of Node and the kernel for one socket, plus one
// batch of each run.

import type { ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'
import { type BatchReceiver, type FollowedStore, Follower } from '../bus/follower.ts'
import type { EventBatch, LiveBus } from '../bus/live-bus.ts'
import type { Cursor } from '../dialects/cursor.ts'
import { type Dialect, type Encoded, encodeEvents, type KeepAliveInterval } from '../dialects/dialect.ts'
import { undecidedArm } from '../dialects/undecided-arm.ts'
import type { Clock, Timer } from '../kit/clock.ts'
import { defined } from '../kit/defined.ts'
import { type Expiring, sharedTimers } from '../kit/shared-timers.ts'
import type { RunRow } from '../stores/run-store.ts'
import { type BodyText, ChunkedBody } from './chunked-body.ts'
import type { Metrics } from './metrics.ts'

export type StreamDependencies = {
  store: FollowedStore
  bus: LiveBus
  clock: Clock
  metrics: Pick<Metrics, 'streamOpened'>
  /** True if the run waits for a vote; every dialect then hides the fields that identify its configuration. */
  isUndecided(runId: string): Promise<boolean>
  /** The length of each keep-alive interval that a dialect can name, in milliseconds. */
  keepAliveIntervals: Readonly<Record<KeepAliveInterval, number>>
}

export type StreamOptions = {
  headers?: Record<string, string>
  /** Sent first. It belongs to this connection and is not part of the run's frames. */
  opening?: string
  /** Called if the client disconnects before the end of the stream. */
  onGone?: () => void
}

export type StreamRequest = StreamOptions & {
  run: RunRow
  dialect: Dialect
  /** The client has everything up to here. */
  cursor: Cursor
  /** The run is known not to be part of a comparison, so that this need not be read. */
  standsAlone?: true
}

/** What a stream needs of its dialect besides the bytes. */
export type StreamShape = Pick<Dialect, 'name' | 'headers' | 'keepAlive' | 'keepAliveTiming'>

/** `over` marks the last text of a stream. */
export type SourceText = BodyText & { readonly over: boolean }

/** An object and not a function, because every open stream has one. */
export interface TextSink {
  /** Returns false if it takes no more for now. */
  write(text: SourceText): boolean
}

/** Where the bytes of a stream come from. */
export interface ByteSource {
  /** The next text, which may be empty; null means the end. Never call it concurrently. */
  next(): Promise<SourceText | null>
  /**
   * Hands every text to the sink at the moment it exists. Resolves when `next` has to be called: `write` returned false, the source
   * was closed, or the next text is not at hand. Never call it and `next` concurrently.
   */
  writeLive?(sink: TextSink): Promise<void>
  /** Makes a pending `next` return. */
  close(): void
  /** The seq of the last event that was handed out, if the source is one run. */
  readonly seq?: number
}

/** What operators see of a stream. */
export type OpenStream = {
  format: string
  runId: string | null
  openMs: number
  bufferedBytes: number
  seq: number | null
}

type SocketDependencies = Pick<StreamDependencies, 'clock' | 'keepAliveIntervals' | 'metrics'>

/** A reader that reads nothing for this long is disconnected; it can resume with its cursor. */
const stalledReaderMs = 120_000

export class Streams {
  private readonly dependencies: StreamDependencies
  private readonly open = new Set<SocketStream>()
  private readonly stopping = new AbortController()

  constructor(dependencies: StreamDependencies) {
    this.dependencies = dependencies
  }

  /**
   * Streams a run. Resolves when the stream has begun: the handler of the request returns then, so that a stream which stays open
   * for long does not hold what the handler worked with.
   */
  async reply(reply: FastifyReply, request: StreamRequest): Promise<void> {
    const { run, cursor, standsAlone, ...options } = request
    // Only runs in a conversation can be part of a comparison.
    const mayBeArm = run.conversationId !== null && standsAlone !== true
    const undecided = mayBeArm && (await this.dependencies.isUndecided(run.id))
    const dialect = undecided ? undecidedArm(request.dialect) : request.dialect
    const source = new RunSource(run.id, dialect, cursor, this.dependencies)
    const { opening, onGone } = options
    const headers = { 'x-run-id': run.id, ...options.headers }
    void this.send(reply, source, dialect, { headers, ...defined({ opening, onGone }) })
    // Fastify keeps the request until the response has ended.
    reply.request.body = undefined
    reply.request.query = undefined
  }

  /** Like `reply`, for any source; resolves when the response is finished or the client has disconnected, and never rejects. The shape gives the headers and keep-alives. */
  send(reply: FastifyReply, source: ByteSource, shape: StreamShape, options: StreamOptions): Promise<void> {
    const headers = { ...reply.getHeaders(), ...shape.headers, ...options.headers }
    reply.hijack()
    const stream = new SocketStream(reply, source, shape, options, this.dependencies)
    // The answer to HEAD is over with its headers; left open, it would hold up the next request of its connection.
    if (this.stopping.signal.aborted || reply.request.method === 'HEAD') stream.stop()
    stream.begin(headers as Record<string, string>)
    return stream.pump(this.open)
  }

  /** The open streams, those first whose readers have the most bytes to take. */
  list(): OpenStream[] {
    const now = this.dependencies.clock.monotonic()
    return [...this.open].map((stream) => stream.info(now)).sort((a, b) => b.bufferedBytes - a.bufferedBytes)
  }

  get size(): number {
    return this.open.size
  }

  /** Follows a run from its first event; for callers that build their own source. */
  follow(runId: string): Follower {
    return new Follower(runId, 0, this.dependencies.store, this.dependencies.bus, this.dependencies.clock)
  }

  /** Aborted when the server shuts down; for requests that wait for a run without a stream. */
  get ending(): AbortSignal {
    return this.stopping.signal
  }

  /** Ends every stream cleanly when the server shuts down; clients resume with their cursors. */
  endAll(): void {
    this.stopping.abort()
    for (const stream of this.open) stream.stop()
  }
}

/** What readers at the same position of a run share. */
type SharedText = Encoded<unknown> & BodyText

const nothing: SourceText = { text: '', over: false }

/** One run, through one dialect. */
class RunSource implements ByteSource, BatchReceiver {
  private readonly dialect: Dialect
  private readonly cursor: Cursor
  private readonly follower: Follower
  /** Readers with the same key get the same bytes. A dialect that replays past decisions has other frames. */
  private readonly bytesKey: string
  private state: unknown
  /** Gets the texts that `writeLive` hands over. */
  private sink: TextSink | undefined

  constructor(
    runId: string,
    dialect: Dialect,
    cursor: Cursor,
    dependencies: Pick<StreamDependencies, 'store' | 'bus' | 'clock'>,
  ) {
    this.dialect = dialect
    this.cursor = cursor
    // The fold always starts at the first event, so a resumed stream has the same frames as the original.
    this.follower = new Follower(runId, 0, dependencies.store, dependencies.bus, dependencies.clock)
    this.bytesKey = `${dialect.name} ${dialect.decidedUpTo ?? 0} ${dialect.bytesKey ?? ''}`
    this.state = dialect.open({ runId })
  }

  /** At the head the text is empty, and `writeLive` waits for the next one. */
  async next(): Promise<SourceText | null> {
    const batch = await this.follower.nextNow()
    return batch === null ? null : batch === undefined ? nothing : this.encode(batch)
  }

  writeLive(sink: TextSink): Promise<void> {
    this.sink = sink
    return this.follower.receiveLive(this)
  }

  receive(batch: EventBatch): boolean {
    return this.sink?.write(this.encode(batch)) === true
  }

  get seq(): number {
    return this.follower.cursor
  }

  close(): void {
    this.follower.close()
  }

  /** Caches the encoded bytes on the batch, so that readers at the same position of a run share them. */
  private encode(batch: EventBatch): SharedText {
    const { dialect, cursor, bytesKey } = this
    const whole = batch.firstSeq > cursor.seq
    let encoded = whole ? (batch.encoded.get(bytesKey) as SharedText | undefined) : undefined
    if (encoded === undefined) {
      const { text, state, over } = encodeEvents(dialect, this.state, batch.stored, cursor)
      encoded = { text, state, over, chunk: undefined }
      if (whole) batch.encoded.set(bytesKey, encoded)
    }
    this.state = encoded.state
    return encoded
  }
}

class SocketStream implements TextSink, Expiring {
  private readonly raw: ServerResponse
  private readonly log: FastifyReply['log']
  private readonly source: ByteSource
  private readonly shape: StreamShape
  private readonly options: StreamOptions
  private readonly dependencies: SocketDependencies
  private over = false
  private keepAlives = 0
  private lastSentAt = 0
  private readonly openedAt: number
  private timer: Timer | undefined
  private body: ChunkedBody | undefined

  constructor(
    { raw, log }: Pick<FastifyReply, 'raw' | 'log'>,
    source: ByteSource,
    shape: StreamShape,
    options: StreamOptions,
    dependencies: SocketDependencies,
  ) {
    this.raw = raw
    this.log = log
    this.source = source
    this.shape = shape
    this.options = options
    this.dependencies = dependencies
    this.openedAt = dependencies.clock.monotonic()
    raw.on('close', () => source.close())
  }

  private get clock(): Clock {
    return this.dependencies.clock
  }

  private get keepAliveMs(): number {
    return this.dependencies.keepAliveIntervals[this.shape.keepAliveTiming.interval]
  }

  info(now: number): OpenStream {
    return {
      format: this.shape.name,
      runId: this.options.headers?.['x-run-id'] ?? null,
      openMs: Math.round(now - this.openedAt),
      bufferedBytes: this.raw.writableLength,
      seq: this.source.seq ?? null,
    }
  }

  stop(): void {
    this.over = true
    this.source.close()
  }

  /** Writes the head of the response, and what comes before the bytes of the source. */
  begin(headers: Record<string, string>): void {
    try {
      this.raw.writeHead(200, headers)
      this.body = new ChunkedBody(this.raw)
      this.lastSentAt = this.clock.monotonic()
      const { opening } = this.options
      if (opening === undefined) return
      this.body.write({ text: opening })
      this.armKeepAlive(this.keepAliveMs)
    } catch (error) {
      this.fail(error)
    }
  }

  /** Writes the bytes of the source, and is one of the open streams meanwhile. It has few variables, because each is memory of every idle stream. */
  async pump(open: Set<SocketStream>): Promise<void> {
    open.add(this)
    const closed = this.dependencies.metrics.streamOpened(this.shape.name)
    try {
      while (!this.raw.destroyed) {
        if (await this.writeNext()) await this.source.writeLive?.(this)
        if (this.over) break
        if (this.body?.isFull === true) await this.untilDrained(this.body)
      }
      this.close()
      await this.end()
    } catch (error) {
      this.fail(error)
    } finally {
      this.close()
      closed()
      open.delete(this)
    }
  }

  private async end(): Promise<void> {
    const { raw } = this
    if (!raw.destroyed) {
      raw.end()
      // The last bytes may still be waiting for a slow reader.
      if (!raw.writableFinished) await this.waitUntilTaken((done) => onFinish(raw, done))
    } else if (!this.over) this.options.onGone?.()
  }

  private async untilDrained(body: ChunkedBody): Promise<void> {
    await this.waitUntilTaken((done) => body.onDrained(done))
  }

  private close(): void {
    this.timer?.cancel()
    this.source.close()
  }

  private fail(error: unknown): void {
    const { headers } = this.options
    this.log.error({ err: error, headers }, 'a stream failed; the client can come back with its cursor')
    this.over = true
    this.raw.destroy()
  }

  /** A function of its own, so that the last text is not kept while the stream waits for the next one. */
  private async writeNext(): Promise<boolean> {
    const text = await this.source.next()
    if (text !== null) return this.write(text)
    this.over ||= !this.raw.destroyed
    return false
  }

  /** Returns false if the stream is over or the reader is behind. */
  write(text: SourceText): boolean {
    if (text.over) this.over = true
    let hasRoom = true
    if (text.text !== '' && !this.raw.destroyed) {
      this.lastSentAt = this.clock.monotonic()
      hasRoom = this.body?.write(text, text.over) === true
    }
    // Keep-alives start after the first bytes, because in every dialect the stream must open with its first message.
    if (this.timer === undefined && !this.over) this.armKeepAlive(this.keepAliveMs)
    return hasRoom && !this.over
  }

  private armKeepAlive(delayMs: number): void {
    this.timer = sharedTimers(this.clock).after(delayMs, this)
  }

  /** Sends a keep-alive if it is due. */
  expired(): void {
    const { keepAliveMs, clock, shape, body } = this
    if (this.raw.destroyed) return
    // The timer is not reset on every write, because writes are frequent; it checks the idle time here instead.
    const idleMs = clock.monotonic() - this.lastSentAt
    if (shape.keepAliveTiming.whenIdle && idleMs < keepAliveMs) {
      this.armKeepAlive(keepAliveMs - idleMs)
      return
    }
    // Skip the keep-alive if the socket's buffer is full: the reader already has data waiting.
    if (body?.isFull === false) {
      this.keepAlives += 1
      const text = shape.keepAlive(clock.now(), this.keepAlives)
      if (text !== null) body.write({ text })
    }
    this.lastSentAt = clock.monotonic()
    this.armKeepAlive(keepAliveMs)
  }

  /** Resolves when the reader has taken the written bytes or has disconnected. Disconnects a stalled reader. */
  private waitUntilTaken(listen: (done: () => void) => () => void): Promise<void> {
    const { raw } = this
    if (raw.destroyed) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = this.clock.after(stalledReaderMs, () => raw.destroy())
      const done = () => {
        timer.cancel()
        stopListening()
        raw.off('close', done)
        resolve()
      }
      const stopListening = listen(done)
      raw.on('close', done)
    })
  }
}

function onFinish(raw: ServerResponse, done: () => void): () => void {
  raw.on('finish', done)
  return () => raw.off('finish', done)
}
