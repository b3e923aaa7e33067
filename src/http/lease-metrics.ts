// The metrics of ownership: how often runs were claimed, taken over and lost by this node.

import { Counter, type Registry } from 'prom-client'
import type { LeaseMeter } from '../runs/run-dependencies.ts'
import type { MetricCalls } from './metric-calls.ts'

export function createLeaseMetrics(registry: Registry, calls: MetricCalls): LeaseMeter {
  const registers = [registry]
  const claims = new Counter({ name: 'polylog_claims_total', help: 'Runs that this node claimed.', registers })
  const takeovers = new Counter({
    name: 'polylog_takeovers_total',
    help: 'Runs that this node took over from a node whose lease had run out.',
    registers,
  })
  const losses = new Counter({
    name: 'polylog_lease_losses_total',
    help: 'Runs on which this node stopped working because it could not renew its lease in time.',
    registers,
  })
  const fenced = new Counter({
    name: 'polylog_fenced_appends_total',
    help: 'Writes that were refused because another node owned the run.',
    registers,
  })
  return {
    runsClaimed: (count, takenOver) =>
      calls.add(() => {
        claims.inc(count)
        takeovers.inc(takenOver)
      }),
    leaseLost: () => losses.inc(),
    appendFenced: () => fenced.inc(),
  }
}
