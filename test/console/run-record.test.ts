// What the page of a run computes from its journal: the state at every moment, the waterfall, and the time scale.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { agentDialect } from '../../src/dialects/agent/agent.ts'
import { journalWire } from '../../src/dialects/journal-wire/journal-wire.ts'
import { framesOf as wireFramesOf } from '../contracts/dialect-contract.ts'
import { consoleModule } from '../support/console-module.ts'
import type { Scenario } from '../scenarios/journal-builder.ts'
import { type ScenarioName, scenarioNamed, scenarios } from '../scenarios/scenarios.ts'

type JournalRow = { seq: number; type: string; wires: Record<string, string[] | undefined> }
type Segment = { kind: string; attempt: number }
type Span = {
  kind: string
  end: number | null
  outcome?: string
  segments: Segment[]
  firstToken?: number
  marks: unknown[]
}
type View = { frames: number }
type Recorded = {
  rows: JournalRow[]
  times: number[]
  errors: number[]
  waterfall: { spans: Span[] }
  add(row: JournalRow): void
  viewAfter(count: number): View
  indexOfSeq(seq: number): number
  indexOfTime(time: number): number
  nextError(after: number): number | undefined
}
type Scale = {
  length: number
  cuts: { ms: number }[]
  share(time: number): number
  placeOf(time: number): number
  timeAt(place: number): number
  ticks(count: number): { share: number }[]
}

const { RunRecord } = await consoleModule<{ RunRecord: new () => Recorded }>('run/run-record.ts')
const { emptyView, reduceView } = await consoleModule<{
  emptyView: View
  reduceView: (view: View, frame: object) => View
}>('run/run-view.ts')
const { framesOf } = await consoleModule<{ framesOf: (row: JournalRow) => object[] }>('run/journal-row.ts')
const { TimeScale } = await consoleModule<{
  TimeScale: new (start: number, end: number, waits?: { start: number; end: number }[]) => Scale
}>('run/time-scale.ts')

const wire = journalWire({ sse: agentDialect })

function rowsOf(scenario: Scenario): JournalRow[] {
  return wireFramesOf(wire, scenario).map(({ frame }) => frame.data as JournalRow)
}

function recordOf(rows: readonly JournalRow[]): Recorded {
  const record = new RunRecord()
  for (const row of rows) record.add(row)
  return record
}

const spansOf = (name: ScenarioName) => recordOf(rowsOf(scenarioNamed(name))).waterfall.spans

describe('the record of a run', () => {
  for (const scenario of scenarios) {
    test(`has at every moment the state that a reader of its stream had then: ${scenario.name}`, () => {
      const rows = rowsOf(scenario)
      const record = recordOf(rows)
      let view = emptyView
      const views = rows.map(
        (row) => (view = framesOf(row).reduce((before: View, frame) => reduceView(before, frame), view)),
      )
      // In order, backwards, and again: no moment depends on the one that was asked for before it.
      const moments = [...rows.keys()]
      for (const index of [...moments, ...moments.toReversed(), ...moments]) {
        assert.deepEqual(record.viewAfter(index + 1), views[index])
      }
      assert.equal(record.viewAfter(0), emptyView)
    })
  }

  test('steps through a long run without folding it from its beginning', () => {
    const plain = rowsOf(scenarioNamed('plain answer'))
    const delta = plain.find(({ type }) => type === 'text.delta') as JournalRow
    const rows = Array.from({ length: 3000 }, (_, index): JournalRow => {
      const seq = index + 1
      const sse = delta.wires['sse']?.map((text) => text.replace(/^id: \d+/, `id: ${seq}`))
      return { ...delta, seq, wires: { sse } }
    })
    const record = recordOf(rows)
    const before = record.viewAfter(2990)
    let folded = 0
    for (const row of rows) Object.defineProperty(row, 'wires', { get: () => ((folded += 1), { sse: [] }) })
    record.viewAfter(2991)
    assert.equal(folded, 1, 'one step on')
    record.viewAfter(1000)
    assert.ok(folded <= 257, `${folded} rows for a step to any moment`)
    assert.equal(before.frames, 2990)
  })

  test('finds events by number and by time, and the next error, round the end', () => {
    const record = recordOf(rowsOf(scenarioNamed('tool threw')))
    assert.equal(record.indexOfSeq(3), 2)
    assert.equal(record.indexOfSeq(10_000), record.rows.length - 1)
    assert.equal(record.indexOfSeq(0), -1)
    assert.equal(record.indexOfTime(record.times[4] ?? 0) >= 4, true)
    const [error] = record.errors
    assert.equal(record.rows[error ?? -1]?.type, 'tool.done')
    assert.equal(record.nextError(0), error)
    assert.equal(record.nextError(record.rows.length), error)
  })
})

