// The state of a provider is journaled with its step, comes back with that step's message, and
// is not visible anywhere else.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openRig, says, toolOf } from '../../test/support/run-rig.ts'
import { openTimeline, timelineEntries, type TimelineEntry } from '../dialects/agent/timeline.ts'
import type { StepRequest } from '../engines/engine.ts'
import type { JsonValue } from '../journal/event.ts'
import type { ModelPart } from '../models/model.ts'
import { modelFamily, ProviderStates } from './provider-states.ts'

async function* callsWith(state: JsonValue): AsyncGenerator<ModelPart[]> {
  yield [{ type: 'tool-call', callId: 'c1', name: 'look', input: {}, rawInput: '{}' }]
  yield [{ type: 'finish', reason: 'tool-calls', state }]
}

async function runWith(state: JsonValue) {
  const requests: StepRequest[] = []
  const rig = await openRig({
    tools: [toolOf({ name: 'look', run: () => Promise.resolve({ ok: true, output: 'seen', summary: 'Seen' }) })],
    answer: (request) => {
      requests.push(request)
      return requests.length === 1 ? callsWith(state) : says('Done.')
    },
  })
  try {
    const { run } = await rig.start()
    await rig.until(run.id, ({ endedAt }) => endedAt !== null)
    return { requests, events: await rig.events(run.id) }
  } finally {
    await rig.close()
  }
}

const states = new ProviderStates({ readBlob: () => Promise.resolve(undefined) })

describe('the state that a provider sent with a step', () => {
  it('comes back with the message of that step, and is in no timeline', async () => {
    const { requests, events } = await runWith([{ signature: 'opaque' }])

    const messages = requests[1]?.messages ?? []
    const entries: TimelineEntry[] = []
    const timeline = openTimeline('r')
    for (const event of events) timelineEntries(timeline, event, entries)
    const done = events.find((event) => event.type === 'step.done')
    assert.deepEqual(done?.data.provider, { name: 'scripted', model: 'one', state: [{ signature: 'opaque' }] })
    assert.deepEqual(
      messages.flatMap((message) => (message.role === 'assistant' ? [message.providerState] : [])),
      [[{ signature: 'opaque' }]],
    )
    assert.ok(entries.some(({ event }) => event === 'step.done'))
    assert.doesNotMatch(JSON.stringify(entries), /opaque/)
  })

  it('is stored beside the journal if it is large', async () => {
    const large = [{ signature: 'x'.repeat(300 * 1024) }]
    const { requests, events } = await runWith(large)

    const [message] = (requests[1]?.messages ?? []).filter(({ role }) => role === 'assistant')
    const done = events.find((event) => event.type === 'step.done')
    assert.equal(done?.data.provider?.state, undefined)
    assert.match(done?.data.provider?.stateRef ?? '', /^provider_/)
    assert.ok(message?.role === 'assistant')
    assert.deepEqual(message.providerState, large)
  })

  for (const [asked, given] of [
    ['anthropic/claude-sonnet-4-5', true],
    ['anthropic/claude-sonnet-4-5-20250929', true],
    ['anthropic/claude-opus-4-5', false],
    ['openai/claude-sonnet-4-5', false],
  ] as const) {
    it(`is ${given ? 'given' : 'not given'} to ${asked} if it came from claude-sonnet-4-5 of anthropic`, () => {
      const provider = { name: 'anthropic', model: 'claude-sonnet-4-5', state: 'opaque' }

      assert.equal(states.of({ provider }, asked), given ? 'opaque' : undefined)
    })
  }
})

describe('the family of a model', () => {
  for (const [name, family] of [
    ['claude-sonnet-4-5-20250929', 'claude-sonnet-4-5'],
    ['claude-sonnet-4-5@20250929', 'claude-sonnet-4-5'],
    ['claude-sonnet-4-5-latest', 'claude-sonnet-4-5'],
    ['gpt-5-2025-08-07', 'gpt-5'],
    ['gemini-3-pro', 'gemini-3-pro'],
  ] as const) {
    it(`of ${name} is ${family}`, () => assert.equal(modelFamily(name), family))
  }
})
