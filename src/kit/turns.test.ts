import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Turns } from './turns.ts'

/** An event loop with a clock that only the work moves. */
function manualLoop() {
  let now = 0
  let scheduled: (() => void)[] = []
  const turns = new Turns({ clock: { monotonic: () => now }, schedule: (run) => void scheduled.push(run) })
  return {
    turns,
    work: (ms: number) => (now += ms),
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

test('long work of several requests at once is spread over turns, in their order', async () => {
  const { turns, work, turn } = manualLoop()
  const log: string[] = []
  const read = async (name: string) => {
    for (const page of [1, 2]) {
      await turns.next()
      log.push(`${name}${page}`)
      work(20)
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

test('short work of many requests shares a turn', async () => {
  const { turns, work, turn } = manualLoop()
  let done = 0
  for (let count = 0; count < 8; count += 1) {
    void turns.next().then(() => {
      done += 1
      work(2)
    })
  }

  await turn()
  assert.equal(done, 5)
  await turn()
  assert.equal(done, 8)
})

test('nothing is scheduled when nobody waits', async () => {
  const loop = manualLoop()
  void loop.turns.next()

  await loop.turn()
  await loop.turn()

  assert.equal(loop.isIdle, true)
})
