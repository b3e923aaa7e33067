// Any prefix of a legal journal can be ended, once, and is then a history that a
// provider accepts.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { kindOf } from '../app/run-kinds.ts'
import { scenarios } from '../../test/scenarios/scenarios.ts'
import { checkEvent } from '../journal/event-codec.ts'
import type { NewEvent, RunEvent } from '../journal/event.ts'
import {
  applyEvent,
  checkTransition,
  foldRun,
  openCalls,
  openInteractions,
  type RunState,
} from '../journal/run-state.ts'
import { type RowChanges, foldRows } from './row-folds.ts'
import { type Ending, endingEvents } from './run-ending.ts'

let minted = 0
const ids = () => `minted-${++minted}`

/** Writes the ending under the checks of the real writer. */
function end(events: readonly RunEvent[], ending: Ending): { state: RunState; written: NewEvent[]; rows: RowChanges } {
  const state = foldRun(events)
  const written = endingEvents(state, ending, ids)
  const rows: RowChanges = {}
  for (const event of written) {
    checkEvent(event)
    checkTransition(state.phase, event)
    const numbered: RunEvent = { seq: state.lastSeq + 1, at: 1, attempt: state.attempt, ...event }
    applyEvent(state, numbered)
    foldRows('run-1', state, numbered, rows, kindOf)
  }
  return { state, written, rows }
}

const cancel: Ending = { status: 'canceled', by: 'ada', reason: null }
const failure: Ending = { status: 'failed', error: { code: 'internal_error', message: 'It broke.' } }

/** Every moment of every scenario at which a run is still open. */
const moments = scenarios.flatMap(({ name, events }) =>
  events.flatMap((_, index) => {
    const prefix = events.slice(0, index + 1)
    const { phase } = foldRun(prefix)
    return phase === 'queued' || phase === 'running' || phase === 'waiting_user'
      ? [{ name: `${name}, event ${index + 1}`, prefix }]
      : []
  }),
)

describe('ending a run', () => {
  for (const ending of [cancel, failure]) {
    it(`as ${ending.status} is allowed at every moment of every scenario, and leaves nothing open`, () => {
      for (const { name, prefix } of moments) {
        const { state, written } = end(prefix, ending)

        assert.equal(state.phase, 'ended', name)
        assert.equal(state.ended?.status, ending.status)
        assert.equal(written.filter(({ type }) => type === 'run.ended').length, 1)
        assert.equal(written.at(-1)?.type, 'run.ended')
        assert.deepEqual([openCalls(state), openInteractions(state)], [[], []], name)
      }
    })
  }

  it('gives every call exactly one result, so that a provider accepts the history', () => {
    for (const { name, prefix } of moments) {
      const { written } = end(prefix, cancel)

      const all = [...prefix, ...written]
      const called = all.flatMap((event) => (event.type === 'tool.called' ? [event.data.callId] : []))
      const done = all.flatMap((event) => (event.type === 'tool.done' ? [event.data.callId] : []))
      assert.deepEqual(done.toSorted(), called.toSorted(), name)
    }
  })

  it('never reports an unsafe call that was under way as cancelled: its outcome is unknown', () => {
    for (const { name, prefix } of moments) {
      const before = foldRun(prefix)
      for (const event of end(prefix, cancel).written) {
        if (event.type !== 'tool.done') continue
        const call = before.calls.get(event.data.callId)
        const mayHaveHappened =
          prefix.some((earlier) => earlier.type === 'tool.started' && earlier.data.callId === call?.callId) &&
          call?.effect === 'unsafe'
        assert.equal(event.data.outcome, mayHaveHappened ? 'unknown' : 'cancelled', name)
      }
    }
  })

  it('closes unfinished text as abandoned, with exactly what was shown, and hides it from the history', () => {
    let abandoned = 0
    for (const { name, prefix } of moments) {
      const open = foldRun(prefix).steps.at(-1)
      const { written, rows } = end(prefix, cancel)
      const closed = written.find((event) => event.type === 'message.done')
      if (open === undefined || open.finished || open.text === '') {
        assert.equal(closed, undefined, name)
        continue
      }
      abandoned += 1
      assert.deepEqual(
        [closed?.data.text, closed?.data.state, closed?.data.messageId],
        [open.text, 'abandoned', open.messageId],
        name,
      )
      assert.deepEqual(
        rows.messages?.filter(({ role }) => role === 'assistant').map(({ state }) => state),
        ['abandoned'],
      )
    }
    assert.ok(abandoned > 5)
  })

  it('gives the lease back and closes the questions in the same write', () => {
    for (const { name, prefix } of moments) {
      const questions = openInteractions(foldRun(prefix)).map(({ interactionId }) => interactionId)
      const { rows } = end(prefix, cancel)

      assert.deepEqual([rows.run?.status, rows.run?.release, rows.run?.wakeAt], ['canceled', true, null], name)
      assert.deepEqual(
        rows.interactionUpdates?.filter(({ closePending }) => closePending === true).map(({ id }) => id) ?? [],
        questions,
      )
    }
  })

  it('says who cancelled and why, and what failed', () => {
    const { prefix } = moments[0] as (typeof moments)[number]

    const cancelled = end(prefix, { status: 'canceled', by: 'ada', reason: 'enough' }).state.ended
    assert.deepEqual([cancelled?.by, cancelled?.reason], ['ada', 'enough'])
    assert.deepEqual(end(prefix, failure).state.ended?.error, { code: 'internal_error', message: 'It broke.' })
  })

  it('as succeeded names the last finished message, or the output that it is given', () => {
    const answered = scenarios.find(({ name }) => name === 'one tool')?.events ?? []
    const open = answered.slice(0, answered.findLastIndex(({ type }) => type === 'step.done') + 1)
    const last = foldRun(open).steps.at(-1)
    const endedAs = (events: readonly RunEvent[], ending: Ending) =>
      endingEvents(foldRun(events), ending, ids).at(-1)?.data

    assert.deepEqual(endedAs(open, { status: 'succeeded' }), {
      status: 'succeeded',
      output: last?.text,
      messageId: last?.messageId,
    })
    assert.deepEqual(endedAs(open, { status: 'succeeded', output: 'mine' }), {
      status: 'succeeded',
      output: 'mine',
      messageId: last?.messageId,
    })
    assert.deepEqual(endedAs(answered.slice(0, 2), { status: 'succeeded' }), { status: 'succeeded', output: '' })
  })

  it('says why the state changed: a deadline of its own only where it is given', () => {
    const triggerOf = (ending: Ending) =>
      endingEvents(foldRun((moments[0] ?? assert.fail()).prefix), ending, ids).flatMap((event) =>
        event.type === 'run.state' ? [event.data.trigger] : [],
      )

    assert.deepEqual(triggerOf({ ...failure, trigger: 'upload.expired' }), ['upload.expired'])
    assert.deepEqual(triggerOf(failure), ['restart.reconcile_failed'])
    assert.deepEqual(triggerOf(cancel), ['run.canceled'])
  })

  it('distinguishes a call that was cancelled from one that may have happened, in its message and its code', () => {
    for (const { name, prefix } of moments) {
      const { written } = end(prefix, cancel)
      for (const event of written) {
        if (event.type !== 'tool.done') continue
        const unknown = event.data.outcome === 'unknown'
        assert.equal(event.data.error?.code, unknown ? 'tool_outcome_unknown' : 'tool_cancelled', name)
        assert.equal(event.data.summary.includes('may have happened'), unknown, name)
        assert.equal(event.data.truncated, false)
      }
    }
  })
})
