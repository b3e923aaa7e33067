// The bounded version of `npm run chaos`, with a seed of its own for each run of the suite. A failure
// prints the seed; `npm run chaos -- --seed <n>` repeats its plan.

import { test } from 'node:test'
import { faultKinds } from './plan.ts'
import { chaos } from './chaos.ts'
import { wires } from '../torture/wires.ts'

/** Of each way to read a run one: with and without ids, with and without parking, jobs, sessions, comparisons. */
const taking = ['native', 'vercel-ai', 'chunks-ndjson', 'session', 'fcmp', 'comparison', 'ui-message']

test('nodes that die, freeze and stop, and a database that is restarted, lose nothing and repeat nothing', async (context) => {
  const seed = Number(process.env['CHAOS_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
  context.diagnostic(`seed ${seed}`)
  try {
    const goesOn = (troubles: number) => troubles < faultKinds.length
    const result = await chaos({
      seed,
      clients: taking.length,
      wires: wires.filter(({ name }) => taking.includes(name)),
      leaseMs: 1500,
      framesMax: 60,
      goesOn,
    })
    context.diagnostic(JSON.stringify(result))
  } catch (error) {
    throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error })
  }
})
