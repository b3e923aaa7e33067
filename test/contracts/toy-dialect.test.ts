// A trial of the recipe "Add a dialect" (CONTRIBUTING.md): a wire for terminals, made only of
// the shared folds. It shows what a new wire costs, and that the recipe works.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { calledCall, type Calls, ranWithOtherInput, startedCall, withCall } from '../../src/dialects/calls.ts'
import { beginning, parseCursor } from '../../src/dialects/cursor.ts'
import { type Dialect, emit, encodeEvents, type Frame, pingTiming, silent } from '../../src/dialects/dialect.ts'
import { askedCall, valueText } from '../../src/dialects/interactions.ts'
import { addText, type TextState } from '../../src/dialects/message-text.ts'
import { scenarioNamed } from '../scenarios/scenarios.ts'
import { dialectContract, framesOf } from './dialect-contract.ts'

type TerminalState = TextState & { readonly calls: Calls }

const says = (text: string): Frame => ({ name: 'says', data: text })
const line = (text: string): Frame => ({ name: 'line', data: text })

const terminal: Dialect<TerminalState> = {
  name: 'terminal-toy',
  headers: { 'content-type': 'text/plain; charset=utf-8' },
  open: () => ({ textMessageId: null, calls: new Map() }),
  step(state, event) {
    switch (event.type) {
      case 'text.delta': {
        const { state: next, separator } = addText(state, event.data)
        return emit(next, says(separator + event.data.text))
      }
      case 'tool.called': {
        const call = { ...calledCall(event.data), announced: true }
        return emit(withCall(state, event.data.callId, call), line(call.note))
      }
      case 'tool.started': {
        const before = state.calls.get(event.data.callId)
        if (before === undefined) return silent(state)
        const call = startedCall(before, event)
        const next = withCall(state, event.data.callId, call)
        return ranWithOtherInput(call) ? emit(next, line(`${call.name} runs with other arguments`)) : silent(next)
      }
      case 'input.required': {
        const { callId, call } = askedCall(state.calls, event)
        return emit(withCall(state, callId, call), line(call.note))
      }
      case 'tool.done':
        return emit(state, line(valueText(event.data.output) ?? event.data.summary))
      case 'run.state':
        // The event that parks the stream needs a frame: its address is the cursor that leads past it.
        return event.data.to === 'waiting_user' ? emit(state, line('waits for you')) : silent(state)
      case 'run.ended':
        return emit(state, line(event.data.status))
      case 'run.accepted':
      case 'run.prepared':
      case 'step.started':
      case 'step.done':
      case 'reasoning.delta':
      case 'source.found':
      case 'message.done':
      case 'tool.progress':
      case 'input.resolved':
      case 'context.patch':
      case 'output.rejected':
      case 'answer.discarded':
      case 'context.cut':
      case 'context.summarised':
      case 'engine.handle':
      case 'diagnostic':
        return silent(state)
    }
  },
  encode: ({ name, data }, address) => `${address} ${name} ${JSON.stringify(data)}\n`,
  encodeDelta: (state, { seq, messageId, textJson }) =>
    state.textMessageId === messageId ? `${seq} says ${textJson}\n` : null,
  keepAlive: () => '\n',
  keepAliveTiming: pingTiming,
  atDecision: 'parks',
}

dialectContract(terminal)

describe('a dialect made of the shared folds', () => {
  const scenario = scenarioNamed('edited while confirming')
  const told = framesOf(terminal, scenario).map(({ frame }) => String(frame.data))

  it('says where to decide, and that the call ran with the arguments that a person changed', () => {
    assert.ok(told.some((text) => text.includes('/v1/tool-confirmations/confirmation-1 (POST …/confirm or …/reject)')))
    assert.equal(told.filter((text) => text.endsWith('runs with other arguments')).length, 1)
  })

  it('does not mention changed arguments if they were not changed', () => {
    const unchanged = framesOf(terminal, scenarioNamed('tool confirmed')).map(({ frame }) => String(frame.data))

    assert.ok(unchanged.some((text) => text.includes('/v1/tool-confirmations/')))
    assert.ok(!unchanged.some((text) => text.endsWith('runs with other arguments')))
  })

  it('parks with one property: the stream ends at the decision, and goes on after it', () => {
    const { text, over } = encodeEvents(terminal, terminal.open({ runId: 'r' }), scenario.events, beginning)
    const lastAddress = /(\S+) line "waits for you"\n$/.exec(text)?.[1] ?? '0'
    const rest = encodeEvents(terminal, terminal.open({ runId: 'r' }), scenario.events, parseCursor(lastAddress))
    const holding: Dialect<TerminalState> = { ...terminal, atDecision: 'holds' }
    const whole = encodeEvents(holding, holding.open({ runId: 'r' }), scenario.events, beginning)

    assert.equal(over, true)
    assert.equal(text + rest.text, whole.text)
    assert.ok(rest.text.length > 0)
  })
})
