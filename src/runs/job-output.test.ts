import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkOutput, jsonOf, outputData } from './job-output.ts'

const skill = { id: 's', name: 'S', text: 'x', outputSchema: { type: 'object', required: ['a'] } }
const free = { id: 's', name: 'S', text: 'x' }

test('an answer is JSON as a whole, or one fenced block; JSON inside prose is not looked for', () => {
  assert.deepEqual(jsonOf(' {"a":1}\n'), { a: 1 })
  assert.deepEqual(jsonOf('```json\n{"a":1}\n```'), { a: 1 })
  assert.equal(jsonOf('Here it is: {"a":1}'), undefined)
  assert.equal(jsonOf('```json\n{"a":1}\n``` done'), undefined)
})

test('an answer has to fit the schema of its skill, where it has one', () => {
  checkOutput(skill, '{"a":1}')
  checkOutput(free, 'anything')
  checkOutput(undefined, 'anything')
  for (const answer of ['{}', '[]', 'a', ''])
    assert.throws(() => checkOutput(skill, answer), { code: 'job_output_invalid' })
})

test('without a schema the data of a result is the text', () => {
  assert.deepEqual([outputData(skill, '{"a":1}'), outputData(free, '{"a":1}')], [{ a: 1 }, { text: '{"a":1}' }])
})
