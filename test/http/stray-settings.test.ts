// Fields that look like settings and have no effect are refused; other unknown fields are ignored.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sharedTestServer, someone } from '../support/test-server.ts'

const server = sharedTestServer()

const refused: [field: string, value: unknown, advice: RegExp][] = [
  ['temprature', 0.2, /Did you mean temperature\?/],
  ['max_token', 10, /Did you mean max_tokens\?/],
  ['provider_options', {}, /Did you mean providerOptions\?/],
  ['when_busy', 'queue', /Did you mean whenBusy\?/],
  ['models', ['a'], /Did you mean model\?/],
  ['top_p', 0.9, /Send it in providerOptions/],
  ['topP', 0.9, /Send it in providerOptions/],
  ['reasoning_effort', 'low', /"openai": \{"reasoningEffort": "low"\}/],
  ['max_completion_tokens', 5, /Send maxTokens/],
  ['response_format', {}, /Send output with a schema/],
  ['stop', ['x'], /Send it in providerOptions/],
  ['reasoning', { effort: 'high' }, /"openai": \{"reasoningEffort": "low"\}/],
  ['service_tier', 'flex', /Send it in providerOptions/],
  ['generationConfig', { topK: 3 }, /Send it in providerOptions/],
  ['parallel_tool_calls', false, /Send it in providerOptions/],
  ['system', 'Be brief.', /a message with the role "system"/],
  ['system_prompt', 'Be brief.', /a message with the role "system"/],
  ['instructions', 'Be brief.', /a message with the role "system"/],
  ['tools', [{ type: 'function', function: { name: 'x' } }], /Send clientTools/],
  ['tool_choice', 'required', /The model decides/],
  ['n', 2, /one answer/],
]
for (const [field, value, advice] of refused) {
  test(`a chat with ${field} is refused and says what to send`, async () => {
    const { status, body } = await server.call('POST', '/v1/agent/chat', { body: { input: 'Hi', [field]: value } })

    assert.deepEqual([status, body.code, body.details?.param], [400, 'unsupported_parameter', field])
    assert.match(String(body.message), advice)
  })
}

test('other unknown fields, and fields that are null, are ignored as ever', async () => {
  const frames = await server.chatToEnd(someone(), {
    input: 'Hi',
    mode: 'ask',
    stream: true,
    user: 'ada',
    metadata: { page: 1 },
    clientVersion: '1.2',
    system: '',
    tools: {},
    tool_choice: 'auto',
    n: 1,
    logprobs: false,
    top_p: null,
    temprature: null,
  })

  assert.equal(frames.at(-1)?.json.data.status, 'succeeded')
})

const runs: [body: Record<string, unknown>, param: string, advice: RegExp][] = [
  [{ model: 'openai/x' }, 'model', /The agent decides it/],
  [{ temperature: 1 }, 'temperature', /The agent decides it/],
  [{ output: { schema: {} } }, 'output', /The agent decides it/],
  [{ temprature: 1 }, 'temprature', /Did you mean temperature\?/],
  [{ option: {} }, 'option', /Did you mean options\?/],
  [{ options: { use_cache: false } }, 'use_cache', /Did you mean useCache\?/],
  [{ agentId: 'chat_conversation', model: 'openai/x' }, 'model', /Send it in input/],
  [{ agentId: 'chat_conversation', clientTools: [{ name: 'x' }] }, 'clientTools', /; use POST \/v1\/agent\/chat\.$/],
  [{ clientTools: [{ name: 'x' }] }, 'clientTools', /does not wait for results of client tools/],
]
for (const [fields, param, advice] of runs) {
  test(`a run of an agent with ${JSON.stringify(fields)} is refused`, async () => {
    const { status, body } = await server.call('POST', '/v1/agent/run', {
      body: { agentId: 'title_summary', input: { message: 'x' }, ...fields },
    })

    assert.deepEqual([status, body.code, body.details?.param], [400, 'unsupported_parameter', param])
    assert.match(String(body.message), advice)
  })
}
