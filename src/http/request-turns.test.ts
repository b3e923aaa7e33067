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
  const count = 500
  // Others come while the burst is worked off: in the middle, and when only a few of it are left.
  for (let late = 0; late < 40; late += 1) {
    const turns = new RequestTurns()
    const begun: number[] = []
    for (let index = 0; index < count; index += 1) turns.enter(() => begun.push(index))
    const perTurn = begun.length
    assert.ok(perTurn > 0 && perTurn < 50, `${perTurn} at once`)

    for (let round = 0; begun.length <= count; round += 1) {
      const before = begun.length
      if (round === late) turns.enter(() => begun.push(count))
      await turn()
      assert.ok(begun.length - before <= perTurn, 'no turn begins more')
      assert.ok(round < 200)
    }
    assert.equal(turns.size, 0)
    assert.deepEqual(begun, [...Array(count + 1).keys()])
  }
})
