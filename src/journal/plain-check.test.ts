// The quick check of an event never says yes to a value that the schema library would refuse or change.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { z } from 'zod'
import { anyEvent, anyJson } from '../../test/support/event-arbitraries.ts'
import { eventBodies } from './event.ts'
import { plainCheck } from './plain-check.ts'

type Fields = Record<string, unknown>

/** One change to the fields of an object, or to those of an object in it. */
const change = fc.record({
  how: fc.constantFrom('none', 'add', 'remove', 'replace', 'clear', 'move'),
  at: fc.nat(20),
  inside: fc.boolean(),
  value: fc.oneof(anyJson, fc.constantFrom(undefined, Number.NaN, Infinity, -1, 0.5, '', [], {}), fc.constant('x')),
})

type Change = typeof change extends fc.Arbitrary<infer T> ? T : never

function changed(data: Fields, { how, at, inside, value }: Change): Fields {
  const entries = Object.entries(data)
  const [name = 'x', current] = entries[at % Math.max(1, entries.length)] ?? []
  if (inside && typeof current === 'object' && current !== null && !Array.isArray(current))
    return { ...data, [name]: changed(current as Fields, { how, at, inside: false, value }) }
  const rest = entries.filter(([other]) => other !== name)
  switch (how) {
    case 'add':
      return { ...data, extra: value }
    case 'remove':
      return Object.fromEntries(rest)
    case 'replace':
      return { ...data, [name]: value }
    case 'clear':
      return { ...data, [name]: undefined }
    case 'move':
      return { ...Object.fromEntries(rest), [name]: current }
    default:
      return data
  }
}

describe('the quick check', () => {
  it('says yes only to what the schema takes as it is, in the same order', () => {
    let yes = 0
    fc.assert(
      fc.property(anyEvent, change, (event, change) => {
        const schema = eventBodies[event.type]
        const data = changed(event.data, change)
        if (!plainCheck(schema)(data)) return
        yes += 1
        const parsed = schema.safeParse(data)
        assert.ok(parsed.success)
        assert.deepStrictEqual(parsed.data, data)
        assert.equal(JSON.stringify(parsed.data), JSON.stringify(data))
      }),
      { numRuns: 5000 },
    )
    assert.ok(yes > 500, `it said yes to ${yes} of 5,000 events`)
  })

  it('says yes to the events of a short run', () => {
    const spec = { agentId: 'a', engine: 'local', model: 'demo/demo' }
    const events = {
      'run.accepted': {
        owner: 'o',
        family: 'agent',
        conversationId: 'c',
        newConversation: true,
        userMessageId: 'm',
        input: 'Hi',
        spec,
      },
      'run.state': { from: 'queued', to: 'running', trigger: 'turn.started' },
      'context.patch': { layer: 'session', patch: { conversationId: 'c' } },
      'step.started': { step: 1, messageId: 'm', model: 'demo/demo' },
      'message.done': { messageId: 'm', role: 'assistant', text: '', step: 1, state: 'active' },
      'step.done': {
        step: 1,
        messageId: 'm',
        finishReason: 'stop',
        toolCalls: 0,
        usage: { inputTokens: 1 },
        durationMs: 1.5,
      },
      'run.ended': { status: 'succeeded', output: 'x', messageId: 'm' },
    }
    for (const [type, data] of Object.entries(events))
      assert.equal(plainCheck(eventBodies[type as keyof typeof events])(data), true, type)
  })

  it('says no to every value of a schema with rules that it does not know', () => {
    const schemas = [
      z.string().max(3),
      z.string().regex(/x/),
      z.string().trim(),
      z.number().max(3),
      z.number().multipleOf(2),
      z.array(z.string()).min(1),
      z.array(z.string().max(3)),
      z.object({ a: z.string() }).refine(() => true),
      z.object({ a: z.string() }).catchall(z.string()),
      z.looseObject({}),
      z.strictObject({}),
      z.string().default('x'),
      z.string().transform((value) => value),
      z.record(z.string().min(1), z.string()),
      z.record(z.string(), z.string()).refine(() => true),
      z.union([z.string(), z.number()]),
    ]
    for (const schema of schemas)
      for (const value of ['x', 1, ['x'], { a: 'x' }, {}, undefined, null])
        assert.equal(plainCheck(schema)(value), false, `${schema._zod.def.type} ${JSON.stringify(value)}`)
  })
})
