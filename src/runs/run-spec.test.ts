import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AgentCard, AgentDefinition } from '../agents/agent-definition.ts'
import { enginesOf } from '../../test/support/run-rig.ts'
import { modelConfigsOf } from '../models/model-configs.ts'
import { specFor } from './run-spec.ts'
import type { StartRequest } from './start-request.ts'

function specOf(card: Partial<AgentCard>, request: Partial<StartRequest>) {
  const definition = { card: { id: 'a', ...card }, systemTemplate: '', userTemplate: '', defaults: {} }
  return specFor(
    { owner: 'ada', family: 'agent', input: 'x', earlier: [], whenBusy: 'queue', idempotency: null, ...request },
    {
      catalogue: {
        get: () => definition as unknown as AgentDefinition,
        lastWorking: () => assert.fail(),
        list: () => [],
      },
      configs: modelConfigsOf([]),
      models: { defaultModel: 'p/m', resolve: (name) => name ?? 'p/m', open: () => assert.fail(), list: () => [] },
      engines: enginesOf({ kind: 'step', name: 'local', step: () => assert.fail() }),
    },
  )
}

test('instructions of the caller are fixed with the run, unless its agent refuses them', () => {
  for (const card of [{}, { callerInstructions: 'allowed' as const }])
    assert.equal(specOf(card, { instructions: 'Rhyme.' }).instructions, 'Rhyme.')
  assert.equal('instructions' in specOf({ callerInstructions: 'refused' }, {}), false)
  assert.throws(() => specOf({ callerInstructions: 'refused' }, { instructions: 'Rhyme.' }), {
    code: 'instructions_refused',
  })
})
