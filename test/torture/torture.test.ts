// The bounded version of `npm run torture`, with a seed of its own for each run of
// the suite. A failure prints the seed; `npm run torture -- --seed <n>` repeats its choices.

import { test } from 'node:test'
import { torture } from './torture.ts'

test('random kills under mixed load lose nothing, repeat nothing and end every run once', async (context) => {
  const seed = Number(process.env['TORTURE_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
  context.diagnostic(`seed ${seed}`)
  try {
    const result = await torture({ seed, deaths: 10, clients: 14, framesMax: 400 })
    context.diagnostic(JSON.stringify(result))
  } catch (error) {
    throw new Error(`seed ${seed}: ${(error as Error).message}`, { cause: error })
  }
})
