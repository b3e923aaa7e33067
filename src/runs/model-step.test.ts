// The bounds of one step: a model that never stops, or calls too many tools at once, fails its
// run and does not harm the server.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { openRig } from '../../test/support/run-rig.ts'
import type { ModelPart } from '../models/model.ts'

const megabyte = 'x'.repeat(1024 * 1024)
const call = (number: number, rawInput = '{}'): ModelPart => ({
  type: 'tool-call',
  callId: `c${number}`,
  name: 'any',
  rawInput,
  ...(rawInput === '{}' ? { input: {} } : {}),
})

async function endOf(t: TestContext, answer: () => AsyncIterable<ModelPart[]>) {
  const rig = await openRig({ answer })
  t.after(() => rig.close())
  const { run } = await rig.start()
  await rig.until(run.id, ({ endedAt }) => endedAt !== null)
  const events = await rig.events(run.id)
  const end = events.find((event) => event.type === 'run.ended')
  assert.ok(end?.type === 'run.ended')
  return { status: end.data.status, code: end.data.error?.code, events }
}

const endless: [what: string, part: ModelPart][] = [
  ['reasoning', { type: 'reasoning', text: megabyte }],
  ['text', { type: 'text', text: megabyte }],
  ['arguments', call(1, megabyte)],
]
for (const [what, part] of endless) {
  test(`${what} without an end is stopped at the limit of an answer`, async (t) => {
    let batches = 0
    const { status, code } = await endOf(t, async function* () {
      for (;;) {
        batches += 1
        yield [part, part, part, part]
      }
    })

    assert.equal(status, 'failed')
    assert.equal(code, 'model_error')
    assert.ok(batches <= 20, `${batches} batches of 4 MiB were taken`)
  })
}

test('text, reasoning and arguments count together', async (t) => {
  let batches = 0
  const { code } = await endOf(t, async function* () {
    for (;;) {
      batches += 1
      yield endless.map(([, part]) => part)
    }
  })

  assert.equal(code, 'model_error')
  assert.ok(batches <= 25, `${batches} batches of 3 MiB were taken`)
})

test('a step that asks for too many tool calls fails, and none of them is made', async (t) => {
  const { status, code, events } = await endOf(t, async function* () {
    yield [...Array.from({ length: 129 }, (_, number) => call(number)), { type: 'finish', reason: 'tool-calls' }]
  })

  assert.equal(status, 'failed')
  assert.equal(code, 'tool_calls_too_many')
  assert.equal(events.filter((event) => event.type === 'tool.called').length, 0)
})

test('a character that the model sends in two halves is shown whole', async (t) => {
  const { status, events } = await endOf(t, async function* () {
    yield [{ type: 'reasoning', text: 'Hm \ud83d' }]
    yield [{ type: 'reasoning', text: '\ude00' }]
    yield [{ type: 'text', text: 'A smile: \ud83d' }]
    yield [{ type: 'text', text: '\ude00!' }]
    yield [
      { type: 'text', text: ' \ud83d' },
      { type: 'finish', reason: 'stop' },
    ]
  })

  assert.equal(status, 'succeeded')
  const pieces = (type: 'text.delta' | 'reasoning.delta') =>
    events.flatMap((event) => (event.type === type ? [event.data.text] : []))
  assert.deepEqual(pieces('text.delta'), ['A smile: ', '😀!', ' ', '\ufffd'])
  assert.deepEqual(pieces('reasoning.delta'), ['Hm ', '😀'])
  const message = events.find((event) => event.type === 'message.done')
  assert.equal(message?.type === 'message.done' && message.data.text, 'A smile: 😀! \ufffd')
})
