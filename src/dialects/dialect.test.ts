// What the base class promises to a dialect whose streams park: the stream ends when a person
// has to decide, and a client that comes back gets the rest. No shipped dialect parks yet, so
// a toy dialect is used.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { dialectContract, framesOf } from '../../test/contracts/dialect-contract.ts'
import { scenarios } from '../../test/scenarios/scenarios.ts'
import { beginning, parseCursor } from './cursor.ts'
import { type Dialect, emit, encodeEvents, pingTiming, silent } from './dialect.ts'

/** Counts its frames. A question has two of them, and the run that parks for it ends the stream. */
const parked: Dialect<number> = {
  name: 'parked-toy',
  headers: {},
  open: () => 0,
  step(count, event) {
    if (event.type === 'text.delta') return emit(count, { name: 'text', data: event.data.text })
    if (event.type === 'input.required')
      return emit(count + 2, { name: 'ask', data: count }, { name: 'prompt', data: event.data.prompt })
    if (event.type === 'run.state' && event.data.to === 'waiting_user')
      return emit(count + 2, { name: 'needed', data: count }, { name: 'parked', data: count + 1 })
    if (event.type === 'run.ended') return emit(count + 1, { name: 'end', data: count })
    return silent(count)
  },
  encode: ({ name, data }, address) => `${address} ${name} ${JSON.stringify(data)}\n`,
  encodeDelta: (_count, { seq, textJson }) => `${seq} text ${textJson}\n`,
  keepAlive: () => null,
  keepAliveTiming: pingTiming,
  atDecision: 'parks',
}

dialectContract(parked)

describe('a stream that is parked', () => {
  const waits = scenarios.filter(({ events }) =>
    events.some((event) => event.type === 'run.state' && event.data.to === 'waiting_user'),
  )
  const parkedAt = ({ events }: (typeof scenarios)[number]) =>
    events.find((event) => event.type === 'run.state' && event.data.to === 'waiting_user')?.seq ?? 0

  it('ends at the event that parks it, also when more is known already', () => {
    assert.ok(waits.length > 0)
    for (const scenario of waits) {
      const { text, over } = encodeEvents(parked, 0, scenario.events, beginning)

      assert.equal(over, true)
      const told = framesOf(parked, scenario).filter(({ seq }) => seq <= parkedAt(scenario))
      assert.equal(text, told.map((frame) => frame.text).join(''))
    }
  })

  it('is not over for a reader that has seen the event that parked it', () => {
    for (const scenario of waits) {
      const seq = parkedAt(scenario)
      const known = scenario.events.filter((event) => event.seq <= seq)
      for (const cursor of [`${seq}`, `${seq}.2`]) {
        assert.deepEqual(encodeEvents(parked, 0, known, parseCursor(cursor)).over, false, cursor)
        assert.equal(encodeEvents(parked, 0, scenario.events, parseCursor(cursor)).over, true, cursor)
      }
      assert.equal(encodeEvents(parked, 0, known, parseCursor(`${seq}.1`)).over, true, 'one frame is still to come')
    }
  })
})
