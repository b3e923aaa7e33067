// A chain of models: the next one is asked if the one before cannot answer before its first word.
// The journal says so, later steps stay with the model that answered, and so does a restart.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import {
  type Answer,
  calls,
  countingIds,
  openRig,
  type Rig,
  type RigOptions,
  says,
  silence,
  toolOf,
} from '../../test/support/run-rig.ts'
import type { StepRequest } from '../engines/engine.ts'
import { AppError } from '../errors/app-error.ts'
import type { EventData, RunEvent } from '../journal/event.ts'
import type { ModelPart } from '../models/model.ts'

const chain = ['a/one', 'b/two', 'c/three']
const busy = () => new AppError('model_unavailable', 'a cannot answer now (503).', { retryable: true })

function failing(error: unknown, ...before: ModelPart[]): AsyncIterable<ModelPart[]> {
  return (async function* () {
    if (before.length > 0) yield before
    throw error
  })()
}

function dataOf<T extends RunEvent['type']>(events: readonly RunEvent[], type: T): EventData<T>[] {
  return events.flatMap((event) => (event.type === type ? [event.data as EventData<T>] : []))
}

async function opened(t: TestContext, options: RigOptions): Promise<Rig> {
  const rig = await openRig(options)
  t.after(() => rig.close())
  return rig
}

async function ended(rig: Rig, request = {}): Promise<RunEvent[]> {
  const { run } = await rig.start({ model: chain, ...request })
  await rig.until(run.id, ({ endedAt }) => endedAt !== null)
  return await rig.events(run.id)
}

/** Answers by model, and notes who was asked. */
function byModel(answers: Record<string, (request: StepRequest) => AsyncIterable<ModelPart[]>>) {
  const asked: string[] = []
  const answer: Answer = (request) => {
    asked.push(request.spec.model)
    return answers[request.spec.model]?.(request) ?? says('nobody')
  }
  return { asked, answer }
}

test('a model that cannot answer is followed by the next, and the journal says why', async (t) => {
  const { asked, answer } = byModel({
    'a/one': () => failing(busy()),
    'b/two': () => failing(new AppError('model_auth_failed', 'b refused the credentials (401). Check B_KEY.')),
    'c/three': () => says('Here.'),
  })
  const fallbacks: [string, string][] = []
  const rig = await opened(t, { answer })
  rig.dependencies.meter = {
    stepDone() {},
    answerDiscarded() {},
    toolDone() {},
    runStarted() {},
    modelFellBack: (model, reason) => void fallbacks.push([model, reason]),
  }

  const events = await ended(rig)

  assert.deepEqual(asked, chain)
  assert.equal(dataOf(events, 'run.ended')[0]?.output, 'Here.')
  const { model, fallbackModels } = dataOf(events, 'run.accepted')[0]?.spec ?? {}
  assert.deepEqual([model, fallbackModels], ['a/one', ['b/two', 'c/three']])
  assert.deepEqual(
    dataOf(events, 'diagnostic').map(({ code, details }) => [code, details]),
    [
      ['model_fallback', { from: 'a/one', to: 'b/two', reason: 'model_unavailable' }],
      ['model_fallback', { from: 'b/two', to: 'c/three', reason: 'model_auth_failed' }],
    ],
  )
  assert.deepEqual(
    dataOf(events, 'step.started').map(({ step, model: named }) => [step, named]),
    [
      [1, 'a/one'],
      [1, 'b/two'],
      [1, 'c/three'],
    ],
  )
  assert.deepEqual(fallbacks, [
    ['a/one', 'model_unavailable'],
    ['b/two', 'model_auth_failed'],
  ])
})

