// Limits the memory of answers that clients do not read. A stream waits for its reader
// (stream-reply.ts), but any other answer is in memory until its client has taken all of it,
// and a client may ask for a large file many times without reading anything.

import type { FastifyReply } from 'fastify'
import { AppError } from '../errors/app-error.ts'

/** Smaller answers are not counted: most of them fit into the buffers of the system. */
const countedBytes = 64 * 1024

export class UnreadAnswers {
  private readonly bytesMax: number
  private readonly bytes = new Map<string, number>()

  /** `bytesMax` is for each caller. */
  constructor(bytesMax: number) {
    this.bytesMax = bytesMax
  }

  /**
   * Counts an answer until its client has taken it or has disconnected. Throws `rate_limited` if the caller has too many of them;
   * one alone is always admitted.
   */
  hold(caller: string, payload: unknown, raw: Pick<FastifyReply['raw'], 'once'>): void {
    if (typeof payload !== 'string' && !Buffer.isBuffer(payload)) return
    const { length } = payload
    if (length < countedBytes) return
    const held = this.bytes.get(caller) ?? 0
    if (held > 0 && held + length > this.bytesMax) {
      throw new AppError(
        'rate_limited',
        'Too many large answers to your requests have not been read yet; read them, or close their connections.',
      )
    }
    this.bytes.set(caller, held + length)
    raw.once('close', () => {
      const left = (this.bytes.get(caller) ?? 0) - length
      if (left > 0) this.bytes.set(caller, left)
      else this.bytes.delete(caller)
    })
  }
}
