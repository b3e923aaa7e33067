import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RequestTurns } from './request-turns.ts'

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

test('requests that come alone begin at once', async () => {
  const turns = new RequestTurns()
  for (let count = 0; count < 20; count += 1) {
    let begun = false
    turns.enter(() => (begun = true))
    assert.equal(begun, true)
    await turn()
    await turn()
  }
})

test('a burst of requests begins in order, a few in each turn of the event loop', async () => {
  const turns = new RequestTurns()
  const begun: number[] = []
  for (let index = 0; index < 100; index += 1) turns.enter(() => begun.push(index))
  const perTurn = begun.length
  assert.ok(perTurn > 0 && perTurn < 50, `${perTurn} at once`)

  let rounds = 0
  while (turns.size > 0 || begun.length < 100) {
    const before = begun.length
    await turn()
    assert.ok(begun.length - before <= perTurn, 'no turn begins more')
    if (rounds === 2) turns.enter(() => begun.push(100))
    rounds += 1
    assert.ok(rounds < 200)
  }
  while (begun.length < 101) await turn()

  assert.deepEqual(
    begun,
    Array.from({ length: 101 }, (_, index) => index),
  )
})
