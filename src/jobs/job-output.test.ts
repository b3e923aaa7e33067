import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newRunState, type RunState, type StepState } from '../journal/run-state.ts'
import { outputData, outputRuleOf, repairLevelOf } from './job-output.ts'

const schema = { type: 'object', properties: { a: { type: 'number' } }, required: ['a'], additionalProperties: false }
const skill = { id: 's', name: 'S', text: 'x', outputSchema: schema }
const free = { id: 's', name: 'S', text: 'x' }

test('a skill with an output schema gives a rule, and without one any text is the data of the result', () => {
  assert.equal(outputRuleOf({ skill: free }), undefined)
  assert.deepEqual([outputRuleOf({ skill })?.schema, outputRuleOf({ skill })?.mayAsk], [schema, false])
  assert.deepEqual([outputData(skill, '{"a":1}'), outputData(free, '{"a":1}')], [{ a: 1 }, { text: '{"a":1}' }])
})

test('it is recorded how an answer became the output of its run', () => {
  const run = (said: string, output: string, changes: Partial<RunState> = {}): RunState => ({
    ...newRunState(),
    steps: [{ finished: true, text: said } as StepState, { finished: false, text: 'torn' } as StepState],
    ended: { status: 'succeeded', output },
    ...changes,
  })
  assert.equal(repairLevelOf(run(' {"a":1}\n', '{"a":1}')), 'none')
  assert.equal(repairLevelOf(run('Here: {"a":1}', '{"a":1}')), 'deterministic_generic')
  assert.equal(repairLevelOf(run('{"a":1}', '{"a":1}', { rejectedOutputs: new Map([[1, ['wrong']]]) })), 'model_round')
  assert.equal(repairLevelOf(run('no', 'x', { ended: { status: 'failed' } })), 'none')
  const reused = { runId: 'r', output: 'x', artifacts: [] }
  assert.equal(repairLevelOf(run('', 'x', { steps: [], reused })), 'none')
})
