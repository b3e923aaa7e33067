// 500 streams of 50 tokens per second: whether the pace is held, how late a delta arrives, and
// what it costs.

import { median } from '../figures.ts'
import { type LoadResult, loadOn } from '../processes.ts'
import { type Bench, type Comparison, polylogLoad, proxyLoad } from '../servers.ts'

const perSecond = 50
/** A round has 500 runs, and code that is executed once in a run is compiled after a thousand. */
const warmUps = 3

export async function paced(bench: Bench): Promise<Comparison[]> {
  const proxy = await bench.proxy()
  const server = await bench.polylog()
  const raw: (LoadResult & { cpu: number })[] = []
  const ours: (LoadResult & { cpu: number })[] = []
  const load = { streams: 500, model: `stamped-200-${1000 / perSecond}`, stamped: true }
  for (let round = 1 - warmUps; round <= bench.rounds; round++) {
    const one = await loadOn(proxy, proxyLoad(proxy, load))
    const two = await loadOn(server, polylogLoad(server, load))
    if (round < 1) continue
    raw.push(one)
    ours.push(two)
  }
  const row = (what: string, unit: string, goal: string, value: (result: LoadResult & { cpu: number }) => number) => ({
    what: `500 x 50 tokens/s: ${what}`,
    unit,
    raw: median(raw.map(value)),
    ours: median(ours.map(value)),
    goal,
  })
  return [
    row('pace held', '%', '100 %', ({ perStreamSecond }) => Math.min(100, (perStreamSecond / perSecond) * 100)),
    row('delta latency p99', 'ms', '≤ 1.5', ({ latencyP99 }) => latencyP99),
    row('CPU of a delta', 'µs', '≤ 1.3', ({ cpu, deltas }) => (cpu / deltas) * 1e6),
  ]
}
