// Spreads pieces of work that become due at once over many turns of the event loop, if each of them takes long compared with a
// token: what is due in one turn is otherwise all done in it, and 500 new runs would hold up timers, commits and the deltas of
// every other stream until the last of them was accepted. So only a few begin in each turn; the others follow in their order.

export class TurnPacer {
  private readonly perTurn: number
  private begun = 0
  private resetScheduled = false
  private waiting: (() => void)[] = []
  /** Those whose turn has come and that have not begun. */
  private due = 0

  constructor(perTurn: number) {
    this.perTurn = perTurn
  }

  /** Calls `begin` now, or in a later turn if this one has begun enough. */
  enter(begin: () => void): void {
    if (this.mayBegin()) begin()
    else this.waiting.push(begin)
  }

  /** Resolves in the turn in which to begin. Undefined if that is now. */
  wait(): Promise<void> | undefined {
    return this.mayBegin() ? undefined : new Promise((resolve) => this.waiting.push(resolve))
  }

  /** How many have not begun. */
  get size(): number {
    return this.waiting.length + this.due
  }

  private mayBegin(): boolean {
    if (this.size > 0 || this.begun >= this.perTurn) return false
    this.begun += 1
    if (!this.resetScheduled) {
      this.resetScheduled = true
      setImmediate(() => this.nextTurn())
    }
    return true
  }

  private nextTurn(): void {
    this.resetScheduled = false
    const due = this.waiting.splice(0, this.perTurn)
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