describe('the waterfall', () => {
  test('has a line for the run, for each request to the model and for each tool call', () => {
    const spans = spansOf('parallel tools')
    assert.deepEqual(
      spans.map(({ kind }) => kind),
      ['run', 'model', 'tool', 'tool', 'model'],
    )
    for (const { end, outcome } of spans) assert.deepEqual([end !== null, outcome], [true, 'ok'])
    assert.ok(spans.filter(({ kind }) => kind === 'model').every(({ firstToken }) => firstToken !== undefined))
  })

  test('shows when a call was queued, waited for a person and ran, and each attempt of the run', () => {
    const [run, , tool] = spansOf('edited while confirming')
    assert.deepEqual(
      tool?.segments.map(({ kind }) => kind),
      ['queued', 'waiting', 'queued', 'active'],
    )
    assert.deepEqual(
      run?.segments.map(({ kind, attempt }) => [kind, attempt]),
      [
        ['queued', 1],
        ['active', 1],
        ['waiting', 1],
        ['queued', 1],
        ['active', 2],
      ],
    )
  })

  test('says what failed, what was denied, and what a restart interrupted', () => {
    assert.equal(spansOf('tool threw').find(({ kind }) => kind === 'tool')?.outcome, 'failed')
    assert.equal(spansOf('tool denied').find(({ kind }) => kind === 'tool')?.outcome, 'cancelled')
    assert.equal(spansOf('model down')[0]?.outcome, 'failed')
    const restarted = spansOf('superseded after restart')
    assert.deepEqual(
      restarted.filter(({ kind }) => kind === 'model').map(({ outcome }) => outcome),
      ['interrupted', 'ok'],
    )
    assert.equal(restarted[0]?.marks.length, 1)
  })

  test('shows a question that belongs to no call as a line of its own', () => {
    const question = spansOf('question').find(({ kind }) => kind === 'question')
    assert.deepEqual([question?.segments[0]?.kind, question?.outcome], ['waiting', 'ok'])
  })
})

describe('the time scale', () => {
  test('is even without long waits', () => {
    const scale = new TimeScale(1000, 2000, [{ start: 1200, end: 1300 }])
    assert.deepEqual([scale.length, scale.share(1500), scale.timeAt(250), scale.cuts], [1000, 0.5, 1250, []])
  })

  test('cuts a long wait short and leads back from every place to its time', () => {
    const day = 86_400_000
    const scale = new TimeScale(0, day + 2000, [{ start: 1000, end: day + 1000 }])
    assert.equal(scale.length, 2200)
    assert.deepEqual(
      scale.cuts.map(({ ms }) => ms),
      [day],
    )
    for (const time of [0, 500, 1000, day / 2, day + 1000, day + 1700]) {
      assert.ok(Math.abs(scale.timeAt(scale.placeOf(time)) - time) < 1, String(time))
    }
    assert.ok(scale.ticks(6).every(({ share }) => share >= 0 && share <= 1))
  })

  test('of a run without a length is not empty', () => {
    const scale = new TimeScale(5, 5)
    assert.deepEqual([scale.share(5), scale.timeAt(0)], [0, 5])
  })
})
