// Two arms in one stream never mix, in whichever order their events come in, and a client that
// was disconnected gets exactly the rest when it comes back.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { chunksDialect } from '../../src/dialects/chunks/chunks.ts'
import {
  type Arm,
  type ArmCursors,
  armsBeginning,
  furthestArms,
  parseArmCursors,
  TwoArms,
} from '../../src/dialects/chunks/two-arms.ts'
import type { RunEvent } from '../../src/journal/event.ts'
import { framesOf } from '../contracts/dialect-contract.ts'
import type { Scenario } from '../scenarios/journal-builder.ts'
import { scenarios } from '../scenarios/scenarios.ts'

type Batch = { arm: Arm; events: RunEvent[] }
type Told = { id: string; json: Record<string, unknown> & { type: string; arm: Arm } }
type Pair = { a: Scenario; b: Scenario }

const dialect = chunksDialect()
const anyScenario = fc.constantFrom(...scenarios)
const anyPair: fc.Arbitrary<Pair> = fc.record({ a: anyScenario, b: anyScenario }).map(({ a, b }) => ({
  a: { ...a, runId: 'run-a' },
  b: { ...b, runId: 'run-b' },
}))

/** Both journals in their own order, cut into batches anywhere, and laid over each other in any way. */
function interleaved({ a, b }: Pair, choices: readonly { first: boolean; size: number }[]): Batch[] {
  const left: Record<Arm, RunEvent[]> = { a: [...a.events], b: [...b.events] }
  const batches: Batch[] = []
  for (let turn = 0; left.a.length + left.b.length > 0; turn++) {
    const { first, size } = choices[turn % choices.length] ?? { first: true, size: 1 }
    const wanted: Arm = first ? 'a' : 'b'
    const arm = left[wanted].length > 0 ? wanted : wanted === 'a' ? 'b' : 'a'
    batches.push({ arm, events: left[arm].splice(0, size) })
  }
  return batches
}

const anyOrder = fc.array(fc.record({ first: fc.boolean(), size: fc.integer({ min: 1, max: 5 }) }), {
  minLength: 1,
  maxLength: 60,
})

function bytes(batches: readonly Batch[], cursor: ArmCursors = armsBeginning): string {
  const fold = new TwoArms({ dialect, runs: { a: 'run-a', b: 'run-b' }, comparisonId: 'cmp', cursor })
  let text = ''
  for (const [index, { arm, events }] of batches.entries()) {
    const part = fold.take(arm, events)
    text += part.text
    assert.equal(part.over, index === batches.length - 1, 'over with the last batch, and not before')
  }
  return text
}

function parse(text: string): Told[] {
  return text
    .split('\n\n')
    .filter((block) => block !== '')
    .map((block) => {
      const [id, data] = block.split('\n') as [string, string]
      return { id: id.replace(/^id: /, ''), json: JSON.parse(data.replace(/^data: /, '')) as Told['json'] }
    })
}

/** What an arm said, as the JSON that went over the wire. */
const saidBy = (told: readonly Told[], arm: Arm) =>
  told.filter(({ json }) => json.arm === arm).map(({ json }) => JSON.stringify(json))

const succeeded = ({ events }: Scenario) => {
  const last = events.at(-1)
  return last?.type === 'run.ended' && last.data.status === 'succeeded'
}

describe('two arms in one stream', () => {
  it('each say exactly what they would say alone, in their own order, whatever the order between them', () => {
    fc.assert(
      fc.property(anyPair, anyOrder, (pair, order) => {
        const told = parse(bytes(interleaved(pair, order)))

        for (const arm of ['a', 'b'] as const) {
          const alone = framesOf(dialect, { ...pair[arm], runId: `run-${arm}` }).map(
            ({ frame }) => frame.data as object,
          )
          const said = told
            .filter(({ json }) => json.arm === arm)
            .map(({ json }) => {
              const { arm: _arm, comparison_id: _id, vote_requested: _vote, vote_note: _note, ...rest } = json
              return rest
            })
          assert.deepEqual(said, alone)
        }
      }),
    )
  })

  it('end together: first a, then b, and both say whether there is a vote', () => {
    fc.assert(
      fc.property(anyPair, anyOrder, (pair, order) => {
        const told = parse(bytes(interleaved(pair, order)))

        const ends = told.filter(({ json }) => 'comparison_id' in json)
        assert.deepEqual(
          ends.map(({ json }) => json.arm),
          ['a', 'b'],
        )
        assert.deepEqual(ends, told.slice(-2))
        const vote = succeeded(pair.a) && succeeded(pair.b)
        for (const { json } of ends) {
          assert.equal(json.comparison_id, 'cmp')
          assert.equal(json.vote_requested, vote)
          assert.equal('vote_note' in json, !vote)
        }
      }),
    )
  })

  it('have ids that grow in both arms and never go back in either', () => {
    fc.assert(
      fc.property(anyPair, anyOrder, (pair, order) => {
        let before = armsBeginning
        for (const { id, json } of parse(bytes(interleaved(pair, order)))) {
          const now = parseArmCursors(id)
          assert.deepEqual(furthestArms(before, now), now)
          const other = json.arm === 'a' ? 'b' : 'a'
          assert.deepEqual(now[other], before[other])
          assert.notDeepEqual(now[json.arm], before[json.arm])
          before = now
        }
      }),
    )
  })

  it('go on after any cut byte for byte, when events come in the same order', () => {
    fc.assert(
      fc.property(anyPair, anyOrder, (pair, order) => {
        const batches = interleaved(pair, order)
        const whole = bytes(batches)
        const blocks = whole.split('\n\n').slice(0, -1)
        for (const [index, { id }] of parse(whole).entries()) {
          const rest = blocks
            .slice(index + 1)
            .map((block) => `${block}\n\n`)
            .join('')
          assert.equal(bytes(batches, parseArmCursors(id)), rest, `after ${id}`)
        }
      }),
      { numRuns: 40 },
    )
  })

  it('go on after any cut with exactly the rest of each arm, in whatever order events come then', () => {
    fc.assert(
      fc.property(anyPair, anyOrder, anyOrder, fc.nat(), (pair, order, later, at) => {
        const told = parse(bytes(interleaved(pair, order)))
        const cut = at % told.length
        const rest = parse(bytes(interleaved(pair, later), parseArmCursors((told[cut] as Told).id)))

        for (const arm of ['a', 'b'] as const) {
          assert.deepEqual([...saidBy(told.slice(0, cut + 1), arm), ...saidBy(rest, arm)], saidBy(told, arm))
        }
      }),
    )
  })
})

describe('the cursor of two arms', () => {
  it('is read back as it was given, and 0 is the beginning', () => {
    assert.deepEqual(parseArmCursors('a:12,b:7.2'), { a: { seq: 12, index: null }, b: { seq: 7, index: 2 } })
    assert.deepEqual(parseArmCursors('0'), armsBeginning)
  })

  it('is refused where it cannot be read, never taken for the beginning', () => {
    for (const text of ['', '12', 'a:12', 'b:1,a:2', 'a:x,b:1', 'a:1.0,b:1', 'a:1,b:1,a:1', 'a:-1,b:0']) {
      assert.throws(() => parseArmCursors(text), { code: 'unknown_cursor' }, text)
    }
  })
})
