// A process with the real scheduler, store and watchdog, and tools that freeze or kill it.
// Started by freeze.test.ts: freezing-server.ts <folder> <what the tool does> [<run id> <id of the run beside it>].
// Reports what happens as lines of JSON.

import { join } from 'node:path'
import { writeSync } from 'node:fs'
import { startWatchdog } from '../../src/app/watchdog.ts'
import { systemClock } from '../../src/kit/clock.ts'
import { ulidIds } from '../../src/kit/ids.ts'
import { type Answer, calls, openRig, says, silence, toolOf } from '../support/run-rig.ts'

const [folder = '', deed = '', known = '', beside = ''] = process.argv.slice(2)
const say = (line: object) => writeSync(1, `${JSON.stringify(line)}\n`)
const log = {
  warn: (details: object, message: string) => say({ warn: message, ...details }),
  error: (details: object, message: string) => say({ error: message, ...details }),
}
const ids = ulidIds(() => Date.now())

const bad = toolOf({
  name: 'bad',
  async run() {
    // Not in the first turn: what is on the main thread has to be known after any await.
    await new Promise((resolve) => setTimeout(resolve, 5))
    if (deed === 'spin') for (;;);
    if (deed === 'exit') process.exit(7)
    if (deed === 'throw') setTimeout(() => assertNever(), 1)
    if (deed === 'pause') {
      const until = Date.now() + 1500
      while (Date.now() < until);
    }
    return await new Promise((resolve) =>
      setTimeout(() => resolve({ ok: true, output: null, summary: '' }), deed === 'pause' ? 300 : 60_000),
    )
  },
})
function assertNever(): never {
  throw new Error('out of all control')
}

const answer: Answer = ({ messages }, signal) => {
  if (messages.some((message) => message.content === 'be good')) return silence(signal)
  return messages.at(-1)?.role === 'tool' ? says('Done.') : calls({ callId: 'c', name: 'bad' })
}
const watchdog = startWatchdog({ folder, life: ids(), log: log as never, freezeMaxMs: 3000, blockedMs: 300 })
const rig = await openRig({
  answer,
  tools: [bad],
  file: join(folder, 'polylog.db'),
  databaseUrl: process.env['POLYLOG_DATABASE_URL'],
  ids,
  node: ids(),
})
rig.dependencies.deaths = watchdog.deaths
let run = known
let innocent = beside
if (known === '') {
  innocent = (await rig.start({ input: 'be good' })).run.id
  run = (await rig.start()).run.id
  say({ run, innocent })
} else rig.scheduler.start()

systemClock.after(60_000, () => process.exit(9))
// One look after the other: none may be reading when the store is closed.
for (;;) {
  const row = await rig.store.readRun(run)
  const other = await rig.store.readRun(innocent)
  // The other run may be claimed later than the one that has ended.
  if (row?.endedAt != null && other?.status !== 'queued') {
    say({ ended: row.status, code: row.error?.code ?? null, innocent: other?.status })
    break
  }
  await new Promise((resolve) => setTimeout(resolve, 20))
}
await rig.close()
await watchdog.stop()
process.exit(0)
