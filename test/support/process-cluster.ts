// The bus between nodes for tests with several schedulers in one process: a test can lose its hints,
// and the real ones behave no worse than this.

import type { ClusterBus, ClusterListener } from '../../src/bus/cluster-bus.ts'

export type ProcessCluster = {
  /** The bus of one node. */
  open(): ClusterBus
  /** While true, hints are lost. */
  deaf: boolean
  /** Every signal that was sent, also the lost ones. */
  readonly signals: (string | null)[]
  /** Tells every node that it may have missed hints. */
  reconnect(): void
}

export function processCluster(): ProcessCluster {
  const nodes: Set<ClusterListener>[] = []
  const signals: (string | null)[] = []
  const cluster: ProcessCluster = {
    deaf: false,
    signals,
    reconnect() {
      for (const listeners of nodes) for (const listener of listeners) listener.missed()
    },
    open() {
      const own = new Set<ClusterListener>()
      nodes.push(own)
      const tell = (hint: (listener: ClusterListener) => void) => {
        if (cluster.deaf) return
        setImmediate(() => {
          for (const listeners of nodes) if (listeners !== own) for (const listener of listeners) hint(listener)
        })
      }
      return {
        announce: (runId, seq) => tell((listener) => listener.announced(runId, seq, 0)),
        signal(runId) {
          signals.push(runId)
          tell((listener) => listener.signalled(runId))
        },
        changed: (owner) => tell((listener) => listener.changed?.(owner)),
        listen: (listener) => void own.add(listener),
        close: async () => own.clear(),
      }
    },
  }
  return cluster
}
