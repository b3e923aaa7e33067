import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseCallArguments } from './answer-parts.ts'

test('arguments that a journal cannot hold are not valid: broken JSON, and numbers that are too large', () => {
  assert.deepEqual(parseCallArguments('{"amount":1e300,"list":[-0.5]}', 'tool-calls'), { amount: 1e300, list: [-0.5] })
  for (const text of ['{"amount":1e999}', '{"list":[1,[-1e999]]}', '{"amount":1', 'Infinity'])
    assert.equal(parseCallArguments(text, 'tool-calls'), undefined, text)
})
