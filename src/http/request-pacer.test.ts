import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RequestPacer } from './request-pacer.ts'

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

test('requests that come alone begin at once', async () => {
  const pacer = new RequestPacer()
  for (let count = 0; count < 20; count += 1) {
    let begun = false
    pacer.enter(() => (begun = true))
    assert.equal(begun, true)
    await turn()
    await turn()
  }
})

test('a burst of requests begins in order, a few in each turn of the event loop', async () => {
  const count = 500
  // Others come while the burst is worked off: in the middle, and when only a few of it are left.
  for (let late = 0; late < 40; late += 1) {
    const pacer = new RequestPacer()
    const begun: number[] = []
    for (let index = 0; index < count; index += 1) pacer.enter(() => begun.push(index))
    const perTurn = begun.length
    assert.ok(perTurn > 0 && perTurn < 50, `${perTurn} at once`)

    for (let round = 0; begun.length <= count; round += 1) {
      const before = begun.length
      if (round === late) pacer.enter(() => begun.push(count))
      await turn()
      assert.ok(begun.length - before <= perTurn, 'no turn begins more')
      assert.ok(round < 200)
    }
    assert.equal(pacer.size, 0)
    assert.deepEqual(begun, [...Array(count + 1).keys()])
  }
})
