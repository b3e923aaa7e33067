import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { clusterBusContract } from '../../test/contracts/cluster-bus-contract.ts'
import { manualClock } from '../../test/support/manual-clock.ts'
import { gateOf, withoutNotifications } from '../../test/support/tcp-gate.ts'
import { newStoreDatabase } from '../../test/support/postgres.ts'
import { AppError } from '../errors/app-error.ts'
import { systemClock } from '../kit/clock.ts'
import { openPostgresBus } from './postgres-bus.ts'

const log = { info: () => {}, warn: () => {} }

async function query(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(sql)
  await client.end()
}

clusterBusContract('PostgreSQL', async () => {
  const database = await newStoreDatabase()
  return {
    open: (node, meter) => openPostgresBus({ url: database.url, node, clock: systemClock, log, meter }),
    cut: () =>
      query(
        database.url,
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE application_name = 'polylog bus' AND datname = current_database()`,
      ),
    heal: async () => {},
    stop: () => database.drop(),
  }
})

test('a connection that is dead without an error is noticed and made again', async () => {
  const database = await newStoreDatabase()
  const gate = await gateOf(database.url)
  const clock = manualClock()
  let reconnects = 0
  const missed = Promise.withResolvers<void>()
  const bus = await openPostgresBus({ url: gate.url, node: 'n', clock, log })
  bus.listen({
    announced: () => {},
    signalled: () => {},
    missed() {
      reconnects += 1
      missed.resolve()
    },
  })
  gate.freeze()
  // Checked, not answered, connected again.
  for (const ms of [10_000, 5_000, 100]) await clock.advance(ms)
  await missed.promise
  assert.equal(gate.attempts, 2)
  assert.equal(reconnects, 1)
  await bus.close()
  await gate.close()
  await database.drop()
})

test('a connection pooler that delivers no notifications is refused at the start', async () => {
  const database = await newStoreDatabase()
  const gate = await gateOf(database.url, { answers: withoutNotifications })
  const clock = manualClock()
  const refusals: unknown[] = []
  void openPostgresBus({ url: gate.url, node: 'n', clock, log }).catch((error: unknown) => refusals.push(error))
  // Time goes on as soon as the check waits for its answer.
  while (refusals.length === 0) await clock.advance(clock.pending === 0 ? 0 : 5_000)
  const [refusal] = refusals
  assert.ok(refusal instanceof AppError)
  assert.equal(refusal.code, 'config_invalid')
  assert.match(refusal.message, /connection pooler.*session mode, or set POLYLOG_BUS/)
  assert.equal(clock.pending, 0)
  await gate.close()
  await database.drop()
})

test('what other programs send on the channel is ignored', async () => {
  const database = await newStoreDatabase()
  const bus = await openPostgresBus({ url: database.url, node: 'n', clock: systemClock, log })
  const heard: string[] = []
  const done = new Promise<void>((resolve) => {
    bus.listen({
      announced: (runId) => heard.push(runId),
      signalled(runId) {
        heard.push(runId ?? '')
        resolve()
      },
      missed: () => {},
    })
  })
  for (const message of ['', 'x', '[]', '{"from":"m"}', 'null', '{"from":"m","at":1,"announced":{},"signalled":["r"]}'])
    await query(database.url, `SELECT pg_notify('polylog_hints', '${message}')`)
  await done
  assert.deepEqual(heard, ['r'])
  await bus.close()
  await database.drop()
})
