// Lets other requests have a turn of the event loop during long work. Work that reads or writes
// many rows does a few milliseconds of it, waits for `nextTurn`, and goes on. Those who wait share
// each turn: without that, twenty long reads at once would all go on in the same turn, and every
// other request would wait for all twenty.

import { type Clock, systemClock } from './clock.ts'

/** How long the work of one turn may last before the rest waits for the next turn. */
const turnMs = 10

export type TurnDependencies = {
  clock: Pick<Clock, 'monotonic'>
  /** Calls `run` in the next turn, after everything that was passed in before. */
  schedule: (run: () => void) => void
}

export class Turns {
  private readonly dependencies: TurnDependencies
  private readonly waiting: (() => void)[] = []
  /** When the first work of this turn began; undefined if none has. */
  private begunAt: number | undefined

  constructor(dependencies: TurnDependencies) {
    this.dependencies = dependencies
  }

  /** Resolves in a later turn, in the order of the calls. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.waiting.push(resolve)
      // Each has a call of its own, because the work of one begins when its promise is settled, after the call.
      this.dependencies.schedule(this.resume)
    })
  }

  private readonly resume = (): void => {
    const { clock, schedule } = this.dependencies
    const now = clock.monotonic()
    if (this.begunAt === undefined) {
      this.begunAt = now
      // Scheduled before whatever this turn postpones, so it is the first call of the next turn.
      schedule(() => (this.begunAt = undefined))
    } else if (now - this.begunAt >= turnMs) {
      schedule(this.resume)
      return
    }
    this.waiting.shift()?.()
  }
}

const shared = new Turns({ clock: systemClock, schedule: (run) => void setImmediate(run) })

export function nextTurn(): Promise<void> {
  return shared.next()
}
