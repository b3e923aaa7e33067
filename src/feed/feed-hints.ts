// Wakes the readers of a user's feed when something of that user has changed, on this node and,
// over the bus, on the others. A hint carries nothing: the reader reads the store. A hint that is
// lost costs time, because readers also look by themselves every few seconds; a hint too many
// costs one short query.

import type { ClusterBus } from '../bus/cluster-bus.ts'

export class FeedHints {
  private readonly readers = new Map<string, Set<() => void>>()
  private cluster: Pick<ClusterBus, 'changed'> | undefined

  /** Hints go to the other nodes from now on, and theirs are heard. */
  connect(cluster: Pick<ClusterBus, 'changed' | 'listen'>): void {
    this.cluster = cluster
    cluster.listen({
      announced() {},
      signalled() {},
      changed: (owner) => this.wake(owner),
      missed: () => {
        for (const owner of this.readers.keys()) this.wake(owner)
      },
    })
  }

  /** A change of this user was committed on this node. */
  changed(owner: string): void {
    this.wake(owner)
    this.cluster?.changed(owner)
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

  private wake(owner: string): void {
    for (const wake of this.readers.get(owner) ?? []) wake()
  }
}
