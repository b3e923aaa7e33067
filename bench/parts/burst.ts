// 500 runs that are started at the same moment.

import { median } from '../figures.ts'
import { type Child, type LoadOptions, loadOn } from '../processes.ts'
import { type Bench, type Comparison, polylogLoad, proxyLoad } from '../servers.ts'

export async function burst(bench: Bench): Promise<Comparison[]> {
  const proxy = await bench.proxy()
  const server = await bench.polylog()
  const raw = { first: [] as number[], delay: [] as number[] }
  const ours = { first: [] as number[], delay: [] as number[] }
  const load = { streams: 500, model: 'bench-20-20' }
  for (let round = 0; round <= bench.rounds; round++) {
    const one = await watched(proxy, proxyLoad(proxy, load))
    const two = await watched(server, polylogLoad(server, load))
    if (round === 0) continue
    raw.first.push(one.firstP99)
    raw.delay.push(one.delayP99Ms)
    ours.first.push(two.firstP99)
    ours.delay.push(two.delayP99Ms)
  }
  return [
    {
      what: '500 runs started at once: first delta p99',
      unit: 'ms',
      raw: median(raw.first),
      ours: median(ours.first),
      goal: '≤ 3',
    },
    {
      what: '500 runs started at once: event-loop delay p99',
      unit: 'ms',
      raw: median(raw.delay),
      ours: median(ours.delay),
      goal: '< 50 ms',
    },
  ]
}

async function watched(child: Child, options: LoadOptions): Promise<{ firstP99: number; delayP99Ms: number }> {
  await child.ask('watch')
  const { firstP99 } = await loadOn(child, options)
  const { delayP99Ms } = await child.ask('delay')
  return { firstP99, delayP99Ms }
}
