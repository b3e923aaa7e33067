import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../test/support/manual-clock.ts'
import type { ManualClock } from '../../test/support/manual-clock.ts'
import { AppError } from '../errors/app-error.ts'
import type { ModelPart } from './model.ts'
import { withRetries } from './retry.ts'

const hello: ModelPart = { type: 'text', text: 'hello' }
const end: ModelPart = { type: 'finish', reason: 'stop' }
const busy = (details?: Record<string, unknown>) =>
  new AppError('model_unavailable', 'Busy.', { retryable: true, ...(details === undefined ? {} : { details }) })

/** Each attempt gives its parts, then throws its error. */
type Attempt = { parts?: ModelPart[]; error?: unknown }

function setUp(attempts: Attempt[], options: { random?: number; signal?: AbortSignal } = {}) {
  const clock = manualClock(0)
  const startedAt: number[] = []
  const start = async function* (): AsyncGenerator<ModelPart[]> {
    startedAt.push(clock.now())
    const attempt = attempts[startedAt.length - 1]
    if (attempt === undefined) throw new Error('one attempt too many')
    for (const part of attempt.parts ?? []) yield [part]
    if (attempt.error !== undefined) throw attempt.error
  }
  const stream = withRetries(start, options.signal ?? new AbortController().signal, {
    clock,
    random: () => options.random ?? 0,
    retries: 2,
    budgetMs: 8_000,
  })
  return { clock, startedAt, stream }
}

async function read(
  stream: AsyncIterable<ModelPart[]>,
  clock: ManualClock,
): Promise<{ parts: ModelPart[]; error?: unknown }> {
  const parts: ModelPart[] = []
  const reading = (async () => {
    try {
      for await (const some of stream) parts.push(...some)
      return { parts }
    } catch (error) {
      return { parts, error }
    }
  })()
  await clock.advance(60_000)
  return reading
}

test('a provider that fails twice before it says anything is asked a third time', async () => {
  const { clock, startedAt, stream } = setUp([{ error: busy() }, { error: busy() }, { parts: [hello, end] }])

  assert.deepEqual(await read(stream, clock), { parts: [hello, end] })
  assert.deepEqual(startedAt, [0, 250, 750])
})

test('what an attempt has spent is told, and does not prevent the next attempt', async () => {
  const spent: ModelPart = { type: 'spent', usage: { inputTokens: 5 } }
  const { clock, startedAt, stream } = setUp([{ parts: [spent], error: busy() }, { parts: [hello, end] }])

  assert.deepEqual(await read(stream, clock), { parts: [spent, hello, end] })
  assert.equal(startedAt.length, 2)
})

test('there are two retries and no third', async () => {
  const { clock, startedAt, stream } = setUp([{ error: busy() }, { error: busy() }, { error: busy() }])

  assert.equal(((await read(stream, clock)).error as AppError).code, 'model_unavailable')
  assert.equal(startedAt.length, 3)
})

test('nothing is asked again once something was said', async () => {
  const { clock, startedAt, stream } = setUp([{ parts: [hello], error: busy() }])

  const { parts, error } = await read(stream, clock)

  assert.deepEqual(parts, [hello])
  assert.ok(error instanceof AppError)
  assert.equal(startedAt.length, 1)
})

test('a failure that asking again cannot mend is not retried', async () => {
  for (const error of [new AppError('model_auth_failed', 'No.'), new TypeError('a bug')]) {
    const { clock, startedAt, stream } = setUp([{ error }])

    assert.equal((await read(stream, clock)).error, error)
    assert.equal(startedAt.length, 1)
  }
})

test('retries of many runs are spread by the jitter', async () => {
  const { clock, startedAt, stream } = setUp([{ error: busy() }, { parts: [end] }], { random: 0.5 })

  await read(stream, clock)

  assert.deepEqual(startedAt, [0, 375])
})

test('the provider is given the time it asked for', async () => {
  const { clock, startedAt, stream } = setUp([{ error: busy({ retryAfterMs: 5_000 }) }, { parts: [end] }])

  await read(stream, clock)

  assert.deepEqual(startedAt, [0, 5_000])
})

test('a wait that would exceed the budget is not begun', async () => {
  const late = setUp([{ error: busy({ retryAfterMs: 8_001 }) }])
  const twice = setUp([{ error: busy({ retryAfterMs: 5_000 }) }, { error: busy({ retryAfterMs: 5_000 }) }])

  assert.ok((await read(late.stream, late.clock)).error instanceof AppError)
  assert.deepEqual(late.startedAt, [0])
  assert.ok((await read(twice.stream, twice.clock)).error instanceof AppError)
  assert.deepEqual(twice.startedAt, [0, 5_000])
})

test('an abort ends the wait for the next attempt', async () => {
  const abort = new AbortController()
  const { clock, startedAt, stream } = setUp([{ error: busy() }], { signal: abort.signal })
  const first = stream[Symbol.asyncIterator]().next()
  const rejected = assert.rejects(first, /enough/)
  await clock.advance(100)

  abort.abort(new Error('enough'))
  await rejected

  assert.equal(clock.pending, 0)
  assert.equal(startedAt.length, 1)
})

test('a consumer that leaves closes the attempt', async () => {
  let closed = false
  const stream = withRetries(
    async function* () {
      try {
        yield [hello]
        yield [end]
      } finally {
        closed = true
      }
    },
    new AbortController().signal,
    { clock: manualClock(), random: () => 0, retries: 2, budgetMs: 8_000 },
  )

  for await (const _ of stream) break

  assert.equal(closed, true)
})
