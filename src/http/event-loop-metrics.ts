// How late the event loop is, under the names that prom-client gives these metrics. Its own sampler wakes an idle
// process a hundred times per second, which costs almost one percent of a core, and includes its interval in
// every figure.

import { createHistogram } from 'node:perf_hooks'
import { Gauge, type Registry } from 'prom-client'
import type { Clock, Timer } from '../kit/clock.ts'

const intervalMs = 100
const nsPerMs = 1e6
const nsPerSecond = 1e9
/** The longest interval of a timer, 24 days. */
const longestMs = 2 ** 31 - 1

/** For `collectDefaultMetrics`: its own sampler cannot be left out, so it gets an interval at which it never samples. */
export const silentSampler = { eventLoopMonitoringPrecision: longestMs }

type Statistic = 'min' | 'max' | 'mean' | 'stddev' | 'p50' | 'p90' | 'p99'

/** Replaces metrics of `collectDefaultMetrics`, so call it after that. */
export function createEventLoopMetrics(
  registry: Registry,
  clock: Pick<Clock, 'monotonic' | 'after'>,
): { close(): void } {
  const delays = createHistogram()
  let timer: Timer
  const sampleNext = () => {
    const dueAt = clock.monotonic() + intervalMs
    timer = clock.after(intervalMs, () => {
      // A histogram takes no zero.
      delays.record(Math.max(1, Math.round((clock.monotonic() - dueAt) * nsPerMs)))
      sampleNext()
    })
  }
  sampleNext()

  const gauge = (name: string, help: string, collect?: (this: Gauge) => Promise<void>) => {
    registry.removeSingleMetric(name)
    return new Gauge({ name, help, registers: [registry], ...(collect === undefined ? {} : { collect }) })
  }
  // It is the first, because a scrape collects the metrics in their order, and this one sets the others.
  gauge('nodejs_eventloop_lag_seconds', 'The delay of the event loop during this scrape.', async function () {
    const startedAt = clock.monotonic()
    if (delays.count > 0) {
      gauges.min.set(delays.min / nsPerSecond)
      gauges.max.set(delays.max / nsPerSecond)
      gauges.mean.set(delays.mean / nsPerSecond)
      gauges.stddev.set(delays.stddev / nsPerSecond)
      gauges.p50.set(delays.percentile(50) / nsPerSecond)
      gauges.p90.set(delays.percentile(90) / nsPerSecond)
      gauges.p99.set(delays.percentile(99) / nsPerSecond)
      delays.reset()
    }
    await new Promise((resolve) => setImmediate(resolve))
    this.set((clock.monotonic() - startedAt) / 1000)
  })
  const statistic = (name: Statistic, help: string) => gauge(`nodejs_eventloop_lag_${name}_seconds`, help)
  const gauges = {
    min: statistic('min', 'The shortest delay of the event loop since the last scrape.'),
    max: statistic('max', 'The longest delay of the event loop since the last scrape.'),
    mean: statistic('mean', 'The mean delay of the event loop since the last scrape.'),
    stddev: statistic('stddev', 'The standard deviation of the delays of the event loop since the last scrape.'),
    p50: statistic('p50', 'The median delay of the event loop since the last scrape.'),
    p90: statistic('p90', 'The 90th percentile of the delays of the event loop since the last scrape.'),
    p99: statistic('p99', 'The 99th percentile of the delays of the event loop since the last scrape.'),
  }
  return { close: () => timer.cancel() }
}
