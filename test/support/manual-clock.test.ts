import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from './manual-clock.ts'

test('time stands still until it is moved', async () => {
  const clock = manualClock(1000)

  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(clock.now(), 1000)
  await clock.advance(250)

  assert.equal(clock.now(), 1250)
})

test('due timers fire in the order of their times, then of their setting, each at its own time', async () => {
  const clock = manualClock(0)
  const fired: string[] = []
  clock.after(30, () => fired.push(`c@${clock.now()}`))
  clock.after(10, () => fired.push(`a@${clock.now()}`))
  clock.after(10, () => fired.push(`b@${clock.now()}`))
  clock.after(31, () => fired.push('too early'))

  await clock.advance(30)

  assert.deepEqual(fired, ['a@10', 'b@10', 'c@30'])
  assert.equal(clock.pending, 1)
})

test('a cancelled timer never fires', async () => {
  const clock = manualClock()
  let fired = false
  const timer = clock.after(5, () => (fired = true))

  timer.cancel()
  await clock.advance(10)

  assert.equal(fired, false)
  assert.equal(clock.pending, 0)
})

test('timers that are set by promises on the way fire within the same advance', async () => {
  const clock = manualClock(0)
  const sleep = (ms: number) => new Promise<void>((resolve) => void clock.after(ms, resolve))
  const at: number[] = []
  const work = (async () => {
    await Promise.resolve()
    for (let round = 0; round < 3; round++) {
      await sleep(10)
      at.push(clock.now())
    }
  })()

  await clock.advance(25)
  assert.deepEqual(at, [10, 20])
  await clock.advance(5)
  await work

  assert.deepEqual(at, [10, 20, 30])
})

test('a clock that is set changes the time of day, and neither the monotonic time nor the timers', async () => {
  const clock = manualClock(1000)
  let fired = false
  clock.after(50, () => (fired = true))

  clock.set(-600)
  assert.deepEqual([clock.now(), clock.monotonic()], [400, 1000])
  await clock.advance(49)
  assert.equal(fired, false)
  await clock.advance(1)

  assert.equal(fired, true)
  assert.deepEqual([clock.now(), clock.monotonic()], [450, 1050])
})
