// The same load in every format, beside the native one.

import { formatDialects } from '../../src/http/formats.ts'
import { figure, median, table } from '../figures.ts'
import { loadOn } from '../processes.ts'
import { type Bench, chatBody, urlOf } from '../servers.ts'

export async function formats(bench: Bench): Promise<void> {
  const names = Object.keys(formatDialects)
  const streams = 20
  const deltas = 1000
  const server = await bench.polylog()
  const times = new Map<string, number[]>(names.map((name) => [name, []]))
  for (let round = 0; round <= bench.rounds; round++) {
    // In turns from both ends: a checkpoint or a garbage collection must not hit the same format each time.
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const url = urlOf(server, `/v1/agent/chat?format=${name}`)
      const { cpu } = await loadOn(server, { url, streams, body: chatBody(`bench-${deltas}-0`), marker: 'data:' })
      // Not every wire has one frame for a delta, so the deltas of the provider are counted.
      if (round > 0) times.get(name)?.push((cpu / (streams * deltas)) * 1e6)
    }
  }
  const native = median(times.get('sse') ?? [])
  const rows = [...times].map(([name, list]) => [name, figure(median(list)), figure(median(list) / native)])
  console.log(table(['format', 'CPU µs a delta', 'ratio to sse'], rows), '\n')
}
