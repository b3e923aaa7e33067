import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newRunState, type RunState, type StepState } from '../journal/run-state.ts'
import { judgeAnswer, outputData, outputRuleOf, repairLevelOf, repairRequest } from './output-check.ts'

const schema = { type: 'object', properties: { a: { type: 'number' } }, required: ['a'], additionalProperties: false }
const skill = { id: 's', name: 'S', text: 'x', outputSchema: schema }
const free = { id: 's', name: 'S', text: 'x' }
const alone = outputRuleOf({ skill })
const asking = alone === undefined ? undefined : { ...alone, mayAsk: true }

test('an answer is the JSON that fits, without what stands around it', () => {
  const answers: [text: string, output: string][] = [
    ['{"a":1}', '{"a":1}'],
    [' {"a":1}\n', '{"a":1}'],
    ['```json\n{"a":1}\n```', '{"a":1}'],
    [`{"a":1}${' '.repeat(4 * 1024 * 1024 - 7)}`, '{"a":1}'],
    ['Here it is:\n```json\n{"a":1}\n```\nAnything else?', '{"a":1}'],
    ['Of {curly} things, {"a":1} fits and {"b":2} does not.', '{"a":1}'],
  ]
  for (const [text, output] of answers)
    assert.deepEqual(judgeAnswer(alone, text, false), { is: 'answer', output }, text.slice(0, 80))
})

test('what is wrong with an answer is named; nothing is guessed', () => {
  const wrong: [text: string, error: RegExp][] = [
    ['', /empty/],
    ['Sorry, I cannot.', /not JSON/],
    ['{"a":"one"}', /a must be number/],
    ['["a"]', /must be object/],
    ['The answer: {"a":"one"}', /a must be number/],
    ['Either {"a":1} or {"a":2}.', /more than one/],
    [`{"a":1}${' '.repeat(4 * 1024 * 1024 - 6)}`, /longer than/],
  ]
  for (const [text, error] of wrong) {
    const verdict = judgeAnswer(alone, text, false)
    assert.ok(verdict.is === 'wrong', text.slice(0, 40))
    assert.match(verdict.errors.join(), error)
    assert.match(repairRequest(verdict.errors), error)
  }
})

test('where a person can be asked, plain words are a question, and JSON among words is first put to the model', () => {
  assert.deepEqual(judgeAnswer(asking, 'Which one, {a} or {b}?', false), { is: 'question' })
  assert.deepEqual(judgeAnswer(asking, 'Is {"b":1} right?', false), { is: 'question' })
  assert.equal(judgeAnswer(asking, 'Done: {"a":1}', false).is, 'wrong')
  assert.deepEqual(judgeAnswer(asking, 'Done: {"a":1}', true), { is: 'question' })
  assert.deepEqual(judgeAnswer(asking, '{"a":1}', false), { is: 'answer', output: '{"a":1}' })
  assert.equal(judgeAnswer(asking, '{"a":"one"}', false).is, 'wrong')
})

test('errors that a model is told are few and short', () => {
  const verdict = judgeAnswer(alone, JSON.stringify({ ['x'.repeat(100_000)]: 1 }), false)

  assert.ok(verdict.is === 'wrong' && verdict.errors.length <= 5)
  assert.ok(verdict.errors.every((error) => error.length <= 300))
})

test('without a schema any text is the answer, and the data of a result is that text', () => {
  assert.equal(outputRuleOf({ skill: free }), undefined)
  assert.deepEqual(judgeAnswer(undefined, 'anything', false), { is: 'answer', output: 'anything' })
  assert.deepEqual([outputData(skill, '{"a":1}'), outputData(free, '{"a":1}')], [{ a: 1 }, { text: '{"a":1}' }])
})

test('how an answer became the output of its run is told', () => {
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
