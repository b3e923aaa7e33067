import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Turns } from './turns.ts'

function manualLoop() {
  let scheduled: (() => void)[] = []
  return {
    turns: new Turns((run) => void scheduled.push(run)),
    /** One turn: what was scheduled before it, each with the promises that it settles. */
    async turn() {
      const due = scheduled
      scheduled = []
      for (const run of due) {
        run()
        await new Promise((resolve) => setImmediate(resolve))
      }
    },
    get isIdle() {
      return scheduled.length === 0
    },
  }
}

test('of several requests with long work, one goes on in each turn, in their order', async () => {
  const { turns, turn } = manualLoop()
  const log: string[] = []
  const read = async (name: string) => {
    for (const page of [1, 2]) {
      await turns.next()
      log.push(`${name}${page}`)
    }
  }
  void Promise.all([read('a'), read('b'), read('c')])
  const byTurn: string[][] = []

  for (let count = 0; count < 6; count += 1) {
    await turn()
    byTurn.push(log.splice(0))
  }

  assert.deepEqual(byTurn, [['a1'], ['b1'], ['c1'], ['a2'], ['b2'], ['c2']])
})

test('nothing is scheduled when nobody waits', async () => {
  const loop = manualLoop()
  void loop.turns.next()

  await loop.turn()

  assert.equal(loop.isIdle, true)
})
