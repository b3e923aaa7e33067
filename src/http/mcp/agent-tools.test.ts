import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AgentCard, AgentOperation } from '../../agents/agent-definition.ts'
import type { AgentListing } from '../../agents/read-agents.ts'
import type { RunEvent } from '../../journal/event.ts'
import { agentTools } from './agent-tools.ts'
import { OpenCalls } from './open-calls.ts'
import { RunProgress } from './run-progress.ts'

function listing(id: string, card: Partial<AgentCard> = {}, operations: Partial<AgentOperation>[] = [{ id: null }]) {
  const whole = { id, description: `About ${id}.`, ...card } as AgentCard
  const filled = operations.map((operation) => ({
    name: `Name of ${operation.id ?? id}`,
    description: '',
    inputSchema: null,
    dataSchema: null,
    ...operation,
  }))
  return { id, card: whole, error: null, definition: { card: whole, operations: filled } } as unknown as AgentListing
}

const all = () => true

test('each one-shot agent is a tool, and each operation is one; chat agents and unavailable agents are none', () => {
  const dataSchema = { type: 'object', properties: { title: { type: 'string' } } }
  const listings = [
    listing('chat', { endpoint: '/v1/agent/chat' }),
    listing('titles', { endpoint: '/v1/agent/run' }, [{ id: null, dataSchema }]),
    listing('briefs', {}, [{ id: 'extract', description: 'Extracts.' }, { id: 'write' }]),
    listing('away'),
    { id: 'broken', card: null, definition: null, error: 'no agent.json' },
  ]

  const tools = agentTools(listings, ({ id }) => id !== 'away', false)

  assert.deepEqual(
    tools.map(({ name, title, description, agentId, operation }) => [name, title, description, agentId, operation]),
    [
      ['titles', 'Name of titles', 'About titles.', 'titles', null],
      ['briefs_extract', 'Name of extract', 'Extracts.', 'briefs', 'extract'],
      ['briefs_write', 'Name of write', 'About briefs.', 'briefs', 'write'],
    ],
  )
  assert.deepEqual(tools[0]?.outputSchema, dataSchema)
  assert.deepEqual(tools[1]?.inputSchema, { type: 'object' })
  assert.ok(!('outputSchema' in (tools[1] ?? {})))
})

test('two tools never have the same name', () => {
  const names = agentTools([listing('a', {}, [{ id: 'b' }]), listing('a_b'), listing('a_b_2')], all, false).map(
    ({ name }) => name,
  )
  assert.deepEqual(names, ['a_b', 'a_b_2', 'a_b_2_2'])
})

test('a tool does not ask a known user for the user', () => {
  const inputSchema = {
    type: 'object',
    properties: { userId: { type: 'string' }, contactId: { type: 'string' } },
    required: ['userId', 'contactId'],
  }
  const listings = [listing('insight', {}, [{ id: null, inputSchema }])]

  assert.deepEqual(agentTools(listings, all, false)[0]?.inputSchema, inputSchema)
  assert.deepEqual(agentTools(listings, all, true)[0]?.inputSchema, {
    type: 'object',
    properties: { contactId: { type: 'string' } },
    required: ['contactId'],
  })
})

test('an open call is cancelled by its key and forgotten when it ends', () => {
  const calls = new OpenCalls()
  const first = calls.add('one')
  calls.cancel('two')
  assert.equal(first.signal.aborted, false)
  calls.cancel('one')
  assert.equal(first.signal.aborted, true)
  const again = calls.add('one')
  first.close()
  assert.equal(calls.size, 1)
  again.close()
  assert.equal(calls.size, 0)
})

test('progress is reported for steps and repairs, and once for many deltas', () => {
  const progress = new RunProgress()
  const delta = { type: 'text.delta', data: { messageId: 'm', text: 'x'.repeat(90) } }
  const events = [
    { type: 'run.accepted', data: {} },
    { type: 'run.state', data: { from: null, to: 'queued' } },
    { type: 'step.started', data: { step: 1, messageId: 'm', model: 'p/m' } },
    ...Array.from({ length: 9 }, () => delta),
    { type: 'output.rejected', data: { step: 1, messageId: 'm', errors: [] } },
  ] as unknown as RunEvent[]

  assert.deepEqual(
    events.flatMap((event) => progress.after(event) ?? []),
    [
      'The run waits for its turn.',
      'The model is asked (step 1).',
      'The model has written 450 characters.',
      'The answer does not fit; the model is asked to correct it.',
    ],
  )
})
