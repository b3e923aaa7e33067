import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RunEvent } from './event.ts'
import { type EventPage, type EventReader, eventPages, readRunState } from './event-pages.ts'

const delta = (seq: number): RunEvent => ({
  seq,
  at: 1000 + seq,
  attempt: 1,
  type: 'text.delta',
  data: { messageId: 'm', text: `[${seq}]` },
})

/** Gives one page for each entry; `asked` is what it was asked to read after. */
function readerOf(...pages: Omit<EventPage, 'atHead'>[]): EventReader & { asked: number[] } {
  const asked: number[] = []
  return {
    asked,
    readEvents(_runId, afterSeq) {
      asked.push(afterSeq)
      const page = pages[asked.length - 1]
      assert.ok(page !== undefined, 'nothing is read after the last page')
      return Promise.resolve({ ...page, atHead: asked.length === pages.length })
    },
  }
}

test('pages follow each other without a gap, also past rows that cannot be read', async () => {
  const reader = readerOf(
    { events: [delta(1), delta(2)], skipped: 0, nextAfter: 2 },
    { events: [], skipped: 3, nextAfter: 5 },
    { events: [delta(6)], skipped: 0, nextAfter: 6 },
  )
  const seqs: number[] = []

  for await (const page of eventPages(reader, 'r')) seqs.push(...page.events.map(({ seq }) => seq))

  assert.deepEqual(seqs, [1, 2, 6])
  assert.deepEqual(reader.asked, [0, 2, 5])
})

test('other work gets a turn of the event loop between two pages', async () => {
  const reader = readerOf(
    { events: [delta(1)], skipped: 0, nextAfter: 1 },
    { events: [delta(2)], skipped: 0, nextAfter: 2 },
  )
  let turns = 0
  const turnsAtPage: number[] = []

  for await (const _page of eventPages(reader, 'r')) {
    turnsAtPage.push(turns)
    setImmediate(() => (turns += 1))
  }

  assert.deepEqual(turnsAtPage, [0, 1])
})

test('the state of a run counts unreadable rows at its end, so that their numbers are not given out again', async () => {
  const reader = readerOf({ events: [delta(1)], skipped: 2, nextAfter: 3 })

  assert.equal((await readRunState(reader, 'r')).lastSeq, 3)
})
