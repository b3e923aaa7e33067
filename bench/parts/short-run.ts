// A run of 20 tokens on a server that does nothing else: the time to its first delta, and the
// CPU time of the whole run. Besides runs in conversations without a name, the first and the second turn of
// conversations that the client names.

import { median } from '../figures.ts'
import { type Child, loadOn, type LoadOptions } from '../processes.ts'
import { type Bench, type Comparison, polylogLoad, proxyLoad } from '../servers.ts'

/** The second turn of a conversation follows after the other first turns, so that the database has all of the first one. */
const kinds = ['unnamed', 'first turn', 'second turn'] as const

type Figures = { first: number[]; cpu: number[] }

export async function shortRun(bench: Bench): Promise<Comparison[]> {
  const proxy = await bench.proxy()
  const server = await bench.polylog()
  const none = (): Figures => ({ first: [], cpu: [] })
  const raw = none()
  const ours = { unnamed: none(), 'first turn': none(), 'second turn': none() }
  for (let round = 0; round <= bench.rounds; round++) {
    // The compiler of V8 needs a thousand requests until it has the whole path of a run.
    const load = { streams: 1, rounds: round === 0 ? 1000 : 250, model: 'bench-20-0' }
    await measure(proxy, proxyLoad(proxy, load), round === 0 ? none() : raw)
    for (const kind of kinds) {
      const named = kind === 'unnamed' ? load : { ...load, conversations: `round-${round}` }
      await measure(server, polylogLoad(server, named), round === 0 ? none() : ours[kind])
    }
  }
  const row = (what: string, figure: keyof Figures, kind: (typeof kinds)[number], goal: string): Comparison => ({
    what,
    unit: 'ms',
    raw: median(raw[figure]),
    ours: median(ours[kind][figure]),
    goal,
  })
  return [
    row('first delta of a short run, idle server', 'first', 'unnamed', '≤ 3'),
    row('the same, first turn of a named conversation', 'first', 'first turn', ''),
    row('the same, second turn', 'first', 'second turn', ''),
    row('CPU of a run of 20 tokens', 'cpu', 'unnamed', '≤ 3'),
    row('the same, first turn of a named conversation', 'cpu', 'first turn', ''),
    row('the same, second turn', 'cpu', 'second turn', ''),
  ]
}

async function measure(child: Child, load: LoadOptions, figures: Figures): Promise<void> {
  const { firstP50, cpu, requests } = await loadOn(child, load)
  figures.first.push(firstP50)
  figures.cpu.push((cpu / requests) * 1000)
}
