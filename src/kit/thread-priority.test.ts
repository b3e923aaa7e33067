import assert from 'node:assert/strict'
import { once } from 'node:events'
import { getPriority } from 'node:os'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { manualClock } from '../../test/support/manual-clock.ts'
import { letMainThreadGoBeforeV8, v8ThreadIds } from './thread-priority.ts'

const isLinux = process.platform === 'linux'
const lower = getPriority() + 5

test('a worker thread that lets the main thread go first has a lower priority, and the main thread keeps its own', async () => {
  const before = getPriority()
  const code = `
    const { getPriority } = await import('node:os')
    const { parentPort } = await import('node:worker_threads')
    const { letMainThreadGoFirst } = await import(${JSON.stringify(new URL('./thread-priority.ts', import.meta.url).href)})
    letMainThreadGoFirst()
    parentPort.postMessage(getPriority(0))`
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`))
  const [priority] = (await once(worker, 'message')) as [number]
  await worker.terminate()

  assert.equal(priority, isLinux ? Math.min(19, lower) : before)
  assert.equal(getPriority(), before)
})

test('the threads of V8 go after the main thread half a minute after the start, also if that is asked twice', async () => {
  const before = getPriority()
  const threads = v8ThreadIds()
  if (isLinux) assert.ok(threads.length > 0, 'this version of Node names its threads')
  // Another program may have changed the priority of the main thread alone.
  const priorities = () => threads.map((thread) => getPriority(thread))
  const atFirst = priorities()
  const clock = manualClock()
  letMainThreadGoBeforeV8(clock)
  letMainThreadGoBeforeV8(clock)

  await clock.advance(29_999)
  assert.deepEqual(priorities(), atFirst)
  await clock.advance(1)
  assert.deepEqual(
    priorities(),
    threads.map(() => Math.min(19, lower)),
  )
  assert.equal(getPriority(), before)
})
