// `npm run torture`: runs the torture test with a chosen number of server kills and clients.
//
//   npm run torture -- --deaths 400 --clients 24 --seed 7

import { parseArgs } from 'node:util'
import { torture } from '../test/torture/torture.ts'

const { values } = parseArgs({
  options: {
    deaths: { type: 'string', default: '200' },
    clients: { type: 'string', default: '21' },
    frames: { type: 'string', default: '600' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
  },
})
console.log(`seed ${values.seed}`)
try {
  const result = await torture({
    seed: Number(values.seed),
    deaths: Number(values.deaths),
    clients: Number(values.clients),
    framesMax: Number(values.frames),
    report: (line) => console.log(line),
  })
  console.log(JSON.stringify(result, null, 2))
} catch (error) {
  console.error(error)
  console.error(`Failed. Repeat with: npm run torture -- --seed ${values.seed}`)
  process.exit(1)
}
