import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AppError } from '../errors/app-error.ts'
import { CircuitBreaker, withBreaker } from './circuit-breaker.ts'
import type { TurnEngine, TurnPart, TurnRequest } from './engine.ts'

function breakerAt(): { breaker: CircuitBreaker; wait(ms: number): void } {
  let now = 0
  const breaker = new CircuitBreaker({ monotonic: () => now })
  return {
    breaker,
    wait(ms) {
      now += ms
    },
  }
}

test('the breaker opens after three failures in a row, and a success closes it', () => {
  const { breaker } = breakerAt()
  breaker.failed()
  breaker.failed()
  breaker.succeeded()
  breaker.failed()
  breaker.failed()
  assert.equal(breaker.state, 'available')
  breaker.failed()
  assert.equal(breaker.state, 'paused')
  assert.equal(breaker.admit(), false)
})

test('after the pause one trial is let through, and each failed trial doubles the pause up to five minutes', () => {
  const { breaker, wait } = breakerAt()
  for (let count = 0; count < 3; count += 1) breaker.failed()
  for (const pause of [10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]) {
    wait(pause - 1)
    assert.equal(breaker.admit(), false, `before ${pause}`)
    wait(1)
    assert.equal(breaker.admit(), true, `after ${pause}`)
    assert.equal(breaker.admit(), false, 'only one trial at a time')
    breaker.failed()
  }
  wait(300_000)
  assert.equal(breaker.admit(), true)
  breaker.succeeded()
  assert.equal(breaker.state, 'available')
})

test('a trial without a verdict lets the next one through', () => {
  const { breaker, wait } = breakerAt()
  for (let count = 0; count < 3; count += 1) breaker.failed()
  wait(10_000)
  assert.equal(breaker.admit(), true)
  breaker.abandoned()
  assert.equal(breaker.admit(), true)
})

const request = {} as TurnRequest
const decisions = { of: () => undefined }

async function take(engine: TurnEngine, handle?: string): Promise<string> {
  try {
    for await (const parts of engine.turn(request, handle, decisions, new AbortController().signal)) void parts
    return 'answered'
  } catch (error) {
    return (error as AppError).code
  }
}

test('a dead gateway is asked three times and then not again, except for turns that are under way', async () => {
  const { breaker, wait } = breakerAt()
  let asked = 0
  let alive = false
  const engine = withBreaker(
    {
      kind: 'turn',
      name: 'remote',
      canEditInput: false,
      abort: () => Promise.resolve(),
      async *turn(): AsyncGenerator<TurnPart[]> {
        asked += 1
        if (!alive) throw new AppError('engine_unavailable', 'down')
        yield [{ type: 'finish', reason: 'stop' }]
      },
    },
    breaker,
  )
  for (let count = 0; count < 10; count += 1) assert.equal(await take(engine), 'engine_unavailable')
  assert.equal(asked, 3)
  await take(engine, 'handle')
  assert.equal(asked, 4)
  alive = true
  assert.equal(await take(engine), 'engine_unavailable')
  wait(20_000)
  assert.equal(await take(engine), 'answered')
  assert.equal(await take(engine), 'answered')
  assert.equal(asked, 6)
})

test('a handle does not count as a success, because it is written before the gateway answers', async () => {
  const { breaker } = breakerAt()
  let asked = 0
  const engine = withBreaker(
    {
      kind: 'turn',
      name: 'remote',
      canEditInput: false,
      abort: () => Promise.resolve(),
      async *turn(): AsyncGenerator<TurnPart[]> {
        asked += 1
        yield [{ type: 'handle', handle: 1 }]
        throw new AppError('engine_unavailable', 'HTTP 503')
      },
    },
    breaker,
  )
  for (let count = 0; count < 10; count += 1) assert.equal(await take(engine), 'engine_unavailable')
  assert.equal(asked, 3)
})
