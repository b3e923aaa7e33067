// The strict stand-ins refuse what the real APIs refuse. A stand-in that accepts anything would
// prove nothing.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startStrictProvider, type StrictName, type StrictProvider } from '../support/strict-provider.ts'

const headers = {
  'x-api-key': 'k',
  'anthropic-version': '2023-06-01',
  authorization: 'Bearer test-key',
  'x-team': 'walks',
  'x-goog-api-key': 'k',
}

const user = { role: 'user', content: [{ type: 'text', text: 'Hi' }] }
const anthropic = { model: 'claude', max_tokens: 4000, stream: true }
const use = { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'look', input: {} }] }
const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: 'seen' }] }
const odata = {
  name: 'look',
  input_schema: { type: 'object', properties: { paging: { type: 'object', properties: { $top: {} } } } },
}
const unsigned = { role: 'assistant', content: [{ type: 'thinking', thinking: 'Hm' }, ...use.content] }

const openai = { model: 'gpt-5', store: false, include: ['reasoning.encrypted_content'], stream: true }
const said = { role: 'user', content: [{ type: 'input_text', text: 'Hi' }] }
const called = { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{}' }
const output = { type: 'function_call_output', call_id: 'c1', output: 'seen' }

const asked = { role: 'user', parts: [{ text: 'Hi' }] }
const call = { role: 'model', parts: [{ functionCall: { name: 'look', args: {} } }] }
const response = { role: 'user', parts: [{ functionResponse: { name: 'look', response: {} } }] }

const chat = { model: 'thinker', stream: true }
const ask = { role: 'user', content: 'Hi' }
const toolCall = {
  role: 'assistant',
  content: null,
  tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } }],
}
const toolResult = { role: 'tool', tool_call_id: 'c1', content: 'seen' }

const cases: Record<StrictName, { path: string; refused: [what: string, body: object, words: RegExp][] }> = {
  anthropic: {
    path: '/messages',
    refused: [
      ['an unknown field', { ...anthropic, messages: [user], seed: 1 }, /seed: Extra inputs/],
      ['a wrong first role', { ...anthropic, messages: [use, result] }, /first message/],
      ['a result without its call', { ...anthropic, messages: [user, use, result, use, user] }, /unique|without/],
      ['a call without its result', { ...anthropic, messages: [user, use, user] }, /without `tool_result`/],
      [
        'a text of white space',
        { ...anthropic, messages: [{ role: 'user', content: [{ type: 'text', text: '\n' }] }] },
        /non-whitespace/,
      ],
      [
        'to think in a turn that another model began',
        { ...anthropic, thinking: { type: 'enabled', budget_tokens: 1024 }, messages: [user, use, result] },
        /Expected `thinking`/,
      ],
      ['reasoning without a signature', { ...anthropic, messages: [user, unsigned, result] }, /signature: Field/],
      [
        'an argument with another name',
        { ...anthropic, messages: [user], tools: [odata] },
        /keys should match pattern/,
      ],
    ],
  },
  'openai-responses': {
    path: '/responses',
    refused: [
      ['an unknown field', { ...openai, input: [said], max_tokens: 1 }, /Unknown parameter: 'max_tokens'/],
      ['a result without its call', { ...openai, input: [said, output] }, /No tool call found/],
      ['a call without its result', { ...openai, input: [said, called] }, /No tool output found/],
      ['a long call id', { ...openai, input: [said, { ...called, call_id: 'c'.repeat(65) }] }, /maximum length 64/],
      [
        'a reference to a stored item',
        { ...openai, input: [said, { type: 'item_reference', id: 'rs_1' }] },
        /not persisted/,
      ],
      [
        'reasoning that it did not encrypt',
        { ...openai, input: [said, { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'x' }, called] },
        /could not be verified/,
      ],
    ],
  },
  gemini: {
    path: '/models/gemini-3-pro:streamGenerateContent',
    refused: [
      ['an unknown field', { contents: [asked], model: 'x' }, /Unknown name ..model/],
      ['a wrong role', { contents: [{ ...asked, role: 'assistant' }] }, /valid role/],
      ['a result without its call', { contents: [asked, response] }, /immediately after a function call turn/],
      ['a call without its result', { contents: [asked, call, asked] }, /number of function response parts/],
      ['a call without its signature', { contents: [asked, call, response] }, /missing a thought_signature/],
    ],
  },
  'chat-completions': {
    path: '/chat/completions',
    refused: [
      ['an unknown field', { ...chat, messages: [ask], seed: 1 }, /Unrecognized request argument supplied: seed/],
      ['an unknown role', { ...chat, messages: [{ ...ask, role: 'model' }] }, /unknown variant model/],
      ['a result without its call', { ...chat, messages: [ask, toolResult] }, /must be a response to a preceding/],
      ['a call without its result', { ...chat, messages: [ask, toolCall, ask] }, /must be followed by tool messages/],
      [
        'reasoning without a call',
        { ...chat, messages: [ask, { role: 'assistant', content: 'x', reasoning_content: 'y' }, ask] },
        /only with tool calls/,
      ],
    ],
  },
}

for (const name of ['anthropic', 'openai-responses', 'gemini', 'chat-completions'] as const) {
  describe(`the stand-in ${name}`, () => {
    let provider: StrictProvider
    before(async () => {
      provider = await startStrictProvider(name)
    })
    after(() => provider?.stop())

    for (const [what, body, words] of cases[name].refused) {
      it(`refuses ${what}`, async () => {
        const answer = await fetch(`${provider.baseUrl}${cases[name].path}`, {
          method: 'POST',
          headers,
          body: JSON.stringify(body),
        })

        assert.ok(answer.status === 400 || answer.status === 404, String(answer.status))
        assert.match(await answer.text(), words)
      })
    }
  })
}
