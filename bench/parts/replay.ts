// The whole stream of a finished run of 2,000 deltas, compared with the same bytes from a file.

import { writeFileSync } from 'node:fs'
import { median } from '../figures.ts'
import { loadOn } from '../processes.ts'
import { type Bench, type Comparison, finishedRun, urlOf } from '../servers.ts'

export async function replay(bench: Bench): Promise<Comparison[]> {
  const server = await bench.polylog()
  const url = urlOf(server, `/v1/agent/runs/${await finishedRun(server, 'bench-2000-0')}/stream`)
  const file = `${bench.newFolder()}.sse`
  writeFileSync(file, await (await fetch(url)).text())
  const proxy = await bench.proxy({ FILE: file })
  const raw = { ms: [] as number[], cpu: [] as number[] }
  const ours = { ms: [] as number[], cpu: [] as number[] }
  const load = { streams: 1, rounds: 100, method: 'GET', marker: 'event: agent.delta' } as const
  for (let round = 0; round <= bench.rounds; round++) {
    const one = await loadOn(proxy, { url: urlOf(proxy, '/file'), ...load })
    const two = await loadOn(server, { url, ...load })
    if (round === 0) continue
    raw.ms.push((one.seconds / one.requests) * 1000)
    raw.cpu.push((one.cpu / one.requests) * 1000)
    ours.ms.push((two.seconds / two.requests) * 1000)
    ours.cpu.push((two.cpu / two.requests) * 1000)
  }
  const what = 'replay of 2,000 deltas (proxy: a static file)'
  return [
    { what: `${what}: whole stream`, unit: 'ms', raw: median(raw.ms), ours: median(ours.ms), goal: '≤ 4' },
    { what: `${what}: CPU`, unit: 'ms', raw: median(raw.cpu), ours: median(ours.cpu), goal: '' },
  ]
}
