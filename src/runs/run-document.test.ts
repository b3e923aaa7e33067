// A document with many events is written and compared in several turns of the event loop. What may be in one is in
// test/cli/transfer.test.ts.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { turnsDuring } from '../../test/support/turns-during.ts'
import type { RunEvent } from '../journal/event.ts'
import { documentText, isSameRun, type RunDocument } from './run-document.ts'

function documentOf(events: number): RunDocument {
  return {
    format: 'polylog-run',
    version: 1,
    conversation: null,
    run: {
      id: '01KA0000000000000000000000',
      family: 'agent',
      agentId: 'a',
      status: 'succeeded',
      attempt: 1,
      createdAt: 1,
      startedAt: 1,
      endedAt: 2,
      error: null,
      engine: null,
      usage: null,
    },
    messages: [],
    interactions: [],
    blobs: [],
    events: Array.from({ length: events }, (_, index): RunEvent => ({
      seq: index + 1,
      at: 1,
      attempt: 1,
      type: 'text.delta',
      data: { messageId: 'm', text: `[${index}]` },
    })),
  }
}

test('an exported document is written in parts, with turns for other requests between them', async () => {
  const document = documentOf(10_000)

  const { result: parts, turns } = await turnsDuring(Array.fromAsync(documentText(document)))

  assert.equal(parts.join(''), JSON.stringify(document))
  const longest = Math.max(...parts.map((part) => part.length))
  assert.ok(longest < parts.join('').length / 4, `the longest part has ${longest} characters`)
  assert.ok(turns >= 4, `other requests got ${turns} turns`)
})

test('two documents of a run are compared in parts, too', async () => {
  const here = documentOf(10_000)
  const renamed = { ...documentOf(10_000), conversation: { id: '01KA0000000000000000000001', title: 'new' } }
  const { result, turns } = await turnsDuring(isSameRun(here, renamed))
  assert.equal(result, true)
  assert.ok(turns >= 4, `other requests got ${turns} turns`)

  const other = documentOf(10_000)
  other.events[9_999] = { ...(other.events[9_999] as RunEvent), at: 2 }
  assert.equal(await isSameRun(here, other), false)
  assert.equal(await isSameRun(here, documentOf(9_999)), false)
  assert.equal(await isSameRun(here, { ...documentOf(10_000), blobs: [{ id: 'b', body: '' }] }), false)
})
