import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../test/support/manual-clock.ts'
import { createLifecycle, type LifecycleDependencies } from './lifecycle.ts'

/** Dependencies that write down in which order they were used. */
function rig(changes: (step: (name: string) => void) => Partial<LifecycleDependencies> = () => ({})) {
  const clock = manualClock()
  const steps: string[] = []
  const step = (name: string) => void steps.push(name)
  const does = (name: string) => async () => step(name)
  const quiet = { warn() {}, error() {} } as never
  const dependencies: LifecycleDependencies = {
    clock,
    log: quiet,
    readiness: { drain: () => step('readiness.drain') },
    stopDelayMs: 0,
    listen: async () => {
      step('listen')
      return 'http://here'
    },
    scheduler: { start: () => step('scheduler.start'), drain: does('scheduler.drain') },
    settle: does('settle'),
    runs: { refuseNewRuns: () => step('runs.refuse') },
    retention: { stop: () => step('retention.stop') },
    hooks: { settled: does('hooks.settled') },
    streams: { endAll: () => step('streams.end') },
    server: { close: does('server.close'), closeAllConnections: () => step('server.cut') },
    tools: { close: does('tools.close') },
    store: { close: does('store.close') },
    ...changes(step),
  }
  return { app: createLifecycle(dependencies), steps, clock }
}

const closingParts = [
  'runs.refuse',
  'retention.stop',
  'scheduler.drain',
  'streams.end',
  'server.close',
  'hooks.settled',
  'tools.close',
  'store.close',
]
const closing = ['readiness.drain', ...closingParts]

test('a start listens before unfinished runs go on, and answers with the address', async () => {
  const { app, steps } = rig()

  assert.equal(await app.start(), 'http://here')
  assert.deepEqual(steps, ['listen', 'scheduler.start', 'settle'])
})

test('a stop refuses new runs first, lets readers see the end, and closes the store last', async () => {
  const { app, steps, clock } = rig()
  await app.start()
  steps.length = 0
  await app.stop()

  assert.deepEqual(steps, closing)
  assert.equal(clock.pending, 0, 'no timer is left')
})

test('a stop first makes the server not ready, and takes requests for a moment if so configured', async () => {
  const { app, steps, clock } = rig(() => ({ stopDelayMs: 5000 }))
  await app.start()
  steps.length = 0
  const stopped = app.stop()
  await clock.advance(4999)
  assert.deepEqual(steps, ['readiness.drain'])
  await clock.advance(1)
  await stopped

  assert.deepEqual(steps, closing)
})

test('stopping twice closes everything once, and both calls wait for it', async () => {
  const drained = Promise.withResolvers<void>()
  const { app, steps } = rig((step) => ({
    scheduler: {
      start: () => {},
      drain: () => {
        step('scheduler.drain')
        return drained.promise
      },
    },
  }))
  await app.start()
  steps.length = 0
  const both = Promise.all([app.stop(), app.stop()])
  drained.resolve()
  await both
  await app.stop()

  assert.deepEqual(steps, closing)
})

test('a start that cannot listen closes everything, so that no lock and no process is left, and says why', async () => {
  const { app, steps } = rig((step) => ({
    listen: async () => {
      step('listen')
      throw new Error('port taken')
    },
    tools: {
      close: async () => {
        step('tools.close')
        throw new Error('a tool hangs')
      },
    },
  }))

  await assert.rejects(app.start(), /port taken/)
  assert.deepEqual(steps, ['listen', ...closingParts])
  await app.stop()
  assert.deepEqual(steps, ['listen', ...closingParts], 'nothing is closed twice')
})

test('a stop during the start waits for it, and then stops all of it', async () => {
  const listening = Promise.withResolvers<string>()
  const { app, steps } = rig(() => ({ listen: () => listening.promise }))
  const started = app.start()
  const stopped = app.stop()
  assert.deepEqual(steps, [])
  listening.resolve('http://here')
  await Promise.all([started, stopped])

  assert.deepEqual(steps, ['scheduler.start', 'settle', ...closing])
})

test('a stop before any start closes what is open, and a start after it is refused', async () => {
  const { app, steps } = rig()
  await app.stop()

  assert.deepEqual(steps, closing)
  await assert.rejects(app.start(), /was stopped/)
})

test('a part that cannot be stopped does not keep the others open, and the stop fails', async () => {
  const { app, steps, clock } = rig((step) => ({
    scheduler: {
      start: () => {},
      drain: async () => {
        step('scheduler.drain')
        throw new Error('stuck')
      },
    },
  }))
  await app.start()
  steps.length = 0

  await assert.rejects(app.stop(), /not complete/)
  assert.deepEqual(steps, closing)
  assert.equal(clock.pending, 0, 'no timer is left')
})

test('tools that do not end are waited for only so long, and readers that do not leave are cut', async () => {
  const closed = Promise.withResolvers<void>()
  const { app, steps, clock } = rig((step) => ({
    scheduler: { start: () => {}, drain: () => new Promise(() => {}) },
    server: {
      close: () => closed.promise,
      closeAllConnections: () => {
        step('server.cut')
        closed.resolve()
      },
    },
  }))
  await app.start()
  const stopped = app.stop()
  await clock.advance(11_999)
  assert.equal(steps.includes('streams.end'), false)
  await clock.advance(1)
  assert.equal(steps.at(-1), 'streams.end')
  await clock.advance(3_000)
  await stopped

  assert.deepEqual(steps.slice(-4), ['server.cut', 'hooks.settled', 'tools.close', 'store.close'])
  assert.equal(clock.pending, 0)
})

test('comparisons that cannot be settled do not stop the start', async () => {
  const { app } = rig(() => ({ settle: () => Promise.reject(new Error('no')) }))

  assert.equal(await app.start(), 'http://here')
})
