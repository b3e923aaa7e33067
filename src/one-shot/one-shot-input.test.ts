// Which operation is meant, which input is accepted, and what the source hash covers.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { AgentDefinition, AgentOperation } from '../agents/agent-definition.ts'
import { checkedInput, operationNamed, sourceHashOf } from './one-shot-input.ts'

const operation = (changes: Partial<AgentOperation>) => ({ id: null, ...changes }) as AgentOperation
const agent = (...ids: (string | null)[]) =>
  ({ card: { id: 'agent' }, operations: ids.map((id) => operation({ id })) }) as unknown as AgentDefinition

describe('the operation of a request', () => {
  it('is the one that is named, or the only one of an agent that names none', () => {
    assert.equal(operationNamed(agent(null), null).id, null)
    assert.equal(operationNamed(agent('a', 'b'), 'b').id, 'b')
  })

  it('is refused with what there is, in a bounded message', () => {
    const refused = (definition: AgentDefinition, name: string | null) => () => operationNamed(definition, name)
    assert.throws(refused(agent('a', 'b'), null), { code: 'agent_operation_invalid', message: /Send one of a, b/ })
    assert.throws(refused(agent(null), 'a'), { code: 'agent_operation_invalid', message: /leave operation out/ })
    assert.throws(refused(agent('a'), 'x'.repeat(10_000)), ({ message }: Error) => message.length < 300)
  })
})

describe('the input of a request', () => {
  const schema = {
    type: 'object',
    properties: { depth: { enum: ['brief', 'deep'], default: 'brief' }, list: { type: 'array' }, odd: true },
    required: ['contactId'],
  }

  it('gets the defaults of its schema; null counts as not given', () => {
    assert.deepEqual(checkedInput(schema, { contactId: 'c', depth: null }), { contactId: 'c', depth: 'brief' })
    assert.deepEqual(checkedInput(schema, { contactId: 'c', depth: 'deep' }), { contactId: 'c', depth: 'deep' })
    assert.deepEqual(checkedInput(null, { any: null }), { any: null })
  })

  it('is refused with every field that is wrong', () => {
    assert.throws(
      () => checkedInput(schema, { depth: 'very', list: 1 }),
      ({ code, details }: { code: string; details: { field: string; issues: { field: string }[] } } & Error) => {
        assert.equal(code, 'invalid_input')
        assert.deepEqual(details.issues.map(({ field }) => field).toSorted(), [
          'input.contactId',
          'input.depth',
          'input.list',
        ])
        return true
      },
    )
  })
})

describe('the source hash', () => {
  const reads = operation({ reads: 'contact', cache: { ttlMs: 1, inputFields: null } })
  const hash = (changes: {
    agentId?: string
    of?: AgentOperation
    input?: Record<string, string>
    language?: string
    data?: Record<string, number>
  }) =>
    sourceHashOf(
      changes.agentId ?? 'agent',
      changes.of ?? reads,
      changes.input ?? { depth: 'brief' },
      changes.language ?? 'zh',
      changes.data ?? { a: 1, b: 2 },
    )

  it('is the same for the same content, whatever the order of keys', () => {
    assert.equal(hash({}), hash({ data: { b: 2, a: 1 } }))
    assert.match(hash({}), /^[0-9a-f]{64}$/)
  })

  it('differs if the agent, operation, language, data or a field that counts differs', () => {
    const hashes = [
      hash({}),
      hash({ agentId: 'other' }),
      hash({ of: operation({ id: 'op', reads: 'contact' }) }),
      hash({ language: 'en' }),
      hash({ data: { a: 1, b: 3 } }),
      hash({ input: { depth: 'deep' } }),
    ]
    assert.equal(new Set(hashes).size, hashes.length)
  })

  it('does not depend on fields that name the user or the scope, nor on messages that the source covers', () => {
    for (const field of ['userId', 'contactId', 'conversationId', 'messages'])
      assert.equal(hash({ input: { depth: 'brief', [field]: 'x' } }), hash({}), field)
    const input = operation({ reads: 'input', cache: null })
    const ofInput = (fields: Record<string, string>) => hash({ of: input, input: fields })
    assert.equal(ofInput({ userId: 'x' }), ofInput({}))
    assert.notEqual(ofInput({ messages: 'x' }), ofInput({}), 'an agent that reads its input reads all of it')
  })

  it('covers only the fields that the agent names, if it names some', () => {
    const some = operation({ reads: 'input', cache: { ttlMs: 1, inputFields: ['text'] } })
    const ofSome = (fields: Record<string, string>) => hash({ of: some, input: fields })
    assert.equal(ofSome({ text: 'a', note: 'b' }), ofSome({ text: 'a' }))
    assert.notEqual(ofSome({ text: 'a' }), ofSome({ text: 'b' }))
  })
})
