// `npm run bench`: measures what a run and a delta cost, and in the same run on the same machine
// what they cost a raw node:http proxy, which forwards the same bytes and stores nothing. The
// absolute figures depend on the machine; compare the ratios. `npm run bench -- burst idle` runs
// only these parts.

import { cpus } from 'node:os'
import { figure, table } from './figures.ts'
import { burst } from './parts/burst.ts'
import { fanOut } from './parts/fan-out.ts'
import { formats } from './parts/formats.ts'
import { fullSpeed } from './parts/full-speed.ts'
import { idle } from './parts/idle.ts'
import { nodes } from './parts/nodes.ts'
import { paced } from './parts/paced.ts'
import { replay } from './parts/replay.ts'
import { scaling } from './parts/scaling.ts'
import { shortRun } from './parts/short-run.ts'
import { isPinned } from './processes.ts'
import { Bench, type Comparison } from './servers.ts'

/** A part returns rows of the comparison with the proxy, or prints a table of its own. */
const parts: Record<string, (bench: Bench) => Promise<Comparison[] | void>> = {
  short: shortRun,
  burst,
  paced,
  idle,
  replay,
  fanout: fanOut,
  full: fullSpeed,
  scaling,
  formats,
  nodes,
}

const asked = process.argv.slice(2)
const unknown = asked.filter((name) => parts[name] === undefined)
if (unknown.length > 0) {
  console.error(`There is no part ${unknown.join(', ')}. The parts are ${Object.keys(parts).join(', ')}.`)
  process.exit(1)
}

const bench = await Bench.open()
console.log(
  `${cpus()[0]?.model.trim()}, ${cpus().length} cores, Node ${process.version}, medians of ${bench.rounds} rounds, ` +
    `${isPinned ? 'the server pinned to one core' : 'nothing pinned to a core'}\n`,
)
const rows: Comparison[] = []
try {
  for (const name of asked.length === 0 ? Object.keys(parts) : asked) {
    const startedAt = performance.now()
    rows.push(...((await parts[name]?.(bench)) ?? []))
    await bench.stopServers()
    console.error(`${name}: ${((performance.now() - startedAt) / 1000).toFixed(0)} s`)
  }
} finally {
  await bench.close()
}
if (rows.length > 0) {
  console.log(
    table(
      ['what', 'raw proxy', 'polylog', 'ratio', 'goal'],
      rows.map(({ what, unit, raw, ours, goal }) => [
        what,
        `${figure(raw)} ${unit}`,
        `${figure(ours)} ${unit}`,
        figure(ours / raw),
        goal,
      ]),
    ),
  )
}