test('the steps after it stay with the model that answered, and so do usage and provider state', async (t) => {
  const state = { signed: 'by b' }
  const usage = { inputTokens: 5, outputTokens: 3 }
  let step = 0
  const { asked, answer } = byModel({
    'a/one': () => failing(busy()),
    'b/two'({ messages }) {
      step += 1
      if (step === 1) {
        return (async function* () {
          for await (const parts of calls({ callId: 'c1', name: 'look' }))
            yield parts.map((part) => (part.type === 'finish' ? { ...part, state, usage } : part))
        })()
      }
      assert.deepEqual(messages.find((message) => message.role === 'assistant')?.providerState, state)
      return says('Seen.')
    },
  })
  const look = toolOf({ name: 'look', run: async () => ({ ok: true, output: 'x', summary: 'x' }) })
  const rig = await opened(t, { answer, tools: [look] })

  const events = await ended(rig)

  assert.deepEqual(asked, ['a/one', 'b/two', 'b/two'])
  assert.equal(dataOf(events, 'run.ended')[0]?.output, 'Seen.')
  assert.equal(dataOf(events, 'step.done')[0]?.provider?.name, 'b')
  const period = { from: '0000-01-01', to: '9999-12-31' }
  const report = await rig.store.listUsage({ ...period, groupBy: 'model', owner: 'ada', limit: 10 })
  assert.deepEqual(
    report.rows.map(({ key, totals }) => [key, totals.steps]),
    [['b/two', 2]],
  )
})

const final: [what: string, error: () => unknown][] = [
  ['a bad request', () => new AppError('model_error', 'a refused the request (400).')],
  ['a filtered request', () => new AppError('model_content_filtered', 'a filtered the request.')],
]
for (const [what, error] of final) {
  test(`${what} is not sent to another model`, async (t) => {
    const { asked, answer } = byModel({ 'a/one': () => failing(error()) })
    const events = await ended(await opened(t, { answer }))

    assert.deepEqual(asked, ['a/one'])
    assert.equal(dataOf(events, 'run.ended')[0]?.error?.code, (error() as AppError).code)
  })
}

test('after the first word there is no other model', async (t) => {
  const { asked, answer } = byModel({ 'a/one': () => failing(busy(), { type: 'text', text: 'He' }) })
  const events = await ended(await opened(t, { answer }))

  assert.deepEqual(asked, ['a/one'])
  assert.equal(dataOf(events, 'run.ended')[0]?.error?.code, 'model_unavailable')
})

test('if no model can answer, the run fails with the error of the last one', async (t) => {
  const { asked, answer } = byModel({
    'a/one': () => failing(busy()),
    'b/two': () => failing(busy()),
    'c/three': () => failing(new AppError('model_rate_limited', 'c limits the rate of requests (429).')),
  })
  const events = await ended(await opened(t, { answer }))

  assert.deepEqual(asked, chain)
  assert.equal(dataOf(events, 'run.ended')[0]?.error?.code, 'model_rate_limited')
})

test('a restart after the fallback asks the same model again, and the one before is not asked', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-fallback-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'polylog.db')
  const first = await openRig({
    file,
    answer: ({ spec }, signal) => (spec.model === 'a/one' ? failing(busy()) : silence(signal)),
  })
  const { run } = await first.start({ model: chain })
  await first.until(run.id, ({ lastSeq }) => lastSeq >= 5)
  await first.close()
  const { asked, answer } = byModel({ 'b/two': () => says('Here.') })
  const second = await opened(t, { file, ids: countingIds('second'), answer })
  second.scheduler.start()

  await second.until(run.id, ({ endedAt }) => endedAt !== null)

  assert.deepEqual(asked, ['b/two'])
  const events = await second.events(run.id)
  assert.deepEqual(dataOf(events, 'run.ended')[0]?.output, 'Here.')
  assert.equal(dataOf(events, 'diagnostic').filter(({ code }) => code === 'model_fallback').length, 1)
})

test('a model that was already answering when the process stopped may be followed by another one', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-fallback-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'polylog.db')
  const first = await openRig({
    file,
    answer: async function* (_request, signal) {
      yield [{ type: 'text', text: 'Half an ' }]
      yield* silence(signal)
    },
  })
  const { run } = await first.start({ model: chain })
  await first.until(run.id, ({ lastSeq }) => lastSeq >= 4)
  await first.close()
  const { answer } = byModel({ 'a/one': () => failing(busy()), 'b/two': () => says('Another answer.') })
  const second = await opened(t, { file, ids: countingIds('second'), answer })
  second.scheduler.start()

  await second.until(run.id, ({ endedAt }) => endedAt !== null)

  const events = await second.events(run.id)
  assert.deepEqual(
    dataOf(events, 'message.done').map(({ text, state }) => [text, state]),
    [
      ['Half an ', 'superseded'],
      ['Another answer.', 'active'],
    ],
  )
  assert.equal(dataOf(events, 'run.ended')[0]?.status, 'succeeded')
})
