import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AppError } from '../errors/app-error.ts'
import { judgeAnswer, type OutputRule, repairRequest } from './output-check.ts'

const schema = { type: 'object', properties: { a: { type: 'number' } }, required: ['a'], additionalProperties: false }
const alone: OutputRule = { schema, mayAsk: false, invalid: () => new AppError('internal_error', '') }
const asking: OutputRule = { ...alone, mayAsk: true }
const first = { repaired: false, cutOff: false }

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
    assert.deepEqual(judgeAnswer(alone, text, first), { is: 'answer', output }, text.slice(0, 80))
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
    const verdict = judgeAnswer(alone, text, first)
    assert.ok(verdict.is === 'wrong', text.slice(0, 40))
    assert.match(verdict.errors.join(), error)
    assert.match(repairRequest(verdict.errors), error)
  }
})

test('where a person can be asked, plain words are a question, and JSON among words is first put to the model', () => {
  assert.deepEqual(judgeAnswer(asking, 'Which one, {a} or {b}?', first), { is: 'question' })
  assert.deepEqual(judgeAnswer(asking, 'Is {"b":1} right?', first), { is: 'question' })
  assert.equal(judgeAnswer(asking, 'Done: {"a":1}', first).is, 'wrong')
  assert.deepEqual(judgeAnswer(asking, 'Done: {"a":1}', { repaired: true, cutOff: false }), { is: 'question' })
  assert.deepEqual(judgeAnswer(asking, '{"a":1}', first), { is: 'answer', output: '{"a":1}' })
  assert.equal(judgeAnswer(asking, '{"a":"one"}', first).is, 'wrong')
})

test('an answer that the model could not finish is called cut off, and is no question', () => {
  const cutOff = { repaired: false, cutOff: true }
  for (const [rule, text] of [
    [alone, '{"a":'],
    [alone, ''],
    [asking, '{"a":'],
    [asking, '```json\n{"a":'],
  ] as const) {
    const verdict = judgeAnswer(rule, text, cutOff)
    assert.ok(verdict.is === 'wrong', text)
    assert.match(verdict.errors.join(), /cut off.*limit of tokens/)
  }
  assert.deepEqual(judgeAnswer(asking, 'Which one, the first', cutOff), { is: 'question' })
  assert.deepEqual(judgeAnswer(alone, '{"a":1}', cutOff), { is: 'answer', output: '{"a":1}' })
})

test('the errors that are shown to a model are few and short', () => {
  const verdict = judgeAnswer(alone, JSON.stringify({ ['x'.repeat(100_000)]: 1 }), first)

  assert.ok(verdict.is === 'wrong' && verdict.errors.length <= 5)
  assert.ok(verdict.errors.every((error) => error.length <= 300))
})

test('without a rule any text is the answer', () => {
  assert.deepEqual(judgeAnswer(undefined, 'anything', first), { is: 'answer', output: 'anything' })
})

test('a value that fits the schema is still wrong if the check of the rule finds something', () => {
  const checked: OutputRule = {
    schema: { type: 'object', required: ['source'] },
    mayAsk: false,
    check: (value) => ((value as { source: string }).source === 'known' ? [] : ['the source does not exist']),
    invalid: () => new AppError('output_validation_failed', 'No.'),
  }
  assert.equal(judgeAnswer(checked, '{"source":"known"}', first).is, 'answer')
  assert.deepEqual(judgeAnswer(checked, '{"source":"made up"}', first), {
    is: 'wrong',
    errors: ['the source does not exist'],
  })
  assert.equal(judgeAnswer(checked, 'Here: {"source":"made up"} and {"source":"known"}', first).is, 'answer')
  // The check may rely on the schema.
  assert.equal(judgeAnswer({ ...checked, check: () => assert.fail('not asked') }, '{}', first).is, 'wrong')
})
