// The local engine against a provider in its own process, which counts the requests that it
// really got.

import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { startFakeProvider } from '../../../test/support/fake-provider.ts'
import type { Action, FakeProvider } from '../../../test/support/fake-provider.ts'
import type { AppError } from '../../errors/app-error.ts'
import { systemClock } from '../../kit/clock.ts'
import type { Clock } from '../../kit/clock.ts'
import type { ModelPart } from '../../models/model.ts'
import { createModels } from '../../models/providers.ts'
import type { StepRequest } from '../engine.ts'
import { createLocalEngine } from './local-engine.ts'

let provider: FakeProvider

before(async () => {
  provider = await startFakeProvider()
})
beforeEach(() => provider.reset())
after(() => provider.stop())

const busy: Action[] = [{ status: 503 }]
const fine: Action[] = [{ text: 'fine' }, { finish: 'stop' }]

/** Notes what is waited for, and does not wait. */
function impatientClock(): Clock & { waits: number[] } {
  const waits: number[] = []
  let ahead = 0
  return {
    waits,
    now: () => ahead,
    monotonic: () => ahead,
    after(delayMs, fire) {
      waits.push(delayMs)
      ahead += delayMs
      const handle = setImmediate(fire)
      return { cancel: () => clearImmediate(handle) }
    },
  }
}

async function step(spec: Partial<StepRequest['spec']> = {}, signal = new AbortController().signal) {
  const clock = impatientClock()
  const models = createModels({ openaiBaseUrl: provider.baseUrl, ids: () => 'id', clock: systemClock })
  const engine = createLocalEngine({ models, clock, random: () => 0 })
  const request: StepRequest = {
    runId: 'r1',
    spec: { agentId: 'a', engine: 'local', model: 'openai/vendor/fake', ...spec },
    messages: [{ role: 'user', content: 'Hello' }],
    tools: [],
  }
  const parts: ModelPart[] = []
  let error: unknown
  try {
    for await (const some of engine.step(request, signal)) parts.push(...some)
  } catch (thrown) {
    error = thrown
  }
  return { parts, error, waits: clock.waits, asked: (await provider.requests()).length }
}

test('a step asks the model of the run with its settings', async () => {
  const { parts } = await step({ temperature: 0.25, maxTokens: 9 })

  const body = (await provider.requests())[0]?.body
  assert.equal(parts.at(-1)?.type, 'finish')
  assert.equal(body?.model, 'vendor/fake')
  assert.equal(body?.['temperature'], 0.25)
  assert.equal(body?.['max_tokens'], 9)
})

test('a provider that is busy twice is asked three times', async () => {
  await provider.script([busy, busy, fine])

  const { parts, asked, waits } = await step()

  assert.deepEqual(parts[0], { type: 'text', text: 'fine' })
  assert.equal(asked, 3)
  assert.deepEqual(waits, [250, 500])
})

test('after two retries the failure is reported', async () => {
  await provider.script([busy, busy, busy, fine])

  const { error, asked } = await step()

  assert.equal((error as AppError).code, 'model_unavailable')
  assert.equal(asked, 3)
})

test('an answer that was cut before its first word is asked for again', async () => {
  await provider.script([[{ cut: true }], fine])

  const { parts, asked } = await step()

  assert.equal(asked, 2)
  assert.deepEqual(parts[0], { type: 'text', text: 'fine' })
})

test('an answer that was cut after its first word is not', async () => {
  await provider.script([[{ text: 'half' }, { cut: true }], fine])

  const { parts, error, asked } = await step()

  assert.equal(asked, 1)
  assert.deepEqual(parts, [{ type: 'text', text: 'half' }])
  assert.equal((error as AppError).code, 'model_stream_incomplete')
})

test('a rate limit is waited for as long as the provider says', async () => {
  await provider.script([[{ status: 429, headers: { 'retry-after': '6' } }], fine])

  const { asked, waits } = await step()

  assert.equal(asked, 2)
  assert.deepEqual(waits, [6_000])
})

test('a rate limit that lasts longer than the retry budget is reported at once', async () => {
  await provider.script([[{ status: 429, headers: { 'retry-after': '60' } }], fine])

  const { asked, waits, error } = await step()

  assert.equal(asked, 1)
  assert.deepEqual(waits, [])
  assert.equal((error as AppError).code, 'model_rate_limited')
})

test('a refused key is reported at once', async () => {
  await provider.script([[{ status: 401 }], fine])

  const { asked, error } = await step()

  assert.equal(asked, 1)
  assert.equal((error as AppError).code, 'model_auth_failed')
})

test('the error for a model whose provider is gone names the model', async () => {
  const models = createModels({ ids: () => 'id', clock: systemClock })
  const engine = createLocalEngine({ models, clock: impatientClock(), random: () => 0 })
  const request: StepRequest = {
    runId: 'r',
    spec: { agentId: 'a', engine: 'local', model: 'anthropic/x' },
    messages: [],
    tools: [],
  }

  assert.throws(() => engine.step(request, new AbortController().signal), { code: 'unknown_model' })
})
