import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../test/support/manual-clock.ts'
import { rateLimitStore, RateWindows } from './rate-windows.ts'

function counterOn(clock: ReturnType<typeof manualClock>) {
  const store = new (rateLimitStore(new RateWindows(clock)))()
  return (key: string) => {
    let counted: { current: number; ttl: number } | undefined
    store.incr(key, (_error, window) => (counted = window))
    return counted
  }
}

test('a window counts each caller, and begins anew when it is over', async () => {
  const clock = manualClock()
  const count = counterOn(clock)

  assert.deepEqual(count('a'), { current: 1, ttl: 60_000 })
  await clock.advance(20_000)
  assert.deepEqual(count('a'), { current: 2, ttl: 40_000 })
  assert.deepEqual(count('b'), { current: 1, ttl: 60_000 })
  await clock.advance(40_000)
  assert.deepEqual(count('a'), { current: 1, ttl: 60_000 })
})

test('a system clock that is set back or forward changes no window', () => {
  const clock = manualClock()
  const count = counterOn(clock)
  count('a')

  clock.set(-3_600_000)
  assert.deepEqual(count('a'), { current: 2, ttl: 60_000 })
  clock.set(7_200_000)
  assert.deepEqual(count('a'), { current: 3, ttl: 60_000 })
})

test('the table is bounded: the callers that were quiet longest are forgotten first', () => {
  const count = counterOn(manualClock())
  count('first')
  for (let caller = 0; caller < 10_000; caller += 1) {
    count('busy')
    count(`caller ${caller}`)
  }

  assert.equal(count('first')?.current, 1)
  assert.equal(count('busy')?.current, 10_001)
})
