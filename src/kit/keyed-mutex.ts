// A mutex for each key: work with the same key runs in the order in which it came, one at a
// time; work with different keys runs in parallel. A key costs memory only while it has work.

export class KeyedMutex {
  /** The last work of each key. It never rejects, so that a failure does not stop the work behind it. */
  private readonly last = new Map<string, Promise<void>>()

  async run<T>(key: string, work: () => Promise<T>): Promise<T> {
    const result = (this.last.get(key) ?? Promise.resolve()).then(work)
    const settled = result.then(
      () => {},
      () => {},
    )
    this.last.set(key, settled)
    try {
      return await result
    } finally {
      if (this.last.get(key) === settled) this.last.delete(key)
    }
  }

  /** How many keys have work that has not finished. */
  get size(): number {
    return this.last.size
  }
}
