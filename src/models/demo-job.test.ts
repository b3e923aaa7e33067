import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ModelMessage } from './model.ts'
import { fillSchema } from './demo-form.ts'
import { planDemoJob } from './demo-job.ts'

const tool = (name: string) => ({ name, description: '', inputSchema: {} })
const opening = 'You carry out one job with the skill s. Follow it.'
const questions =
  '\n\n## Questions\n\n- choose_one: Which? [options]\n- fill_fields: Who? [name | age]\n- open_text: Why?\n\n## Answer\n\n- confirm: not a question'
const request = (system: string, user: string, later: ModelMessage[] = [], tools = ['ask_user']) => ({
  model: 'demo',
  messages: [{ role: 'system' as const, content: system }, { role: 'user' as const, content: user }, ...later],
  tools: tools.map(tool),
})
const turn = (callId: string, input: object, result: string): ModelMessage[] => [
  { role: 'assistant', content: '', toolCalls: [{ callId, name: 'ask_user', input: input as never }] },
  { role: 'tool', callId, name: 'ask_user', content: result, isError: false },
]

test('what is not a job is left to the rest of the demo model', () => {
  assert.equal(planDemoJob(request('You are kind.', 'Hello')), undefined)
})

test('the questions of a skill are asked one by one, with the options of the input', () => {
  const input = 'Input (JSON):\n{"options":["a","b"]}'
  const first = planDemoJob(request(opening + questions, input))
  const second = planDemoJob(request(opening + questions, input, turn('1', {}, 'a')))
  const last = planDemoJob(
    request(opening + questions, input, [...turn('1', {}, 'a'), ...turn('2', {}, 'x'), ...turn('3', {}, 'y')]),
  )

  assert.deepEqual(first?.calls, [
    { name: 'ask_user', input: { question: 'Which?', kind: 'choose_one', options: ['a', 'b'] } },
  ])
  assert.deepEqual(second?.calls[0]?.input, { question: 'Who?', kind: 'fill_fields', fields: ['name', 'age'] })
  assert.deepEqual(last?.calls, [])
})

test('a job that may not ask is done without asking', () => {
  assert.deepEqual(planDemoJob(request(opening + questions, 'Input (JSON):\n{}', [], []))?.calls, [])
})

test('any schema is filled with something that fits its types', () => {
  const schema = {
    type: 'object',
    properties: {
      kind: { enum: ['x', 'y'] },
      fixed: { const: 7 },
      least: { type: 'integer', minimum: 3 },
      maybe: { type: ['string', 'null'] },
      list: { type: 'array', minItems: 2, items: { type: 'boolean' } },
      deep: { type: 'object', properties: { text: { type: 'string' } } },
    },
  }
  const facts = { text: 'One. Two.', input: { text: 'One. Two.' }, parameter: {}, answers: [] }

  assert.deepEqual(fillSchema(schema, facts), {
    kind: 'x',
    fixed: 7,
    least: 3,
    maybe: 'One. Two.',
    list: [false, false],
    deep: { text: 'One. Two.' },
  })
})

test('a schema that multiplies is filled only up to a bound', () => {
  let schema: Record<string, unknown> = { type: 'string' }
  for (let depth = 0; depth < 8; depth += 1) schema = { type: 'array', minItems: 20, items: schema }
  const facts = { text: 'One.', input: {}, parameter: {}, answers: [] }

  const filled = JSON.stringify(fillSchema(schema as never, facts))

  assert.ok(filled.length < 100_000, `${filled.length} characters`)
})

test('a large value of the input that a schema names again and again is repeated only up to a bound', () => {
  const properties = Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`p${n}`, part()]))
  const facts = { text: '', input: { text: 'x'.repeat(100_000) }, parameter: {}, answers: [] }

  const filled = JSON.stringify(fillSchema({ type: 'object', properties }, facts))

  assert.ok(filled.length < 1_000_000, `${filled.length} characters`)

  function part() {
    return { type: 'object', properties: { text: { type: 'string' } } }
  }
})

test('hostile instructions and files are read in bounded work', () => {
  const questions = `\n\n## Questions\n\n- confirm: ${' ['.repeat(400_000)}\n- confirm: Sure?`
  const first = planDemoJob(request(opening + questions, `Input (JSON):\n{"text":"${' '.repeat(400_000)}"}`))

  assert.equal(first?.calls.length, 0)
  assert.ok((first?.text.length ?? 0) < 2000)
})
