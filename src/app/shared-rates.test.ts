import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ManualClock, manualClock } from '../../test/support/manual-clock.ts'
import type { RateHit, RateStore, RateWindow } from '../stores/rate-store.ts'
import { rateWindowMs, type RateCounter } from '../http/rate-windows.ts'
import { SharedRates } from './shared-rates.ts'

/** Windows without an end, whose answers a test can hold back. */
function fakeStore() {
  const sums = new Map<string, number>()
  const statements: RateHit[][] = []
  const held: (() => void)[] = []
  const store: RateStore & { holds: boolean; failure: Error | undefined } = {
    holds: false,
    failure: undefined,
    async addHits(hits) {
      statements.push([...hits])
      if (store.holds) await new Promise<void>((resolve) => held.push(resolve))
      if (store.failure !== undefined) throw store.failure
      return hits.map(({ key, count }): RateWindow => {
        const current = (sums.get(key) ?? 0) + count
        sums.set(key, current)
        return { key, current, leftMs: 1234 }
      })
    },
    async removeOldWindows() {
      return 0
    },
  }
  return { store, statements, answerOne: () => held.shift()?.() }
}

function ratesOn(store: RateStore, clock: ManualClock = manualClock()) {
  const errors: unknown[] = []
  const rates: RateCounter & { close(): void } = new SharedRates({
    store,
    clock,
    onError: (error) => errors.push(error),
  })
  const count = async (key: string) => await rates.count(key)
  return { rates, count, errors, clock }
}

test('the requests of two nodes are one sum', async () => {
  const { store } = fakeStore()
  const one = ratesOn(store).rates
  const two = ratesOn(store).rates

  assert.deepEqual(await one.count('a'), { current: 1, ttl: 1234 })
  assert.deepEqual(await two.count('a'), { current: 2, ttl: 1234 })
  assert.deepEqual(await two.count('b'), { current: 1, ttl: 1234 })
  assert.deepEqual(await one.count('a'), { current: 3, ttl: 1234 })
})

test('requests that come while a statement runs are counted together, each with its own number', async () => {
  const { store, statements, answerOne } = fakeStore()
  store.holds = true
  const { count, clock } = ratesOn(store)
  const first = [count('a'), count('a')]
  await clock.advance(1)
  const next = [count('a'), count('b'), count('a')]
  await clock.advance(1)
  answerOne()
  await clock.advance(1)
  answerOne()

  const currents = async (counted: typeof first) => (await Promise.all(counted)).map(({ current }) => current)
  assert.deepEqual(await currents(first), [1, 2])
  assert.deepEqual(await currents(next), [3, 1, 4])
  assert.deepEqual(statements, [
    [{ key: 'a', count: 2 }],
    [
      { key: 'a', count: 2 },
      { key: 'b', count: 1 },
    ],
  ])
})

test('a slow database delays no request for long: the node counts by itself until it answers', async () => {
  const { store, answerOne } = fakeStore()
  store.holds = true
  const { rates, count, clock } = ratesOn(store)
  const waiting = [count('a')]
  await clock.advance(10)
  waiting.push(count('a'))
  await clock.advance(40)

  assert.deepEqual(await Promise.all(waiting), [
    { current: 1, ttl: rateWindowMs },
    { current: 2, ttl: rateWindowMs - 10 },
  ])
  // Not a moment now, although the statement still runs.
  assert.equal((await rates.count('a')).current, 3)
  store.holds = false
  answerOne()
  await clock.advance(1)
  // What was counted here meanwhile is not lost.
  assert.deepEqual(await rates.count('a'), { current: 4, ttl: 1234 })
})

test('a database that fails is reported once, and the node counts by itself', async () => {
  const { store } = fakeStore()
  store.failure = new Error('gone')
  const { rates, errors } = ratesOn(store)

  assert.equal((await rates.count('a')).current, 1)
  assert.equal((await rates.count('a')).current, 2)
  assert.equal(errors.length, 1)
  store.failure = undefined
  await rates.count('a')
  store.failure = new Error('gone again')
  await rates.count('a')
  assert.equal(errors.length, 2)
})

test('the callers that wait for the database are bounded', async () => {
  const { store } = fakeStore()
  store.holds = true
  const { rates } = ratesOn(store)
  for (let caller = 0; caller < 10_000; caller += 1) void rates.count(`caller ${caller}`)

  assert.ok(!(rates.count('one more') instanceof Promise))
})

test('old windows are removed every minute, in batches, until it is closed', async () => {
  const { store } = fakeStore()
  let old = 2500
  const removed: number[] = []
  const removing: RateStore = {
    ...store,
    async removeOldWindows(limit) {
      const count = Math.min(limit, old)
      old -= count
      removed.push(count)
      return count
    },
  }
  const { rates, clock } = ratesOn(removing)
  await clock.advance(60_000)
  assert.deepEqual(removed, [1000, 1000, 500])
  await clock.advance(60_000)
  assert.equal(removed.length, 4)
  rates.close()
  await clock.advance(120_000)
  assert.equal(removed.length, 4)
})
