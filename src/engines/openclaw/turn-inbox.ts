// The gateway events that one turn has not handled yet. The gateway sends as fast as it
// likes, so the number of waiting events is bounded: if there are too many, they are dropped,
// and the turn reads the history instead.

import type { Clock } from '../../kit/clock.ts'
import type { GatewayConnection, GatewayEvent } from './gateway-connection.ts'

const waitingMax = 5_000

/** `quiet`: nothing came within the time that the caller allowed. */
export type InboxItem = GatewayEvent | { type: 'quiet' }

export class TurnInbox {
  private items: GatewayEvent[] = []
  private wake: (() => void) | undefined
  private readonly stopListening: () => void
  private readonly clock: Clock

  constructor(connection: GatewayConnection, clock: Clock, isWanted: (event: GatewayEvent) => boolean) {
    this.clock = clock
    this.stopListening = connection.listen((event) => {
      if (!isWanted(event)) return
      if (this.items.length >= waitingMax) this.items = [{ type: 'gap' }]
      this.items.push(event)
      this.wake?.()
    })
    if (connection.isLost) this.items.push({ type: 'lost' })
  }

  /** All events that wait, or what comes next. Throws the signal's reason. */
  async take(waitMs: number, signal: AbortSignal): Promise<InboxItem[]> {
    signal.throwIfAborted()
    if (this.items.length === 0) await this.wait(waitMs, signal)
    if (this.items.length === 0) return [{ type: 'quiet' }]
    return this.items.splice(0)
  }

  close(): void {
    this.stopListening()
  }

  private wait(waitMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = () => {
        timer.cancel()
        this.wake = undefined
        signal.removeEventListener('abort', onAbort)
      }
      const onAbort = () => {
        done()
        reject(signal.reason as Error)
      }
      this.wake = () => {
        done()
        resolve()
      }
      signal.addEventListener('abort', onAbort, { once: true })
      const timer = this.clock.after(waitMs, () => this.wake?.())
    })
  }
}
