// The only place that writes a stream to a socket. It follows the journal, folds
// it through a dialect, and stops for nothing but the socket itself: a reader that
// is slow is waited for here and nowhere else, and costs what Node and the kernel
// buffer for one socket plus one batch.

import type { ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'
import { Follower } from '../bus/follower.ts'
import type { Batch, LiveBus } from '../bus/live-bus.ts'
import { type Cursor, type Dialect, type Encoded, encodeEvents } from '../dialects/dialect.ts'
import type { Clock, Timer } from '../kit/clock.ts'
import type { RunRow, Store } from '../stores/store.ts'
import type { Metrics } from './metrics.ts'

export type StreamParts = {
  store: Pick<Store, 'readEvents' | 'readRun'>
  bus: LiveBus
  clock: Clock
  metrics: Pick<Metrics, 'streamOpened'>
}

export type StreamRequest = {
  run: RunRow
  dialect: Dialect
  /** Everything up to here was seen. */
  cursor: Cursor
  keepAliveMs: number
  headers?: Record<string, string>
  /** The client left before the stream was over. */
  onGone?: () => void
}

/** A reader that takes nothing for this long is cut off; it can come back with its cursor. */
const stalledReaderMs = 120_000

export class Streams {
  private readonly parts: StreamParts
  private readonly open = new Set<RunStream>()

  constructor(parts: StreamParts) {
    this.parts = parts
  }

  /** Resolves when the response is finished or gone. */
  async reply(reply: FastifyReply, request: StreamRequest): Promise<void> {
    const headers = {
      ...reply.getHeaders(),
      ...request.dialect.headers,
      'x-run-id': request.run.id,
      ...request.headers,
    }
    reply.hijack()
    const stream = new RunStream(reply.raw, request, this.parts)
    this.open.add(stream)
    const closed = this.parts.metrics.streamOpened(request.dialect.name)
    try {
      reply.raw.writeHead(200, headers as Record<string, string>)
      reply.raw.flushHeaders()
      await stream.pump()
    } catch (error) {
      reply.log.error(
        { err: error, runId: request.run.id },
        'a stream failed; the client can come back with its cursor',
      )
      reply.raw.destroy()
    } finally {
      closed()
      this.open.delete(stream)
    }
  }

  /** The server is going down: every stream ends cleanly, and its client comes back with its cursor. */
  endAll(): void {
    for (const stream of this.open) stream.stop()
  }
}

class RunStream {
  private readonly raw: ServerResponse
  private readonly request: StreamRequest
  private readonly clock: Clock
  private readonly follower: Follower
  private state: unknown
  private over = false
  private keepAlives = 0
  private timer: Timer | undefined

  constructor(raw: ServerResponse, request: StreamRequest, parts: StreamParts) {
    this.raw = raw
    this.request = request
    this.clock = parts.clock
    // The fold starts at the first event, whatever the cursor: that is what makes a resumed stream the same stream.
    this.follower = new Follower(request.run.id, 0, parts.store, parts.bus)
    this.state = request.dialect.open({ runId: request.run.id })
    raw.on('close', () => this.follower.close())
  }

  stop(): void {
    this.over = true
    this.follower.close()
  }

  async pump(): Promise<void> {
    const { raw, request } = this
    this.armKeepAlive()
    try {
      while (!raw.destroyed) {
        const batch = await this.follower.next()
        if (batch === null) break
        const text = this.encode(batch)
        if (text !== '' && !raw.destroyed && !raw.write(text)) await this.drained()
        if (this.over) break
      }
      this.over ||= !raw.destroyed
    } finally {
      this.timer?.cancel()
      this.follower.close()
    }
    if (!raw.destroyed) raw.end()
    else if (!this.over) request.onGone?.()
  }

  /** Followers at the same place of the same run share the bytes. */
  private encode(batch: Batch): string {
    const { dialect, cursor } = this.request
    const whole = batch.firstSeq > cursor.seq
    let encoded = whole ? (batch.encoded.get(dialect.name) as Encoded<unknown> | undefined) : undefined
    if (encoded === undefined) {
      encoded = encodeEvents(dialect, this.state, batch.events, cursor)
      if (whole) batch.encoded.set(dialect.name, encoded)
    }
    this.state = encoded.state
    if (encoded.over) this.over = true
    return encoded.text
  }

  private armKeepAlive(): void {
    this.timer = this.clock.after(this.request.keepAliveMs, () => {
      if (this.raw.destroyed) return
      this.keepAlives += 1
      const text = this.request.dialect.keepAlive(this.clock.now(), this.keepAlives)
      // A socket that is full is not idle, and must not be filled further.
      if (text !== null && !this.raw.writableNeedDrain) this.raw.write(text)
      this.armKeepAlive()
    })
  }

  private drained(): Promise<void> {
    const { raw } = this
    return new Promise((resolve) => {
      const timer = this.clock.after(stalledReaderMs, () => raw.destroy())
      const done = () => {
        timer.cancel()
        raw.off('drain', done)
        raw.off('close', done)
        resolve()
      }
      raw.on('drain', done)
      raw.on('close', done)
    })
  }
}
