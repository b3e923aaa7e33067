// GET /v1/doctor/stream: a stream of small frames at known times. A client that compares the times at which
// it receives them can tell whether a proxy between them buffers, compresses, cuts or reorders streams.

import { z } from 'zod'
import { pingTiming } from '../../dialects/dialect.ts'
import { sseFrame, sseHeaders } from '../../dialects/sse-encoding.ts'
import { AppError } from '../../errors/app-error.ts'
import { type Clock, elapsedMs, isoTime, type Timer } from '../../kit/clock.ts'
import { errorBody, type Server, type Services, userIdQuery } from '../routes.ts'
import type { ByteSource, StreamShape } from '../stream-reply.ts'

/** Long enough to find proxies that cut a connection after five minutes. */
const durationMaxMs = 600_000
/** More than the buffers of common proxies, which have 4 to 64 KiB, over a few frames. */
const paddingBytesMax = 16_384

const shape: StreamShape = {
  name: 'doctor',
  headers: sseHeaders,
  // A keep-alive would hide that a proxy cuts idle connections.
  keepAlive: () => null,
  keepAliveTiming: pingTiming,
}

const doctorQuery = userIdQuery.extend({
  frames: z.coerce.number().int().min(2).max(1000).default(12),
  intervalMs: z.coerce.number().int().min(10).max(120_000).default(250).describe('The time between two frames.'),
  paddingBytes: z.coerce.number().int().min(0).max(paddingBytesMax).default(0).describe('Makes each frame longer.'),
})

export type DoctorPlan = { frames: number; intervalMs: number; paddingBytes: number }

export function doctorRoute(server: Server, { streams, clock }: Pick<Services, 'streams' | 'clock'>): void {
  server.get(
    '/v1/doctor/stream',
    {
      schema: {
        tags: ['Operations'],
        summary: 'Timed frames, to test what is between you and the server',
        description:
          'Sends `frames` frames, one every `intervalMs`. The first also has what the server saw of the request. doctorStream() of @polylog/client reads them and says what is wrong.',
        querystring: doctorQuery,
        response: { 400: errorBody },
      },
    },
    async (request, reply) => {
      const { frames, intervalMs, paddingBytes } = request.query
      if ((frames - 1) * intervalMs > durationMaxMs) {
        throw new AppError(
          'invalid_request',
          `frames and intervalMs ask for a stream of more than ${durationMaxMs / 60_000} minutes; make one of them smaller.`,
        )
      }
      const { httpVersion, headers } = request.raw
      const seen = {
        httpVersion,
        via: headers.via ?? null,
        forwarded: headers['x-forwarded-for'] !== undefined || headers.forwarded !== undefined,
        acceptEncoding: headers['accept-encoding']?.toString() ?? null,
      }
      await streams.send(reply, new TimedFrames({ frames, intervalMs, paddingBytes }, seen, clock), shape, {})
      return reply
    },
  )
}

/** Sends frame n at `n * intervalMs` after the first, however late an earlier one was. */
export class TimedFrames implements ByteSource {
  private readonly plan: DoctorPlan
  private readonly seen: object
  private readonly clock: Clock
  private readonly startedAt: number
  private sent = 0
  private timer: Timer | undefined
  private endWait: (() => void) | undefined
  private closed = false

  constructor(plan: DoctorPlan, seen: object, clock: Clock) {
    this.plan = plan
    this.seen = seen
    this.clock = clock
    this.startedAt = clock.monotonic()
  }

  async next(): Promise<{ text: string; over: boolean } | null> {
    const waitMs = this.sent * this.plan.intervalMs - (this.clock.monotonic() - this.startedAt)
    if (waitMs > 0 && !this.closed) {
      await new Promise<void>((resolve) => {
        this.endWait = resolve
        this.timer = this.clock.after(waitMs, resolve)
      })
    }
    if (this.closed) return null
    const index = this.sent
    this.sent += 1
    return { text: this.frame(index), over: this.sent === this.plan.frames }
  }

  close(): void {
    this.closed = true
    this.timer?.cancel()
    this.endWait?.()
  }

  private frame(index: number): string {
    const { frames, intervalMs, paddingBytes } = this.plan
    const data = {
      index,
      frames,
      intervalMs,
      sentMs: elapsedMs(this.clock, this.startedAt),
      at: isoTime(this.clock.now()),
      ...(index === 0 ? { request: this.seen } : {}),
      ...(paddingBytes === 0 ? {} : { padding: '.'.repeat(paddingBytes) }),
    }
    return sseFrame(String(index), 'doctor.frame', JSON.stringify({ event: 'doctor.frame', data }))
  }
}
