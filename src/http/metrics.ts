// The Prometheus metrics of the server. Label values come from closed sets (families,
// dialects, route templates), never from ids or users, so that the number of time series
// stays small.

import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client'
import type { BusMeter } from '../bus/cluster-bus.ts'
import { type EngineState, engineStates } from '../engines/engine.ts'
import { type RunStatus, isTerminal, runStatuses } from '../journal/event.ts'
import type { Clock } from '../kit/clock.ts'
import type { LeaseMeter, RunMeter } from '../runs/run-dependencies.ts'
import { createLeaseMetrics } from './lease-metrics.ts'
import { createBusMetrics } from './bus-metrics.ts'
import { createEventLoopMetrics, silentSampler } from './event-loop-metrics.ts'
import { MetricCalls } from './metric-calls.ts'
import { createOperationsMetrics, type OperationsMetrics } from './operations-metrics.ts'
import { createRetentionMetrics, type RetentionMetrics } from './retention-metrics.ts'
import { createWorkMetrics } from './work-metrics.ts'

export interface Metrics {
  runEnded(run: { family: string; engine: string; status: RunStatus }): void
  eventsStored(count: number): void
  /** Counts an open stream until the returned function is called. Calling that function twice is harmless. */
  streamOpened(dialect: string): () => void
  /** `route` is the template (`/v1/runs/:id`), undefined if no route matched. */
  requestDone(request: { method: string; route: string | undefined; status: number; seconds: number }): void
  /** Sets the function that counts the open runs; it is called at each scrape. */
  countOpenRunsWith(count: () => Promise<Partial<Record<RunStatus, number>>>): void
  /** Sets the function that tells the states of the engines; it is called at each scrape. */
  reportEnginesWith(states: () => readonly { name: string; state: EngineState }[]): void
  /** Records that a route or a run blocked the event loop. */
  loopBlocked(work: string, seconds: number): void
  /** The work in runs: models and tools. */
  readonly work: RunMeter
  /** Who owns runs: claims, takeovers, losses. */
  readonly leases: LeaseMeter
  /** The bus between nodes. */
  readonly bus: BusMeter
  /** What the retention removed, and what is kept. */
  readonly retention: RetentionMetrics
  /** Commits, stuck runs, nodes, readers, readiness. */
  readonly operations: OperationsMetrics
  readonly contentType: string
  text(): Promise<string>
  /** Stops measuring. */
  close(): void
}

/** The clock times the event loop, so it should be the one of the system. */
export function createMetrics(clock: Pick<Clock, 'monotonic' | 'after'>): Metrics {
  const registry = new Registry()
  const registers = [registry]
  const calls = new MetricCalls()
  collectDefaultMetrics({ register: registry, ...silentSampler })
  const eventLoop = createEventLoopMetrics(registry, clock)

  let countOpenRuns: (() => Promise<Partial<Record<RunStatus, number>>>) | null = null

  const runs = new Counter({
    name: 'polylog_runs_total',
    help: 'Runs that ended, by API family and final status.',
    labelNames: ['family', 'engine', 'status'] as const,
    registers,
  })
  const openRuns = new Gauge({
    name: 'polylog_runs_open',
    help: 'Runs that have not ended, by status.',
    labelNames: ['status'] as const,
    async collect() {
      this.reset()
      // If the database fails, the health check reports it; the other metrics must still be served.
      const counts = countOpenRuns === null ? null : await countOpenRuns().catch(() => null)
      if (counts === null) return
      for (const status of runStatuses) {
        if (!isTerminal(status)) this.set({ status }, counts[status] ?? 0)
      }
    },
    registers: [],
  })
  registry.registerMetric(openRuns)
  let statesOfEngines: () => readonly { name: string; state: EngineState }[] = () => []
  const engines = new Gauge({
    name: 'polylog_engine_state',
    help: 'The state of each engine (available, paused after failures, trial): 1 for the state that it has.',
    labelNames: ['engine', 'state'] as const,
    collect() {
      this.reset()
      for (const { name, state } of statesOfEngines())
        for (const each of engineStates) this.set({ engine: name, state: each }, each === state ? 1 : 0)
    },
    registers: [],
  })
  registry.registerMetric(engines)
  const openStreams = new Map<string, number>()
  const streams = new Gauge({
    name: 'polylog_stream_connections',
    help: 'Open streams, by dialect.',
    labelNames: ['dialect'] as const,
    collect() {
      for (const [dialect, count] of openStreams) this.set({ dialect }, count)
    },
    registers: [],
  })
  registry.registerMetric(streams)
  let eventsStored = 0
  const events = new Counter({
    name: 'polylog_events_total',
    help: 'Journal events stored.',
    collect() {
      this.reset()
      this.inc(eventsStored)
    },
    registers: [],
  })
  registry.registerMetric(events)
  const requests = new Histogram({
    name: 'polylog_http_request_duration_seconds',
    help: 'Time from request to the end of its response; for streams that is how long they were open.',
    labelNames: ['method', 'route', 'status'] as const,
    // Ordinary answers take milliseconds; the last buckets hold streams.
    buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120, 600],
    registers,
  })

  const blocks = new Counter({
    name: 'polylog_event_loop_blocks_total',
    help: 'How often the event loop was blocked for a second or longer, by route; runs count as one.',
    labelNames: ['work'] as const,
    registers,
  })
  const longest = new Gauge({
    name: 'polylog_event_loop_block_longest_seconds',
    help: 'The longest block of the event loop since the start, by route; runs count as one. The log has the run.',
    labelNames: ['work'] as const,
    registers,
  })
  const longestSeconds = new Map<string, number>()

  return {
    loopBlocked(work, seconds) {
      blocks.inc({ work })
      if (seconds <= (longestSeconds.get(work) ?? 0)) return
      longestSeconds.set(work, seconds)
      longest.set({ work }, seconds)
    },
    runEnded: ({ family, engine, status }) => calls.add(() => runs.inc({ family, engine, status })),
    eventsStored(count) {
      eventsStored += count
    },
    streamOpened(dialect) {
      let open = true
      openStreams.set(dialect, (openStreams.get(dialect) ?? 0) + 1)
      return () => {
        if (open) openStreams.set(dialect, (openStreams.get(dialect) ?? 0) - 1)
        open = false
      }
    },
    requestDone: ({ method, route, status, seconds }) =>
      calls.add(() => requests.observe({ method, route: route ?? 'unmatched', status: String(status) }, seconds)),
    reportEnginesWith(states) {
      statesOfEngines = states
    },
    countOpenRunsWith(count) {
      countOpenRuns = count
    },
    work: createWorkMetrics(registry, calls),
    leases: createLeaseMetrics(registry, calls),
    bus: createBusMetrics(registry),
    retention: createRetentionMetrics(registry),
    operations: createOperationsMetrics(registry),
    contentType: registry.contentType,
    close: () => eventLoop.close(),
    text() {
      calls.flush()
      return registry.metrics()
    },
  }
}
