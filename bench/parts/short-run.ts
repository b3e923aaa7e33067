// A run of 20 tokens on a server that does nothing else: the time to its first delta, and the
// CPU time of the whole run.

import { median } from '../figures.ts'
import { loadOn } from '../processes.ts'
import { type Bench, type Comparison, polylogLoad, proxyLoad } from '../servers.ts'

export async function shortRun(bench: Bench): Promise<Comparison[]> {
  const proxy = await bench.proxy()
  const server = await bench.polylog()
  const raw = { first: [] as number[], cpu: [] as number[] }
  const ours = { first: [] as number[], cpu: [] as number[] }
  for (let round = 0; round <= bench.rounds; round++) {
    // The compiler of V8 needs a thousand requests until it has the whole path of a run.
    const load = { streams: 1, rounds: round === 0 ? 1000 : 250, model: 'bench-20-0' }
    const one = await loadOn(proxy, proxyLoad(proxy, load))
    const two = await loadOn(server, polylogLoad(server, load))
    if (round === 0) continue
    raw.first.push(one.firstP50)
    raw.cpu.push((one.cpu / one.requests) * 1000)
    ours.first.push(two.firstP50)
    ours.cpu.push((two.cpu / two.requests) * 1000)
  }
  return [
    {
      what: 'first delta of a short run, idle server',
      unit: 'ms',
      raw: median(raw.first),
      ours: median(ours.first),
      goal: '≤ 3',
    },
    { what: 'CPU of a run of 20 tokens', unit: 'ms', raw: median(raw.cpu), ours: median(ours.cpu), goal: '≤ 3' },
  ]
}
