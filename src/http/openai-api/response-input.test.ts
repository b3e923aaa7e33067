import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readInput } from './response-input.ts'

test('calls that follow each other are one message, and their results come after it', () => {
  const { messages, answers } = readInput([
    { role: 'user', content: 'hi' },
    { type: 'reasoning', id: 'rs_1' },
    { type: 'function_call', call_id: 'a', name: 'look', arguments: '{}' },
    { type: 'function_call', call_id: 'b', name: 'look', arguments: '{}' },
    { type: 'function_call_output', call_id: 'a', output: 'A' },
    { type: 'function_call_output', call_id: 'b', output: [{ type: 'input_text', text: 'B' }] },
  ])

  assert.deepEqual(
    messages.map(({ role, tool_calls = [], tool_call_id }) => [role, tool_calls.map(({ id }) => id), tool_call_id]),
    [
      ['user', [], undefined],
      ['assistant', ['a', 'b'], undefined],
      ['tool', [], 'a'],
      ['tool', [], 'b'],
    ],
  )
  assert.deepEqual(answers, [
    { id: 'a', output: 'A' },
    { id: 'b', output: 'B' },
  ])
})

test('results before the last message of the user are history, not answers', () => {
  const { answers } = readInput([
    { type: 'function_call', call_id: 'a', name: 'look', arguments: '{}' },
    { type: 'function_call_output', call_id: 'a', output: 'A' },
    { role: 'user', content: 'thanks' },
  ])

  assert.deepEqual(answers, [])
})

test('an approval is an answer that says yes or no by its form', () => {
  const { answers } = readInput([
    { type: 'mcp_approval_response', approval_request_id: 'q', approve: false, reason: 'Not now.' },
  ])

  assert.deepEqual(answers, [{ id: 'q', output: 'Not now.', approved: false }])
})

test('a call of the server that a client sends back is a call with its result', () => {
  const { messages, answers } = readInput([
    { type: 'mcp_call', id: 'mcp_1', name: 'look', arguments: '{"a":1}', output: 'found' },
    { role: 'user', content: 'and?' },
  ])

  assert.deepEqual(messages.slice(0, 2), [
    { role: 'assistant', content: '', tool_calls: [{ id: 'mcp_1', function: { name: 'look', arguments: '{"a":1}' } }] },
    { role: 'tool', content: 'found', tool_call_id: 'mcp_1' },
  ])
  assert.deepEqual(answers, [])
})

test('an item that cannot be read is named', () => {
  assert.throws(() => readInput([{ role: 'user', content: 'x' }, { type: 'computer_call' }]), {
    code: 'unsupported_content',
    message: /^input\[1\]: items of type "computer_call"/,
  })
  assert.throws(() => readInput([{ type: 'function_call_output', output: 'x' }]), { code: 'messages_invalid' })
  assert.throws(() => readInput([{ content: 'x' }]), { code: 'messages_invalid' })
})
