import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TurnPacer } from './turn-pacer.ts'

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))
const perTurn = 32

test('work that comes alone begins at once', async () => {
  const pacer = new TurnPacer(perTurn)
  for (let count = 0; count < 20; count += 1) {
    let begun = false
    pacer.enter(() => (begun = true))
    assert.equal(begun, true)
    await turn()
    await turn()
  }
})

test('a burst begins in order, a few in each turn of the event loop', async () => {
  const count = 500
  // Others come while the burst is worked off: in the middle, and when only a few of it are left.
  for (let late = 0; late < 40; late += 1) {
    const pacer = new TurnPacer(perTurn)
    const begun: number[] = []
    for (let index = 0; index < count; index += 1) pacer.enter(() => begun.push(index))
    assert.equal(begun.length, perTurn)

    for (let round = 0; begun.length <= count; round += 1) {
      const before: number = begun.length
      if (round === late) pacer.enter(() => begun.push(count))
      await turn()
      assert.ok(begun.length - before <= perTurn, 'no turn begins more')
      assert.ok(round < 200)
    }
    assert.equal(pacer.size, 0)
    assert.deepEqual(begun, [...Array(count + 1).keys()])
  }
})

test('work that waits with a promise begins in order too, and none is waited for if there is room', async () => {
  const pacer = new TurnPacer(2)
  const begun: number[] = []
  const waits = [0, 1, 2, 3, 4].map(async (index) => {
    const wait = pacer.wait()
    if (wait !== undefined) await wait
    begun.push(index)
  })
  assert.deepEqual(begun, [0, 1])
  assert.equal(pacer.size, 3)
  await waits[2]
  assert.equal(pacer.wait() === undefined, false, 'those that came before are first')
  await Promise.all(waits)
  assert.deepEqual(begun, [0, 1, 2, 3, 4])
})
