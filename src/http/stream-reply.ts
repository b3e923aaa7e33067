// The only place that writes a stream to a socket. It takes bytes from a source
// (one run through a dialect, or the two arms of a comparison), and stops for
// nothing but the socket itself: a reader that is slow is waited for here and
// nowhere else, and costs what Node and the kernel buffer for one socket plus one
// batch of each run.

import type { ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'
import { type FollowedStore, Follower } from '../bus/follower.ts'
import type { EventBatch, LiveBus } from '../bus/live-bus.ts'
import type { Cursor } from '../dialects/cursor.ts'
import { type Dialect, type Encoded, encodeEvents, type KeepAliveInterval } from '../dialects/dialect.ts'
import { undecidedArm } from '../dialects/undecided-arm.ts'
import type { Clock, Timer } from '../kit/clock.ts'
import type { RunRow } from '../stores/run-store.ts'
import type { Metrics } from './metrics.ts'

export type StreamParts = {
  store: FollowedStore
  bus: LiveBus
  clock: Clock
  metrics: Pick<Metrics, 'streamOpened'>
  /** True if the run waits for a vote: what identifies its configuration is hidden on every wire. */
  isUndecided(runId: string): Promise<boolean>
  /** The settings that the keep-alive timing of a dialect names. */
  keepAliveIntervals: Readonly<Record<KeepAliveInterval, number>>
}

export type StreamOptions = {
  headers?: Record<string, string>
  /** The first bytes, which belong to the connection and not to the run. */
  opening?: string
  /** The client left before the stream was over. */
  onGone?: () => void
}

export type StreamRequest = StreamOptions & {
  run: RunRow
  dialect: Dialect
  /** Everything up to here was seen. */
  cursor: Cursor
}

/** Where the bytes of a stream come from. */
export interface ByteSource {
  /** What comes next, possibly nothing for now; `over` says that nothing follows. Null: no more. One call at a time. */
  next(): Promise<{ text: string; over: boolean } | null>
  /** Ends a `next` that waits. */
  close(): void
}

/** A reader that takes nothing for this long is cut off; it can come back with its cursor. */
const stalledReaderMs = 120_000

export class Streams {
  private readonly parts: StreamParts
  private readonly open = new Set<SocketStream>()
  private readonly stopping = new AbortController()

  constructor(parts: StreamParts) {
    this.parts = parts
  }

  /** Resolves when the response is finished or gone. */
  async reply(reply: FastifyReply, request: StreamRequest): Promise<void> {
    const { run, cursor, ...options } = request
    // Only answers in a conversation are compared.
    const undecided = run.conversationId !== null && (await this.parts.isUndecided(run.id))
    const dialect = undecided ? undecidedArm(request.dialect) : request.dialect
    const source = new RunSource(run.id, dialect, cursor, this.parts)
    await this.send(reply, source, dialect, { ...options, headers: { 'x-run-id': run.id, ...options.headers } })
  }

  /** As `reply`, for a source of any kind; `dialect` frames it. */
  async send(reply: FastifyReply, source: ByteSource, dialect: Dialect, options: StreamOptions): Promise<void> {
    const headers = { ...reply.getHeaders(), ...dialect.headers, ...options.headers }
    reply.hijack()
    const stream = new SocketStream(reply.raw, source, dialect, options, this.parts)
    this.open.add(stream)
    if (this.stopping.signal.aborted) stream.stop()
    const closed = this.parts.metrics.streamOpened(dialect.name)
    try {
      reply.raw.writeHead(200, headers as Record<string, string>)
      reply.raw.flushHeaders()
      await stream.pump()
    } catch (error) {
      reply.log.error(
        { err: error, headers: options.headers },
        'a stream failed; the client can come back with its cursor',
      )
      reply.raw.destroy()
    } finally {
      closed()
      this.open.delete(stream)
    }
  }

  /** Follows a run from its first event, for a source that is made elsewhere. */
  follow(runId: string): Follower {
    return new Follower(runId, 0, this.parts.store, this.parts.bus, this.parts.clock)
  }

  /** Aborted when the server goes down; for answers that are waited for without a stream. */
  get ending(): AbortSignal {
    return this.stopping.signal
  }

  /** The server is going down: every stream ends cleanly, and its client comes back with its cursor. */
  endAll(): void {
    this.stopping.abort()
    for (const stream of this.open) stream.stop()
  }
}

/** One run, through one dialect. */
class RunSource implements ByteSource {
  private readonly dialect: Dialect
  private readonly cursor: Cursor
  private readonly follower: Follower
  private state: unknown

  constructor(runId: string, dialect: Dialect, cursor: Cursor, parts: Pick<StreamParts, 'store' | 'bus' | 'clock'>) {
    this.dialect = dialect
    this.cursor = cursor
    // The fold starts at the first event, whatever the cursor: that is what makes a resumed stream the same stream.
    this.follower = new Follower(runId, 0, parts.store, parts.bus, parts.clock)
    this.state = dialect.open({ runId })
  }

  async next(): Promise<{ text: string; over: boolean } | null> {
    const batch = await this.follower.next()
    return batch === null ? null : this.encode(batch)
  }

  close(): void {
    this.follower.close()
  }

  /** Followers at the same place of the same run share the bytes. */
  private encode(batch: EventBatch): Encoded<unknown> {
    const { dialect, cursor } = this
    const whole = batch.firstSeq > cursor.seq
    let encoded = whole ? (batch.encoded.get(dialect.name) as Encoded<unknown> | undefined) : undefined
    if (encoded === undefined) {
      encoded = encodeEvents(dialect, this.state, batch.events, cursor)
      if (whole) batch.encoded.set(dialect.name, encoded)
    }
    this.state = encoded.state
    return encoded
  }
}

class SocketStream {
  private readonly raw: ServerResponse
  private readonly source: ByteSource
  private readonly dialect: Dialect
  private readonly options: StreamOptions
  private readonly clock: Clock
  private readonly keepAliveMs: number
  private over = false
  private keepAlives = 0
  private lastSentAt = 0
  private timer: Timer | undefined

  constructor(
    raw: ServerResponse,
    source: ByteSource,
    dialect: Dialect,
    options: StreamOptions,
    { clock, keepAliveIntervals }: Pick<StreamParts, 'clock' | 'keepAliveIntervals'>,
  ) {
    this.raw = raw
    this.source = source
    this.dialect = dialect
    this.options = options
    this.clock = clock
    this.keepAliveMs = keepAliveIntervals[dialect.keepAliveTiming.interval]
    raw.on('close', () => source.close())
  }

  stop(): void {
    this.over = true
    this.source.close()
  }

  async pump(): Promise<void> {
    const { raw } = this
    this.lastSentAt = this.clock.monotonic()
    if (this.options.opening !== undefined) {
      raw.write(this.options.opening)
      this.armKeepAlive(this.keepAliveMs)
    }
    try {
      while (!raw.destroyed) {
        const part = await this.source.next()
        if (part === null) break
        if (part.over) this.over = true
        let full = false
        if (part.text !== '' && !raw.destroyed) {
          this.lastSentAt = this.clock.monotonic()
          full = !raw.write(part.text)
        }
        // Not before the first bytes: what opens a stream is its first message on every wire.
        if (this.timer === undefined && !this.over) this.armKeepAlive(this.keepAliveMs)
        if (full) await this.taken('drain')
        if (this.over) break
      }
      this.over ||= !raw.destroyed
    } finally {
      this.timer?.cancel()
      this.source.close()
    }
    if (!raw.destroyed) {
      raw.end()
      // The last bytes may wait for the reader as well.
      if (!raw.writableFinished) await this.taken('finish')
    } else if (!this.over) this.options.onGone?.()
  }

  private armKeepAlive(delayMs: number): void {
    const { keepAliveMs } = this
    const { whenIdle } = this.dialect.keepAliveTiming
    this.timer = this.clock.after(delayMs, () => {
      if (this.raw.destroyed) return
      // Not re-armed for every write: there are many of those, and few idle moments.
      const idleMs = this.clock.monotonic() - this.lastSentAt
      if (whenIdle && idleMs < keepAliveMs) {
        this.armKeepAlive(keepAliveMs - idleMs)
        return
      }
      // A socket that is full is not idle, and must not be filled further.
      if (!this.raw.writableNeedDrain) {
        this.keepAlives += 1
        const text = this.dialect.keepAlive(this.clock.now(), this.keepAlives)
        if (text !== null) this.raw.write(text)
      }
      this.lastSentAt = this.clock.monotonic()
      this.armKeepAlive(keepAliveMs)
    })
  }

  /** Until the reader has taken what was written, or is gone; one that takes nothing is cut off. */
  private taken(event: 'drain' | 'finish'): Promise<void> {
    const { raw } = this
    if (raw.destroyed) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = this.clock.after(stalledReaderMs, () => raw.destroy())
      const done = () => {
        timer.cancel()
        raw.off(event, done)
        raw.off('close', done)
        resolve()
      }
      raw.on(event, done)
      raw.on('close', done)
    })
  }
}
