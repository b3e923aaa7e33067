// 50 streams at full speed: what a delta costs when nothing waits. The provider sends one chunk per
// stream in each turn of its event loop. If it sent hundreds in one packet, the proxy would
// forward them with one write, and the ratio would mean little.

import { figure, median, table } from '../figures.ts'
import { type LoadResult, loadOn } from '../processes.ts'
import { type Bench, type Comparison, polylogLoad, proxyLoad } from '../servers.ts'

export async function fullSpeed(bench: Bench): Promise<Comparison[]> {
  const proxy = await bench.proxy()
  const server = await bench.polylog()
  type Measured = LoadResult & { cpu: number; others: number }
  const raw: Measured[] = []
  const ours: Measured[] = []
  const load = { streams: 50, model: 'bench-2000-0' }
  const short = { streams: 50, rounds: 20, model: 'bench-20-0' }
  const runs: Measured[] = []
  for (let round = 0; round <= bench.rounds; round++) {
    const one = await loadOn(proxy, proxyLoad(proxy, load))
    const two = await loadOn(server, polylogLoad(server, load))
    const three = await loadOn(server, polylogLoad(server, short))
    if (round === 0) continue
    raw.push(one)
    ours.push(two)
    runs.push(three)
  }
  const of = (list: Measured[], value: (measured: Measured) => number) => median(list.map(value))
  console.log(
    table(
      ['what one process carries', 'figure', 'cores in use', 'of that, besides the main thread'],
      [
        ['deltas per second, 50 streams', figure(of(ours, (m) => m.deltas / m.seconds)), ours],
        ['short runs per second, 50 at once', figure(of(runs, (m) => m.requests / m.seconds)), runs],
      ].map(([what, rate, list]) => [
        String(what),
        String(rate),
        figure(of(list as Measured[], (m) => m.cpu / m.seconds)),
        `${figure(of(list as Measured[], (m) => (m.others / m.cpu) * 100))} %`,
      ]),
    ),
    '\n',
  )
  return [
    {
      what: '50 streams at full speed: CPU of a delta',
      unit: 'µs',
      raw: of(raw, (m) => (m.cpu / m.deltas) * 1e6),
      ours: of(ours, (m) => (m.cpu / m.deltas) * 1e6),
      goal: '≤ 2',
    },
  ]
}
