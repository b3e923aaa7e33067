// The fold that computes the state of a run: the result is the same live and after a restart,
// at every event of every scenario.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { JournalBuilder } from '../../test/scenarios/journal-builder.ts'
import { scenarioNamed, scenarios } from '../../test/scenarios/scenarios.ts'
import type { RunEvent } from './event.ts'
import {
  applyEvent,
  checkTransition,
  foldRun,
  newRunState,
  openCalls,
  openInteractions,
  specOf,
  statusOf,
} from './run-state.ts'

function stateOf(tell: (journal: JournalBuilder) => JournalBuilder) {
  return foldRun(tell(new JournalBuilder().accepted('Hello.').running()).events)
}

describe('the fold of a run', () => {
  for (const { name, events } of scenarios) {
    it(`of “${name}” is the same live, event by event, and after a restart, from any event on`, () => {
      const live = newRunState()
      for (const [index, event] of events.entries()) {
        checkTransition(live.phase, event)
        applyEvent(live, event)

        assert.deepEqual(foldRun(events.slice(0, index + 1)), live)
      }
      assert.equal(live.phase, 'ended')
      assert.equal(live.lastSeq, events.length)
    })
  }

  it('does not change the events that it folds', () => {
    const { events } = scenarioNamed('unknown outcome')
    const before = structuredClone(events)

    foldRun(events)

    assert.deepEqual(events, before)
  })

  it('refuses an event that the table does not allow', () => {
    const state = foldRun(scenarioNamed('plain answer').events)

    assert.throws(() => checkTransition(state.phase, { type: 'diagnostic', data: { code: 'late', message: '' } }), {
      code: 'transition_refused',
    })
  })

  it('keeps the text of a torn step, and forgets it if it was superseded', () => {
    const torn = stateOf((journal) =>
      journal.asks(1, 'message-1').says('message-1', 'Roses ', 'are ').restarted().asks(1, 'message-other'),
    )
    assert.equal(torn.steps.length, 1)
    assert.deepEqual(
      [torn.steps[0]?.messageId, torn.steps[0]?.text, torn.steps[0]?.finished],
      ['message-1', 'Roses are ', false],
    )

    const superseded = stateOf((journal) =>
      journal
        .asks(1, 'message-1')
        .says('message-1', 'Roses ')
        .restarted()
        .asks(1, 'message-1')
        .message('message-1', 'Roses ', 1, 'superseded'),
    )
    assert.deepEqual([superseded.steps[0]?.messageId, superseded.steps[0]?.text], ['', ''])

    const afterwards = foldRun(scenarioNamed('superseded after restart').events)
    assert.deepEqual([afterwards.steps[0]?.messageId, afterwards.steps[0]?.text], ['message-2', 'Violets are blue.'])
  })

  it('knows a call as not started again once its unknown outcome was confirmed, and with which arguments', () => {
    const message = { to: 'bob' }
    const started = stateOf((journal) =>
      journal
        .asks(1, 'message-1')
        .calls('call-1', 'send', message, { effect: 'unsafe' })
        .stepDone(1, 'message-1', 1)
        .starts('call-1', message)
        .restarted(),
    )
    assert.deepEqual([started.calls.get('call-1')?.started, started.calls.get('call-1')?.starts], [true, 1])

    const journal = new JournalBuilder().accepted('Hello.').running()
    journal
      .asks(1, 'message-1')
      .calls('call-1', 'send', message, { effect: 'unsafe' })
      .stepDone(1, 'message-1', 1)
      .starts('call-1', message)
      .restarted()
    journal.confirmation('confirmation-1', 'call-1', message, { outcome: 'unknown' })
    assert.deepEqual(
      openInteractions(foldRun(journal.events)).map(({ outcome }) => outcome),
      ['unknown'],
    )
    journal
      .parks()
      .resolved('confirmation-1', 'confirmed', { input: { to: 'eve' } })
      .unparks()
    const confirmed = foldRun(journal.events).calls.get('call-1')
    assert.deepEqual(
      [confirmed?.started, confirmed?.decision, confirmed?.askedUnknown, confirmed?.input],
      [false, 'confirmed', true, { to: 'eve' }],
    )
  })

  it('counts working time only up to an orderly stop, and not what a crash interrupted', () => {
    const parked = stateOf((journal) =>
      journal
        .asks(1, 'message-1')
        .calls('call-1', 'send', {})
        .stepDone(1, 'message-1', 1)
        .confirmation('confirmation-1', 'call-1', {})
        .parks(),
    )
    assert.ok(parked.activeMs > 0)
    assert.equal(parked.runningSince, undefined)

    const crashed = stateOf((journal) => journal.asks(1, 'message-1').says('message-1', 'a', 'b', 'c').restarted())
    assert.equal(crashed.activeMs, 0)
    assert.equal(crashed.attempt, 2)
  })

  it('gives the status of the run at every moment, and the calls and questions that are open', () => {
    const { events } = scenarioNamed('tool confirmed')
    const seen = [...new Set(events.map((_, index) => statusOf(foldRun(events.slice(0, index)))))]
    assert.deepEqual(seen, ['queued', 'running', 'waiting_user', 'succeeded'])

    const asked = events.findIndex(({ type }) => type === 'input.required')
    const open = foldRun(events.slice(0, asked + 1))
    assert.deepEqual([openCalls(open).length, openInteractions(open).length], [1, 1])
    const end = foldRun(events)
    assert.deepEqual([openCalls(end), openInteractions(end)], [[], []])
  })

  it('survives journals with missing rows, and fails only when a missing value is needed', () => {
    for (const { events } of scenarios) {
      for (let gone = 0; gone < events.length; gone += 1) {
        const rest: RunEvent[] = events.filter((_, index) => index !== gone)
        assert.doesNotThrow(() => foldRun(rest))
      }
    }
    assert.throws(() => specOf(newRunState()), { code: 'run_unrecoverable' })
  })
})
