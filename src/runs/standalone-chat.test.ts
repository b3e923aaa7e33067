import assert from 'node:assert/strict'
import { test } from 'node:test'
import { standaloneHistory, historyText } from './standalone-chat.ts'
import type { EarlierMessage } from './start-request.ts'

const mebibyte = 1024 * 1024

function turn(name: string, chars: number): EarlierMessage[] {
  return [
    { role: 'user', content: name },
    { role: 'assistant', content: '', toolCalls: [{ callId: 'c', name: 'look', input: {} }] },
    { role: 'tool', callId: 'c', name: 'look', content: 'x'.repeat(chars) },
  ]
}

test('a history that no model can read loses its oldest turns, and never half of one', () => {
  const history = [...turn('one', 3 * mebibyte), ...turn('two', mebibyte), ...turn('three', mebibyte)]

  const kept = JSON.parse(historyText(history)) as EarlierMessage[]

  assert.deepEqual(kept, [...turn('two', mebibyte), ...turn('three', mebibyte)])
  assert.deepEqual(JSON.parse(historyText(turn('one', 10))), turn('one', 10))
  assert.deepEqual(JSON.parse(historyText(turn('one', 5 * mebibyte))), [])
})

test('the stored history becomes rows with the calls and results in order', async () => {
  const body = historyText(turn('one', 3))
  const accepted = {
    owner: 'ada',
    family: 'openai-chat',
    conversationId: null,
    userMessageId: null,
    input: 'x',
    historyRef: 'history_1',
    spec: { agentId: 'a', engine: 'local', model: 'demo/demo' },
  }
  const readBlob = async (id: string) => (id === 'history_1' ? { runId: 'r', body } : undefined)

  const rows = await standaloneHistory('r', accepted, { readBlob })

  assert.deepEqual(
    rows.map(({ role, content, toolCallId }) => [role, content, toolCallId]),
    [
      ['user', 'one', null],
      ['assistant', '', null],
      ['tool', 'xxx', 'c'],
    ],
  )
  assert.equal(new Set(rows.map(({ id }) => id)).size, 3)
  assert.deepEqual(await standaloneHistory('r', { ...accepted, historyRef: 'gone' }, { readBlob }), [])
  // The history of another run.
  assert.deepEqual(await standaloneHistory('s', accepted, { readBlob }), [])
})
