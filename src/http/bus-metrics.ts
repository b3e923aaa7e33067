// The metrics of the bus between nodes. On a server that is alone they stay at zero.

import { Counter, Histogram, type Registry } from 'prom-client'
import type { BusMeter } from '../bus/cluster-bus.ts'

/** Milliseconds if all goes well; seconds if a hint was lost. */
const lagBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30]

export function createBusMetrics(registry: Registry): BusMeter {
  const registers = [registry]
  const sent = new Counter({
    name: 'polylog_bus_hints_sent_total',
    help: 'Hints sent to other nodes: runs whose journal has grown, and commands that were stored.',
    registers,
  })
  const received = new Counter({
    name: 'polylog_bus_hints_received_total',
    help: 'Hints received from other nodes.',
    registers,
  })
  const reconnects = new Counter({
    name: 'polylog_bus_reconnects_total',
    help: 'How often the connection of the bus was lost and made again.',
    registers,
  })
  const lag = new Histogram({
    name: 'polylog_bus_lag_seconds',
    help: 'Time from the commit of events on another node until followers on this node had them. Differences of the clocks count too.',
    buckets: lagBuckets,
    registers,
  })
  return {
    hintsSent: (count) => sent.inc(count),
    hintsReceived: (count) => received.inc(count),
    reconnected: () => reconnects.inc(),
    delivered: (seconds) => lag.observe(seconds),
  }
}
