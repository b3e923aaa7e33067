// Wakes the readers of a user's feed when something of that user has changed. A hint carries
// nothing: the reader reads the store. A hint that is lost costs time, because readers also
// look by themselves every few seconds; a hint too many costs one short query.

export class FeedHints {
  private readonly readers = new Map<string, Set<() => void>>()

  changed(owner: string): void {
    for (const wake of this.readers.get(owner) ?? []) wake()
  }

  /** Returns the function that ends the subscription. */
  subscribe(owner: string, wake: () => void): () => void {
    const readers = this.readers.get(owner) ?? new Set()
    this.readers.set(owner, readers.add(wake))
    return () => {
      readers.delete(wake)
      if (readers.size === 0 && this.readers.get(owner) === readers) this.readers.delete(owner)
    }
  }
}
