// The threads of fs_grep: how many there are, and how a search is stopped before it is done.

import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { getPriority } from 'node:os'
import { test, type TestContext } from 'node:test'
import { manualClock } from '../../../test/support/manual-clock.ts'
import { SearchPool, type SearchPoolOptions } from './search-pool.ts'

/** Keeps its thread busy for minutes; the engine is linear, and this is the largest factor that it allows. */
const slow = { source: '(a|b)*a(a|b){150}[^ab]', ignoreCase: false, text: 'ab'.repeat(5_000_000), hitsMax: 1 }
const quick = { source: 'b+', ignoreCase: true, text: 'a\naBB\n', hitsMax: 10 }
const hit = [{ line: 2, column: 2, preview: 'aBB' }]
const calm = new AbortController().signal

function pool(t: TestContext, options: Partial<SearchPoolOptions> = {}) {
  const clock = manualClock()
  const opened = new SearchPool({ clock, threads: 2, ...options })
  t.after(() => opened.close())
  return { clock, pool: opened }
}

test('a search is answered from a thread, which is then used again', async (t) => {
  const { pool: searches } = pool(t)

  assert.deepEqual(await searches.search(quick, calm), hit)
  assert.deepEqual(await searches.search(quick, calm), hit)
  assert.equal(searches.threads, 1)
})

const notLinux = process.platform === 'linux' ? false : 'only Linux has priorities of single threads'

test('the thread of a search goes after the main thread', { skip: notLinux }, async (t) => {
  const threads = () => readdirSync('/proc/self/task')
  const before = new Set(threads())
  const { pool: searches } = pool(t)

  assert.deepEqual(await searches.search(quick, calm), hit)
  // Node may have started threads of its own meanwhile.
  const started = threads().filter((id) => !before.has(id))
  const priorities = started.map((id) => getPriority(Number(id)))
  assert.ok(priorities.includes(Math.min(19, getPriority() + 5)), `${priorities.join()} beside ${getPriority()}`)
})

test('however many searches there are, there are only so many threads', async (t) => {
  const { pool: searches } = pool(t)

  const all = Array.from({ length: 30 }, () => searches.search(quick, calm))
  assert.equal(searches.threads, 2)
  for (const hits of await Promise.all(all)) assert.deepEqual(hits, hit)
  assert.equal(searches.threads, 2)
})

test('a search that works too long is ended with its thread, and the next one gets another', async (t) => {
  const { clock, pool: searches } = pool(t, { threads: 1, workMs: 5_000 })
  const endless = assert.rejects(searches.search(slow, calm), { code: 'file_refused', message: /takes too long/ })
  const next = searches.search(quick, calm)

  await clock.advance(5_000)

  await endless
  assert.deepEqual(await next, hit)
})

test('a search that waits too long is answered, and so is one that finds the queue full', async (t) => {
  const { clock, pool: searches } = pool(t, { threads: 1, queueMax: 1, waitMs: 1_000, workMs: 60_000 })
  const endless = searches.search(slow, calm).catch((error: unknown) => error)
  const waiting = assert.rejects(searches.search(quick, calm), { message: /Too many searches/ })

  await assert.rejects(searches.search(quick, calm), { message: /Too many searches/ })
  await clock.advance(1_000)
  await waiting

  await searches.close()
  assert.match(String(await endless), /shutting down/)
})

test('an abort ends a search that is at work, and one that waits', async (t) => {
  const { pool: searches } = pool(t, { threads: 1 })
  const stop = new AbortController()
  const working = assert.rejects(searches.search(slow, stop.signal), /time is up/)
  const waiting = assert.rejects(searches.search(quick, stop.signal), /time is up/)

  stop.abort(new Error('time is up'))

  await Promise.all([working, waiting])
  assert.deepEqual(await searches.search(quick, calm), hit)
})

test('the main thread goes on while a search is at work', async (t) => {
  const { clock, pool: searches } = pool(t, { threads: 1, workMs: 5_000 })
  const endless = assert.rejects(searches.search(slow, calm), /takes too long/)
  let turns = 0
  while (turns < 100) {
    await new Promise((resolve) => setImmediate(resolve))
    turns += 1
  }
  await clock.advance(5_000)

  await endless
  assert.equal(turns, 100)
})
