import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { manualClock } from '../../test/support/manual-clock.ts'
import { currentActivity, withActivity } from './activity.ts'
import { sharedTimers } from './shared-timers.ts'

test('each timer fires once at its own time unless it was cancelled, whatever is set and cancelled around it', async () => {
  const change = fc.record({
    waitMs: fc.nat(5),
    delayMs: fc.nat(30),
    cancels: fc.option(fc.nat(20), { nil: undefined }),
    again: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(change, { maxLength: 20 }), async (changes) => {
      const clock = manualClock()
      const { after } = clock
      const timers = sharedTimers(clock)
      const fired: string[] = []
      const expected: string[] = []
      const set = changes.map(() => [] as { cancel(): void }[])
      for (const [index, { waitMs, delayMs, cancels, again }] of changes.entries()) {
        await clock.advance(waitMs)
        for (const [name, log] of [
          ['shared', fired],
          ['own', expected],
        ] as const) {
          const start = name === 'shared' ? timers.after.bind(timers) : after
          const note = () => log.push(`${index} at ${clock.monotonic()}`)
          set[index]?.push(start(delayMs, () => void (note(), again && set[index]?.push(start(7, note)))))
        }
        if (cancels !== undefined) for (const timer of set[cancels] ?? []) timer.cancel()
      }
      await clock.advance(100)

      assert.deepEqual(fired.sort(), expected.sort())
      assert.equal(clock.pending, 0)
    }),
    { numRuns: 60 },
  )
})

test('any number of timers is one timer of the clock, which is gone with the last of them', async () => {
  const clock = manualClock()
  const set = Array.from({ length: 100 }, (_, index) => sharedTimers(clock).after(1000 - index, () => {}))
  assert.equal(clock.pending, 1)
  for (const timer of set) timer.cancel()
  assert.equal(clock.pending, 0)
})

test('a timer fires outside of the activity in which the timer of the clock was set', async () => {
  const clock = manualClock()
  let seen: unknown = 'nothing'
  withActivity({ route: 'GET /' }, () => sharedTimers(clock).after(5, () => (seen = currentActivity())))
  await clock.advance(5)
  assert.equal(seen, undefined)
})
