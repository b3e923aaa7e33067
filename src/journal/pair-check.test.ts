// Pairs are checked when they are written: every scenario is accepted, for any division of its
// events into batches; an event that closes nothing, or leaves something open, is refused.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { scenarioNamed, scenarios } from '../../test/scenarios/scenarios.ts'
import type { RunEvent } from './event.ts'
import { PairCheck } from './pair-check.ts'
import { applyEvent, newRunState } from './run-state.ts'

/** The first refusal of a journal that is written in batches of `size`. */
function refusalOf(events: readonly RunEvent[], size: number): string | null {
  const state = newRunState()
  for (let from = 0; from < events.length; from += size) {
    const batch = events.slice(from, from + size)
    const check = new PairCheck(state)
    for (const event of batch) {
      const reason = check.refusal(event)
      if (reason !== null) return reason
    }
    for (const event of batch) applyEvent(state, event)
  }
  return null
}

const sizes = [1, 2, 3, 1000]
const { events } = scenarioNamed('tool confirmed')
const without = (type: string) => events.filter((event) => event.type !== type)
const twice = (type: string) => events.flatMap((event) => (event.type === type ? [event, event] : [event]))

describe('pairs in the journal', () => {
  for (const { name, events: story } of scenarios) {
    it(`are kept by “${name}”, in batches of any size`, () => {
      for (const size of sizes) assert.equal(refusalOf(story, size), null, `batches of ${size}`)
    })
  }

  const cases: [what: string, list: readonly RunEvent[], reason: RegExp][] = [
    ['a call that is made twice', twice('tool.called'), /^tool\.called call-1 was written before$/],
    ['a second result', twice('tool.done'), /^tool\.done call-1 closes nothing/],
    ['a result without its call', without('tool.called'), /^tool\.done call-1 closes nothing/],
    ['an end with an open call', without('tool.done'), /^tool\.called call-1 is still open/],
    ['a question that is asked twice', twice('input.required'), /^input\.required confirmation-1 was written before$/],
    ['a second decision', twice('input.resolved'), /^input\.resolved confirmation-1 closes nothing/],
    [
      'a decision that nobody was asked for',
      without('input.required'),
      /^input\.resolved confirmation-1 closes nothing/,
    ],
    ['an end with an open question', without('input.resolved'), /^input\.required confirmation-1 is still open/],
  ]
  for (const [what, list, reason] of cases) {
    it(`refuse ${what}, in batches of any size`, () => {
      for (const size of sizes) assert.match(refusalOf(list, size) ?? 'accepted', reason, `batches of ${size}`)
    })
  }
})
