// How a follower catches up: what other requests get of the event loop meanwhile. That it
// misses and repeats nothing is in test/properties/follower.test.ts.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../test/support/manual-clock.ts'
import type { RunEvent } from '../journal/event.ts'
import { Follower, type FollowedStore } from './follower.ts'
import { createProcessBus } from './live-bus.ts'

const delta = (seq: number): RunEvent => ({
  seq,
  at: 1,
  attempt: 1,
  type: 'text.delta',
  data: { messageId: 'm', text: 'a' },
})

/** A run without an end, with `pages` events, one on each page. It answers at once, as an embedded database does. */
function storeOf(pages: number): FollowedStore {
  return {
    readEvents: async (_runId, after) => {
      const events = after < pages ? [delta(after + 1)] : []
      const nextAfter = after + events.length
      return { events, skipped: 0, nextAfter, atHead: nextAfter === pages }
    },
    readRun: async () => undefined,
  }
}

test('other requests get a turn of the event loop between two pages of a replay', async () => {
  const follower = new Follower('r', 0, storeOf(4), createProcessBus(manualClock()), manualClock())
  let turns = 0
  const turnsAtPage: number[] = []

  for (let batch = await follower.next(); batch !== null; batch = await follower.next()) {
    turnsAtPage.push(turns)
    setImmediate(() => (turns += 1))
  }

  assert.deepEqual(turnsAtPage, [0, 1, 2, 3])
})

test('the last page is not followed by a turn: many readers of short runs would wait for each other', async () => {
  const follower = new Follower('r', 0, storeOf(1), createProcessBus(manualClock()), manualClock())
  let turns = 0

  await follower.next()
  setImmediate(() => (turns += 1))

  assert.equal(await follower.next(), null)
  assert.equal(turns, 0)
})

test('a follower that is closed between two pages reads no more', async () => {
  const follower = new Follower('r', 0, storeOf(3), createProcessBus(manualClock()), manualClock())

  await follower.next()
  const second = follower.next()
  follower.close()

  assert.equal(await second, null)
})
