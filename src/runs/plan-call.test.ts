// What a call needs next, as a table: effect × what happened so far.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ToolEffect } from '../journal/event.ts'
import type { CallState } from '../journal/run-state.ts'
import type { Confirm, Tool } from '../tools/tool.ts'
import { planCall } from './plan-call.ts'

function callWith(parts: Partial<CallState> = {}): CallState {
  return {
    callId: 'call-1',
    name: 'work',
    step: 1,
    index: 0,
    effect: 'read',
    source: undefined,
    note: 'Do the work',
    invalidInput: undefined,
    input: { n: 1 },
    starts: 0,
    started: false,
    interactionId: undefined,
    decision: undefined,
    decisionReason: undefined,
    reply: undefined,
    askedUnknown: false,
    done: undefined,
    ...parts,
  }
}

function toolWith(
  effect: ToolEffect,
  confirm: Confirm = 'never',
  describeIt: Tool['describe'] = () => 'Do the work',
): Tool {
  const run: Tool['run'] = () => Promise.reject(new Error('planning runs nothing'))
  return {
    name: 'work',
    description: '',
    effect,
    confirm,
    inputSchema: {},
    timeoutMs: 1,
    outputCharsMax: 1,
    describe: describeIt,
    run,
  }
}

const fits = { check: () => null }
const plan = (
  call: Partial<CallState>,
  tool: Tool | undefined = toolWith('read'),
  check: () => string | null = () => null,
) => {
  const decided = planCall(callWith(call), tool, { check })
  return decided.do === 'close'
    ? `close ${decided.outcome} ${decided.code}`
    : decided.do === 'ask'
      ? `ask ${decided.outcome ?? 'first'}`
      : decided.do
}

describe('a call', () => {
  it('that is fresh runs, or is put to a person first where its tool says so', () => {
    for (const effect of ['read', 'idempotent', 'unsafe'] as const) {
      assert.equal(plan({}, toolWith(effect, 'never')), 'run', effect)
      assert.equal(plan({}, toolWith(effect, 'always')), 'ask first', effect)
    }
    const large: Confirm = (input) => ((input as { n: number }).n > 5 ? 'always' : 'never')
    assert.equal(plan({ input: { n: 1 } }, toolWith('unsafe', large)), 'run')
    assert.equal(plan({ input: { n: 9 } }, toolWith('unsafe', large)), 'ask first')
  })

  it('that was started when the server died runs again only where that is harmless; an unsafe one is asked about', () => {
    for (const confirm of ['never', 'always'] as const) {
      assert.equal(plan({ started: true }, toolWith('read', confirm)), 'run')
      assert.equal(plan({ started: true }, toolWith('idempotent', confirm)), 'run')
      assert.equal(plan({ started: true }, toolWith('unsafe', confirm)), 'ask unknown')
      // Also when it had been confirmed: that consent was used up by the start.
      assert.equal(
        plan({ started: true, interactionId: 'i', decision: 'confirmed' }, toolWith('unsafe', confirm)),
        'ask unknown',
      )
    }
  })

  it('that a person has to decide on waits, whatever else is true of it', () => {
    for (const started of [false, true]) {
      for (const tool of [toolWith('unsafe', 'always'), undefined]) {
        assert.equal(planCall(callWith({ interactionId: 'i', started }), tool, fits).do, 'wait')
      }
    }
  })

  it('that was confirmed runs, without asking again', () => {
    for (const effect of ['read', 'idempotent', 'unsafe'] as const) {
      assert.equal(plan({ interactionId: 'i', decision: 'confirmed' }, toolWith(effect, 'always')), 'run', effect)
      assert.equal(
        plan({ interactionId: 'i', decision: 'confirmed', askedUnknown: true }, toolWith(effect, 'always')),
        'run',
        effect,
      )
    }
  })

  it('that was refused is closed, and says by whom', () => {
    assert.equal(plan({ interactionId: 'i', decision: 'rejected' }), 'close denied tool_denied')
    assert.equal(plan({ interactionId: 'i', decision: 'expired' }), 'close denied tool_expired')
    assert.equal(plan({ interactionId: 'i', decision: 'closed' }), 'close cancelled tool_cancelled')
    // After an unknown outcome a refusal does not undo what may have happened.
    for (const decision of ['rejected', 'expired', 'closed'] as const) {
      assert.equal(plan({ interactionId: 'i', decision, askedUnknown: true }), 'close unknown tool_outcome_unknown')
    }
    // Also where the tool has gone since.
    assert.equal(planOfMissing({ interactionId: 'i', decision: 'rejected' }), 'close denied tool_denied')
  })

  it('that cannot be made is closed as failed before a person is asked', () => {
    assert.equal(plan({ invalidInput: '{"n":' }, toolWith('unsafe', 'always')), 'close failed tool_input_invalid')
    assert.equal(
      plan({}, toolWith('unsafe', 'always'), () => 'n is missing'),
      'close failed tool_input_invalid',
    )
    assert.equal(planOfMissing({}), 'close failed tool_not_found')
  })

  it('that may have happened is judged by what the journal says of it, also when its tool is gone or has changed', () => {
    assert.equal(planOfMissing({ effect: 'unsafe', started: true }), 'ask')
    assert.equal(plan({ effect: 'unsafe', started: true }, toolWith('read')), 'ask unknown')
    assert.equal(plan({ effect: 'read', started: true }, toolWith('unsafe')), 'ask unknown')
    // Not run again for want of a tool, and not called failed.
    assert.equal(planOfMissing({ effect: 'idempotent', started: true }), 'close unknown tool_outcome_unknown')
    assert.equal(
      planOfMissing({ effect: 'unsafe', interactionId: 'i', decision: 'confirmed', askedUnknown: true }),
      'close unknown tool_outcome_unknown',
    )
    assert.equal(planOfMissing({ effect: 'read', started: true }), 'close failed tool_not_found')
    const asked = planCall(callWith({ effect: 'unsafe', started: true, note: 'Pay 5' }), undefined, fits)
    assert.match(asked.do === 'ask' ? asked.prompt : '', /^Pay 5 .*may already have happened/)
  })

  it('is described to people even where its tool cannot', () => {
    const mute = toolWith('unsafe', 'always', () => {
      throw new Error('no words')
    })

    const decided = planCall(callWith(), mute, fits)

    assert.deepEqual(decided, { do: 'ask', outcome: undefined, prompt: 'Call work' })
  })

  it('that asks a question is put to a person, and the answer is its result; it is never run', () => {
    const asking: Tool = {
      ...toolWith('read'),
      ask: () => ({ prompt: 'Which?', style: 'open_text', options: [], fields: [] }),
    }

    const fresh = planCall(callWith(), asking, fits)
    const answered = planCall(callWith({ interactionId: 'i', decision: 'confirmed', reply: 'this' }), asking, fits)

    assert.deepEqual([fresh.do, fresh.do === 'ask' ? fresh.prompt : ''], ['ask', 'Which?'])
    assert.deepEqual(answered, { do: 'answer', output: 'this' })
    assert.equal(planCall(callWith({ interactionId: 'i' }), asking, fits).do, 'wait')
  })

  it('whose outcome is unknown is shown with a sentence that says so', () => {
    const decided = planCall(callWith({ started: true }), toolWith('unsafe'), fits)

    assert.match(
      decided.do === 'ask' ? decided.prompt : '',
      /^Do the work .*may already have happened.*confirm to run it again/,
    )
  })
})

function planOfMissing(call: Partial<CallState>): string {
  const decided = planCall(callWith(call), undefined, fits)
  return decided.do === 'close' ? `close ${decided.outcome} ${decided.code}` : decided.do
}
