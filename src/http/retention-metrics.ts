// The metrics of the retention: how many rows it removed on this node, and how old the oldest run
// is that is kept.

import { Counter, Gauge, type Registry } from 'prom-client'
import type { RemovedKind } from '../runs/retention.ts'

export interface RetentionMetrics {
  removed(kind: RemovedKind, count: number): void
  /** Sets the function that tells when the oldest kept run ended; it is called at each scrape. */
  reportOldestEndWith(oldestEnd: () => Promise<number | null>): void
}

export function createRetentionMetrics(registry: Registry): RetentionMetrics {
  const removed = new Counter({
    name: 'polylog_retention_removed_total',
    help: 'Rows that the retention removed on this node, by kind.',
    labelNames: ['kind'] as const,
    registers: [registry],
  })
  let readOldestEnd: () => Promise<number | null> = async () => null
  const oldest = new Gauge({
    name: 'polylog_oldest_run_end_timestamp_seconds',
    help: 'When the oldest run that is kept ended, in seconds since 1970. Absent if no run has ended.',
    labelNames: [] as const,
    async collect() {
      this.reset()
      // If the database fails, the health check reports it; the other metrics must still be served.
      const at = await readOldestEnd().catch(() => null)
      if (at === null) this.remove()
      else this.set(at / 1000)
    },
    registers: [],
  })
  registry.registerMetric(oldest)
  return {
    removed: (kind, count) => removed.inc({ kind }, count),
    reportOldestEndWith(oldestEnd) {
      readOldestEnd = oldestEnd
    },
  }
}
