// Signals → one orderly stop. Ctrl-C under npm sends SIGINT twice at once (the terminal
// to everybody, npm to its child), so repeats within a second are the same signal. A
// later one means that the person does not want to wait. A signal that comes during the
// start stops the server as soon as it can be stopped.

import type { Clock } from '../kit/clock.ts'
import type { Log } from './log.ts'

const repeatMs = 1_000

export type ShutdownParts = {
  clock: Pick<Clock, 'monotonic'>
  log: Pick<Log, 'info' | 'warn' | 'error'>
  exit(code: number): void
}

export class Shutdown {
  private readonly parts: ShutdownParts
  private signalledAt: number | undefined
  private stop: (() => Promise<void>) | undefined

  constructor(parts: ShutdownParts) {
    this.parts = parts
  }

  get requested(): boolean {
    return this.signalledAt !== undefined
  }

  onSignal(signal: string): void {
    const { clock, log, exit } = this.parts
    const now = clock.monotonic()
    if (this.signalledAt === undefined) {
      this.signalledAt = now
      log.info({ signal }, 'stopping: no new runs, unfinished ones go on at the next start')
      if (this.stop === undefined) log.info('the start is under way; the server stops right after it')
      else void this.run(this.stop)
      return
    }
    if (now - this.signalledAt < repeatMs) return
    log.warn({ signal }, 'a second signal: ending at once; unfinished runs go on at the next start')
    exit(1)
  }

  /** From now on there is something to stop. If a signal came before, it is stopped now. */
  stopWith(stop: () => Promise<void>): void {
    this.stop = stop
    if (this.requested) void this.run(stop)
  }

  private async run(stop: () => Promise<void>): Promise<void> {
    const { log, exit } = this.parts
    try {
      await stop()
      log.info('stopped')
      exit(0)
    } catch (error) {
      log.error({ err: error }, 'the stop failed')
      exit(1)
    }
  }
}
