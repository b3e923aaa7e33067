import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fcmpDialect } from '../../dialects/fcmp/fcmp.ts'
import type { RunEvent } from '../../journal/event.ts'
import { checkRunInvariants } from './fcmp-reading.ts'

test('the rules of a long run are checked in several turns, those of a short one in one', async () => {
  const turnsFor = async (count: number) => {
    const events = Array.from({ length: count }, (_, index): RunEvent => ({
      seq: index + 1,
      at: 1,
      attempt: 1,
      type: 'text.delta',
      data: { messageId: 'm', text: 'a' },
    }))
    const reader = { readEvents: async () => ({ events, skipped: 0, nextAfter: count, atHead: true }) }
    let turns = 0
    let checking = true
    const countTurn = () => {
      turns += 1
      if (checking) setImmediate(countTurn)
    }
    setImmediate(countTurn)
    const { verdicts } = await checkRunInvariants(reader, 'r', fcmpDialect())
    checking = false
    return { turns, rules: verdicts.length }
  }

  const long = await turnsFor(6_000)
  assert.ok(long.turns >= long.rules, `${long.turns} turns for ${long.rules} rules`)
  assert.equal((await turnsFor(10)).turns, 0)
})
