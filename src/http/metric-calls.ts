// Calls of the metrics library that wait for each other. One call takes some ten microseconds between
// other work, because it looks up its labels with code that is no longer in the caches of the
// processor; a run makes ten of them. Many calls in a row take a tenth of that each.

/** Bounds the memory, and the time that the calls take together: less than a millisecond. */
const callsMax = 256

export class MetricCalls {
  private waiting: (() => void)[] = []

  add(call: () => void): void {
    this.waiting.push(call)
    if (this.waiting.length >= callsMax) this.flush()
  }

  /** Must be called before the metrics are read. */
  flush(): void {
    const calls = this.waiting
    this.waiting = []
    for (const call of calls) call()
  }
}
