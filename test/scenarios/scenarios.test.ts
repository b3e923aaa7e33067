// The tests of the dialects rely on the scenarios, so the builder that checks them is tested too:
// it refuses journals that no run could write.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { decodeEvent, encodeEvent } from '../../src/journal/event-codec.ts'
import { eventTypes } from '../../src/journal/event.ts'
import { JournalBuilder, scenario } from './journal-builder.ts'
import { scenarios } from './scenarios.ts'

describe('scenarios', () => {
  for (const { name, events } of scenarios) {
    it(`“${name}” is a journal that a store could give back`, () => {
      assert.deepEqual(
        events.map(({ seq }) => seq),
        events.map((_, index) => index + 1),
      )
      assert.equal(events[0]?.type, 'run.accepted')
      assert.equal(
        events.findIndex(({ type }) => type === 'run.ended'),
        events.length - 1,
      )
      for (const event of events) assert.deepEqual(decodeEvent(encodeEvent(event)), event)
    })
  }

  it('have names of their own', () => {
    assert.equal(new Set(scenarios.map(({ name }) => name)).size, scenarios.length)
  })

  it('use every event of the vocabulary', () => {
    const used = new Set(scenarios.flatMap(({ events }) => events.map(({ type }) => type)))

    assert.deepEqual(
      eventTypes.filter((type) => !used.has(type)),
      [],
    )
  })

  it('count an attempt each time a run is claimed', () => {
    const unknown = scenarios.find(({ name }) => name === 'unknown outcome')

    assert.deepEqual([...new Set(unknown?.events.map(({ attempt }) => attempt))], [1, 2, 3, 4])
  })
})

describe('the journal builder', () => {
  it('refuses an event that does not fit its schema', () => {
    const journal = new JournalBuilder().accepted('x').running()

    assert.throws(() => journal.add('step.started', { step: 0, messageId: 'm', model: 'demo/demo' }), {
      code: 'event_invalid',
    })
  })

  it('refuses an event that the table of transitions does not allow', () => {
    assert.throws(() => new JournalBuilder().accepted('x').asks(1, 'message-1'), { code: 'transition_refused' })
  })

  it('refuses a result of a call that was not made, or made and finished', () => {
    const journal = new JournalBuilder()
      .accepted('x')
      .running()
      .asks(1, 'm')
      .calls('call-1', 'a', {})
      .returns('call-1', 1)

    assert.throws(() => journal.returns('call-1', 1), /the call call-1 is open/)
    assert.throws(() => journal.returns('call-2', 1), /the call call-2 is open/)
  })

  it('refuses a scenario that does not end, or ends with something left open', () => {
    assert.throws(() => scenario('x', (journal) => journal.accepted('x').running()), /ends with run.ended/)
    assert.throws(
      () =>
        scenario('x', (journal) =>
          journal.accepted('x').running().asks(1, 'm').calls('c', 'a', {}).cancelled('running'),
        ),
      /no call is left open/,
    )
  })
})
