import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../test/support/manual-clock.ts'
import { AppError } from '../errors/app-error.ts'
import { Readiness } from './readiness.ts'

function rig(check: () => Promise<void> = async () => {}) {
  const clock = manualClock()
  const scheduler = { isDamaged: false }
  let checks = 0
  const store = {
    check() {
      checks += 1
      return check()
    },
  }
  return { clock, scheduler, readiness: new Readiness({ store, scheduler, clock }), checks: () => checks }
}

test('a server is not ready as soon as it drains, also for a probe that is under way', async () => {
  const answer = Promise.withResolvers<void>()
  const { readiness } = rig(() => answer.promise)
  const underWay = readiness.check()
  readiness.drain()
  answer.resolve()

  await assert.rejects(underWay, { code: 'shutting_down' })
  await assert.rejects(readiness.check(), { code: 'shutting_down' })
})

test('all probes of a second share one check of the database', async () => {
  const { readiness, clock, checks } = rig()
  for (let probe = 0; probe < 50; probe += 1) await readiness.check()
  assert.equal(checks(), 1)
  await clock.advance(1000)
  await readiness.check()

  assert.equal(checks(), 2)
  assert.equal(clock.pending, 0)
})

test('a database that fails, does not answer in time, or is damaged makes the server not ready, with the reason', async () => {
  const failing = rig(async () => {
    throw new AppError('store_unavailable', 'The disk is full.')
  })
  await assert.rejects(failing.readiness.check(), { code: 'store_unavailable', message: 'The disk is full.' })

  const silent = rig(() => new Promise(() => {}))
  const probe = assert.rejects(silent.readiness.check(), { code: 'store_unavailable', message: /within 2 s/ })
  await silent.clock.advance(2000)
  await probe

  const damaged = rig()
  damaged.scheduler.isDamaged = true
  await assert.rejects(damaged.readiness.check(), { code: 'store_damaged' })
})
