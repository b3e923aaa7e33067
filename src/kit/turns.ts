// Lets other requests have a turn of the event loop during long work. Work that reads or writes
// many rows does a few milliseconds of it, waits for `nextTurn`, and goes on. Of all that wait, one
// goes on in each turn: without that, twenty long reads at once would go on in the same turn, and
// every other request would wait for all twenty.

export class Turns {
  private readonly schedule: (run: () => void) => void
  private readonly waiting: (() => void)[] = []
  private isScheduled = false

  /** `schedule` calls `run` in the next turn. */
  constructor(schedule: (run: () => void) => void) {
    this.schedule = schedule
  }

  /** Resolves in a later turn, in the order of the calls. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.waiting.push(resolve)
      this.scheduleNext()
    })
  }

  private scheduleNext(): void {
    if (this.isScheduled || this.waiting.length === 0) return
    this.isScheduled = true
    this.schedule(() => {
      this.isScheduled = false
      this.waiting.shift()?.()
      this.scheduleNext()
    })
  }
}

const shared = new Turns((run) => void setImmediate(run))

export function nextTurn(): Promise<void> {
  return shared.next()
}
