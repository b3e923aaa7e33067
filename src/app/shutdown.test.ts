import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../test/support/manual-clock.ts'
import { Shutdown } from './shutdown.ts'

function rig() {
  const clock = manualClock()
  const exits: number[] = []
  const said: string[] = []
  const say = (...words: unknown[]) => void said.push(String(words.at(-1)))
  const log = { info: say, warn: say, error: say } as never
  const stop = Promise.withResolvers<void>()
  let stops = 0
  const shutdown = new Shutdown({ clock, log, exit: (code) => void exits.push(code) })
  const stopOnce = () => {
    stops++
    return stop.promise
  }
  return { clock, exits, said, stop, shutdown, stopOnce, stops: () => stops }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

test('a signal stops once and exits with 0 when the stop is through', async () => {
  const { shutdown, stopOnce, stop, exits, stops } = rig()
  shutdown.stopWith(stopOnce)
  assert.equal(shutdown.requested, false)

  shutdown.onSignal('SIGTERM')
  await turn()
  assert.deepEqual([stops(), exits, shutdown.requested], [1, [], true])
  stop.resolve()
  await turn()

  assert.deepEqual(exits, [0])
})

test('repeats within a second are the same signal, whichever they are', async () => {
  const { shutdown, stopOnce, stop, exits, stops, clock } = rig()
  shutdown.stopWith(stopOnce)
  shutdown.onSignal('SIGINT')
  shutdown.onSignal('SIGINT')
  await clock.advance(999)
  shutdown.onSignal('SIGTERM')
  assert.deepEqual([stops(), exits], [1, []])

  stop.resolve()
  await turn()
  assert.deepEqual(exits, [0])
})

test('a signal after a second ends at once with 1, and the log says so', async () => {
  const { shutdown, stopOnce, exits, said, clock } = rig()
  shutdown.stopWith(stopOnce)
  shutdown.onSignal('SIGINT')
  await clock.advance(1000)
  shutdown.onSignal('SIGINT')

  assert.deepEqual(exits, [1])
  assert.match(said.at(-1) ?? '', /ending at once/)
})

test('a signal during the start stops the server as soon as there is something to stop', async () => {
  const { shutdown, stopOnce, stop, exits, stops } = rig()
  shutdown.onSignal('SIGTERM')
  assert.deepEqual([shutdown.requested, stops()], [true, 0])

  shutdown.stopWith(stopOnce)
  stop.resolve()
  await turn()

  assert.deepEqual([stops(), exits], [1, [0]])
})

test('a stop that fails exits with 1', async () => {
  const { shutdown, stopOnce, stop, exits, said } = rig()
  shutdown.stopWith(stopOnce)
  shutdown.onSignal('SIGTERM')
  stop.reject(new Error('no'))
  await turn()

  assert.deepEqual(exits, [1])
  assert.match(said.at(-1) ?? '', /stop failed/)
})
