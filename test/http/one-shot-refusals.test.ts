// Requests to POST /v1/agent/run that cannot be run: each is refused with a code and names the
// field, and no model is asked.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { sharedOneShotServer } from '../support/one-shot.ts'
import { type Json, someone } from '../support/test-server.ts'

const server = sharedOneShotServer()

describe('a request that cannot be run', () => {
  const word = (input: unknown): Json => ({ agentId: 'word', input })
  const refusals: [what: string, body: Json, status: number, code: string, message: RegExp, field?: string][] = [
    ['an unknown agent', { agentId: 'nobody', input: {} }, 404, 'agent_not_found', /"nobody"/],
    ['no agent', { input: {} }, 400, 'invalid_request', /agentId/],
    ['no input', { agentId: 'word' }, 400, 'invalid_input', /^input is missing/, 'input'],
    ['input null', word(null), 400, 'invalid_input', /^input is missing/, 'input'],
    ['input that is a list', word([]), 400, 'invalid_request', /input/],
    ['a missing field', word({}), 400, 'invalid_input', /^input\.text is missing/, 'input.text'],
    ['a field that is null', word({ text: null }), 400, 'invalid_input', /^input\.text is missing/, 'input.text'],
    ['a wrong type', word({ text: 7 }), 400, 'invalid_input', /^input\.text must be string/, 'input.text'],
    ['a wrong number', word({ text: 'x', size: 0 }), 400, 'invalid_input', /^input\.size /, 'input.size'],
    [
      'a wrong nested value',
      word({ text: 'x', nested: { list: ['a', 1] } }),
      400,
      'invalid_input',
      /^input\.nested\.list\.1 /,
      'input.nested.list.1',
    ],
    [
      'an operation of an agent that has none',
      { agentId: 'word', operation: 'x', input: {} },
      400,
      'agent_operation_invalid',
      /no operation "x".*leave operation out/,
      'operation',
    ],
    [
      'a missing operation',
      { agentId: 'two_ways', input: {} },
      400,
      'agent_operation_invalid',
      /needs an operation\. Send one of first, second/,
      'operation',
    ],
    [
      'an unknown operation',
      { agentId: 'two_ways', operation: 'third', input: {} },
      400,
      'agent_operation_invalid',
      /no operation "third"\. Send one of first, second/,
      'operation',
    ],
    [
      'a scope without its id',
      { agentId: 'scoped', input: {} },
      400,
      'invalid_input',
      /^input\.conversationId is missing/,
      'input.conversationId',
    ],
    [
      'options of a wrong type',
      { ...word({ text: 'x' }), options: { useCache: 'yes' } },
      400,
      'invalid_request',
      /useCache/,
    ],
    ['a userId that is no text', word({ text: 'x', userId: 7 }), 400, 'invalid_request', /userId/],
    [
      'a chat without a message',
      { agentId: 'chat_conversation', input: {} },
      400,
      'invalid_input',
      /^input\.messages /,
    ],
    [
      'a chat with a wrong message',
      { agentId: 'chat_conversation', input: { messages: [{ role: 'alien', content: 'x' }] } },
      400,
      'invalid_input',
      /^input\.messages\.0\.role /,
    ],
    [
      'a chat with an operation',
      { agentId: 'chat_conversation', operation: 'x', input: { prompt: 'hi' } },
      400,
      'agent_operation_invalid',
      /leave operation out/,
    ],
  ]
  for (const [what, body, status, code, message, field] of refusals) {
    test(`is refused with a code and the field: ${what}`, async () => {
      const before = (await server.provider.requests()).length
      const answer = await server.run(body)

      assert.deepEqual([answer.status, answer.body.code], [status, code], answer.text)
      assert.match(answer.body.message, message)
      if (field !== undefined) assert.equal(answer.body.details.field, field)
      assert.equal((await server.provider.requests()).length, before, 'no model is asked')
    })
  }

  test('gets no advice to name a user if its input names one', async () => {
    const run = (input: Json) => server.call('POST', '/v1/agent/run', { body: { agentId: 'contact_insight', input } })
    const named = await run({ userId: someone(), contactId: 'nobody' })
    assert.deepEqual([named.status, named.body.code], [404, 'contact_not_found'])
    assert.doesNotMatch(named.text, /names no user/)
  })

  test('is refused if it is too large for one request to a model', async () => {
    const answer = await server.run({ agentId: 'word', input: { text: 'x'.repeat(500_000) } })

    assert.deepEqual([answer.status, answer.body.code], [413, 'agent_data_too_large'])
  })
})
