// Turns signals into one orderly stop. Ctrl-C under npm sends SIGINT twice (once from the
// terminal, once from npm), so repeats within a second are ignored. A later signal exits at
// once, because the person does not want to wait. A signal during the start stops the
// server as soon as the start is complete.

import type { Clock } from '../kit/clock.ts'
import type { Log } from './log.ts'

const repeatMs = 1_000

export type ShutdownDependencies = {
  clock: Pick<Clock, 'monotonic'>
  log: Pick<Log, 'info' | 'warn' | 'error'>
  exit(code: number): void
}

export class Shutdown {
  private readonly dependencies: ShutdownDependencies
  private signalledAt: number | undefined
  private stop: (() => Promise<void>) | undefined

  constructor(dependencies: ShutdownDependencies) {
    this.dependencies = dependencies
  }

  get requested(): boolean {
    return this.signalledAt !== undefined
  }

  onSignal(signal: string): void {
    const { clock, log, exit } = this.dependencies
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

  /** Sets the function that stops the server. If a signal has already arrived, it is called now. */
  stopWith(stop: () => Promise<void>): void {
    this.stop = stop
    if (this.requested) void this.run(stop)
  }

  private async run(stop: () => Promise<void>): Promise<void> {
    const { log, exit } = this.dependencies
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
