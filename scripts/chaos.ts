// `npm run chaos`: three nodes on one PostgreSQL server under a mixed load, while nodes are killed, frozen
// and stopped and the database is restarted, for as long as you like.
//
//   npm run chaos -- --minutes 10 --clients 24 --seed 7

import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { chaos } from '../test/chaos/chaos.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    clients: { type: 'string', default: '21' },
    lease: { type: 'string', default: '3000' },
    frames: { type: 'string', default: '600' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
    log: { type: 'string', default: 'chaos.log' },
  },
})
console.log(`seed ${values.seed}`)
const endsAt = performance.now() + Number(values.minutes) * 60_000
let nodeLogs = ''
try {
  const result = await chaos({
    seed: Number(values.seed),
    clients: Number(values.clients),
    leaseMs: Number(values.lease),
    framesMax: Number(values.frames),
    goesOn: () => performance.now() < endsAt,
    report: (line) => console.log(`${new Date().toISOString().slice(11, 23)} ${line}`),
    failed: (logs) => (nodeLogs = logs),
  })
  console.log(JSON.stringify(result, null, 2))
} catch (error) {
  console.error(error)
  writeFileSync(values.log, nodeLogs)
  console.error(
    `Failed; the logs of the nodes are in ${values.log}. Repeat with: npm run chaos -- --seed ${values.seed}`,
  )
  process.exit(1)
}
