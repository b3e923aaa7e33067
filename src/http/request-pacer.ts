// Spreads a burst of requests over many turns of the event loop. Sockets that become readable at
// once are all handled in one turn, and 500 new runs would hold up timers, commits and the deltas
// of every other stream until the last of them was accepted. So only a few requests begin in
// each turn; the others follow in the order in which they came.

/**
 * About ten milliseconds of work. With fewer, requests would wait behind the deltas of those that came before them: the more
 * runs have begun, the longer a turn takes.
 */
const perTurn = 32

export class RequestPacer {
  private begun = 0
  private resetScheduled = false
  private waiting: (() => void)[] = []
  /** Those whose turn has come and that have not begun. */
  private due = 0

  /** Calls `begin` now, or in a later turn if this one has begun enough. */
  enter(begin: () => void): void {
    if (this.size === 0 && this.begun < perTurn) {
      this.begun += 1
      if (!this.resetScheduled) {
        this.resetScheduled = true
        setImmediate(() => this.nextTurn())
      }
      begin()
    } else this.waiting.push(begin)
  }

  /** How many requests have not begun. */
  get size(): number {
    return this.waiting.length + this.due
  }

  private nextTurn(): void {
    this.resetScheduled = false
    const due = this.waiting.splice(0, perTurn)
    this.begun = due.length
    if (due.length === 0) return
    this.resetScheduled = true
    // Each gets an immediate of its own, so that its promises are settled before the next one begins.
    this.due = due.length
    for (const begin of due) {
      setImmediate(() => {
        this.due -= 1
        begin()
      })
    }
    setImmediate(() => this.nextTurn())
  }
}
