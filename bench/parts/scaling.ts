// Whether the cost of an event stays the same in long runs, in a large database, and with many
// readers.

import { figure, table } from '../figures.ts'
import { loadOn } from '../processes.ts'
import { type Bench, finishedRun, polylogLoad } from '../servers.ts'
import { cpuPerDelivery, followRun } from './fan-out.ts'
import { seedRuns } from '../seed.ts'

const eventsOfRun = [10, 1000, 100_000]
const runsInDatabase = [10, 1000, 100_000]
const readersOfRun = [1, 10, 100, 1000]

export async function scaling(bench: Bench): Promise<void> {
  const rows: string[][] = []
  const row = (what: string, count: number, cost: number, first: number) =>
    rows.push([what, count.toLocaleString('en'), figure(cost), figure(cost / first)])

  const server = await bench.polylog()
  await finishedRun(server, 'bench-5000-0')
  const short = { streams: 10, rounds: 40, model: 'bench-10-0' }
  await loadOn(server, polylogLoad(server, short))
  let first = Number.NaN
  // A run costs something besides its events, so the cost of an event is the slope between a long run and a run of 10.
  const base = await loadOn(server, polylogLoad(server, { ...short, model: 'bench-10-0' }))
  const perRun = base.cpu / base.requests
  for (const events of eventsOfRun.slice(1)) {
    const { cpu, requests } = await loadOn(
      server,
      polylogLoad(server, { streams: 2, rounds: Math.max(1, 20_000 / events), model: `bench-${events}-0` }),
    )
    const cost = ((cpu / requests - perRun) / (events - 10)) * 1e6
    if (Number.isNaN(first)) first = cost
    row('CPU µs of an event, by events in its run (slope from 10)', events, cost, first)
  }
  await bench.stopServers()

  first = Number.NaN
  const folder = bench.newFolder()
  let seeded = 0
  for (const runs of runsInDatabase) {
    await seedRuns(folder, seeded, runs)
    seeded = runs
    const filled = await bench.polylog(folder)
    const load = polylogLoad(filled, { streams: 10, rounds: 60, model: 'bench-20-0' })
    await loadOn(filled, load)
    const { cpu, requests } = await loadOn(filled, load)
    const cost = (cpu / requests) * 1e6
    if (Number.isNaN(first)) first = cost
    row('CPU µs of a run of 20 tokens, by runs in the database', runs, cost, first)
    await bench.stopServers()
  }

  first = Number.NaN
  const shared = await bench.polylog()
  await cpuPerDelivery(shared, 10, followRun)
  for (const readers of readersOfRun) {
    const cost = await cpuPerDelivery(shared, readers, followRun)
    if (readers === 10) first = cost
    row('CPU µs of a delivery, by readers of the run', readers, cost, Number.isNaN(first) ? cost : first)
  }
  console.log(table(['cost', 'count', 'figure', 'ratio'], rows), '\n')
}
