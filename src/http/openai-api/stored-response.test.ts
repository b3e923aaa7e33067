import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RunEvent } from '../../journal/event.ts'
import { responsesUpTo } from './stored-response.ts'

const parked = (seq: number): RunEvent => ({
  seq,
  at: 1,
  attempt: 1,
  type: 'run.state',
  data: { from: 'running', to: 'waiting_user', trigger: 'turn.needs_input' },
})

test('the responses of a run are counted up to an event, with a turn for other requests between two pages', async () => {
  let turns = 0
  const turnsAtPage: number[] = []
  const reader = {
    // One event a page, of a run that has ten.
    readEvents: async (_runId: string, after: number) => {
      turnsAtPage.push(turns)
      setImmediate(() => (turns += 1))
      return { events: [parked(after + 1)], skipped: 0, nextAfter: after + 1, atHead: after === 9 }
    },
  }

  assert.equal(await responsesUpTo(reader, 'r', 3), 3)
  assert.deepEqual(turnsAtPage, [0, 1, 2])
})
