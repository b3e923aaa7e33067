import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AgentCard, AgentDefinition } from '../agents/agent-definition.ts'
import { enginesOf } from '../../test/support/run-rig.ts'
import { modelConfigsOf } from '../models/model-configs.ts'
import type { Tool, ToolRegistry } from '../tools/tool.ts'
import { specFor } from './run-spec.ts'
import type { StartRequest } from './start-request.ts'

const serverTools = [{ name: 'current_time' }] as Tool[]
const known = [{ provider: 'openai', ready: true, reason: null }]

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
      models: {
        defaultModel: 'p/m',
        resolve: (name) => name ?? 'p/m',
        open: () => assert.fail(),
        listed: () => [],
        providerTools: () => ['web_search'],
        list: () => known,
      },
      tools: { available: () => serverTools } as unknown as ToolRegistry,
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

test('options of the provider come from the agent and from the request, which is checked', () => {
  const card = { providerOptions: { openai: { reasoningEffort: 'low', store: true } } }
  assert.deepEqual(specOf(card, {}).providerOptions, card.providerOptions)
  assert.deepEqual(specOf(card, { providerOptions: { openai: { reasoningEffort: 'high' } } }).providerOptions, {
    openai: { reasoningEffort: 'high', store: true },
  })
  assert.equal('providerOptions' in specOf({}, {}), false)
  for (const providerOptions of [{ anthropic: {} }, { openai: { store: true } }])
    assert.throws(() => specOf({}, { providerOptions }), { code: 'provider_options_invalid' })
})

test('tools of the provider come from the agent, or from a request that the agent allows', () => {
  const tools = { mode: 'denylist' as const, allowedTools: [] }
  const options = { anthropic: { maxUses: 3 } }
  const card = { tools, providerTools: [{ name: 'web_search' as const, options }] }
  assert.deepEqual(specOf(card, {}).providerTools, card.providerTools)
  assert.deepEqual(specOf(card, { providerTools: ['web_search'] }).providerTools, card.providerTools)
  assert.equal('providerTools' in specOf(card, { providerTools: [] }), false)
  assert.deepEqual(specOf({ tools }, { providerTools: ['web_search', 'web_search'] }).providerTools, [
    { name: 'web_search' },
  ])
  const refused: [Partial<AgentCard>, 'web_search' | 'code_execution', RegExp][] = [
    [{ tools: { mode: 'none', allowedTools: [] } }, 'web_search', /agent a does not allow the tool web_search/],
    [{ tools }, 'code_execution', /provider of the model p\/m runs only web_search, not code_execution/],
  ]
  for (const [agent, name, message] of refused)
    assert.throws(() => specOf(agent, { providerTools: [name] }), { code: 'provider_tool_unavailable', message })
})

test('tools of the client come from the agent and from the request, and are left out if nobody can execute them', () => {
  const tool = (name: string, description: string) => ({ name, description, inputSchema: {} })
  const tools = { mode: 'denylist' as const, allowedTools: [] }
  const card = { tools, clientTools: [tool('locate', 'of the agent'), tool('open', 'of the agent')] }
  const described = (request: Partial<StartRequest>) =>
    specOf(card, request).clientTools?.map(({ name, description }) => `${name} ${description}`)

  assert.deepEqual(described({}), ['locate of the agent', 'open of the agent'])
  assert.deepEqual(described({ clientTools: [tool('locate', 'of the request')] }), [
    'open of the agent',
    'locate of the request',
  ])
  assert.equal('clientTools' in specOf(card, { consent: 'refuse' }), false)
  assert.throws(() => specOf({ tools }, { consent: 'refuse', clientTools: [tool('locate', '')] }), {
    code: 'client_tools_invalid',
  })
  assert.throws(() => specOf({ tools }, { clientTools: [tool('current_time', '')] }), { code: 'client_tool_conflict' })
  const none = { mode: 'none' as const, allowedTools: [] }
  assert.equal(specOf({ tools: none }, { clientTools: [tool('current_time', '')] }).clientTools?.length, 1)
})
