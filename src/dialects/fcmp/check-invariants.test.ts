// Every scenario keeps every rule of invariants.json, and for every rule there is a journal
// that breaks it, which shows that the check can fail.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { scenarioNamed } from '../../../test/scenarios/scenarios.ts'
import type { CheckedEvent, RuleVerdict } from '../../journal/check-rules.ts'
import type { RunEvent } from '../../journal/event.ts'
import invariants from '../../journal/invariants.json' with { type: 'json' }
import { checkInvariants } from './check-invariants.ts'

const { events } = scenarioNamed('tool confirmed')

const change = (from: string, to: string, trigger: string): Omit<CheckedEvent, 'seq'> => ({
  type: 'conversation.state.changed',
  data: { from, to, trigger },
})
const said = (type: string, data: Record<string, unknown> = {}): Omit<CheckedEvent, 'seq'> => ({ type, data })
const numbered = (...list: Omit<CheckedEvent, 'seq'>[]): CheckedEvent[] =>
  list.map((event, index) => ({ ...event, seq: index + 1 }))

/** The frames of the scenario, written by hand. */
const wire = numbered(
  change('queued', 'running', 'turn.started'),
  said('conversation.started'),
  change('running', 'waiting_user', 'turn.needs_input'),
  said('user.input.required'),
  said('interaction.reply.accepted'),
  change('waiting_user', 'queued', 'interaction.reply.accepted'),
  change('queued', 'running', 'turn.started'),
  said('assistant.message.final'),
  change('running', 'succeeded', 'turn.succeeded'),
  said('conversation.completed'),
)

const broken = (verdicts: readonly RuleVerdict[]) =>
  verdicts.filter(({ kept }) => !kept).map(({ id, broken: list }) => `${id}@${list.map(({ seq }) => seq).join(',')}`)

const without = (seq: number) =>
  numbered(...wire.filter((event) => event.seq !== seq).map(({ type, data }) => ({ type, data })))
const instead = (seq: number, event: Omit<CheckedEvent, 'seq'>) =>
  wire.map((old) => (old.seq === seq ? { ...event, seq } : old))
const journalWithout = (type: string) => events.filter((event) => event.type !== type)
const renumbered = (list: readonly RunEvent[]) => list.map((event, index) => ({ ...event, seq: index + 1 }))

describe('the rules of a run', () => {
  it('are all judged, and all kept by a run that is in order', () => {
    const verdicts = checkInvariants(events, wire)

    assert.deepEqual(broken(verdicts), [])
    assert.deepEqual(
      verdicts.map(({ id }) => id),
      [...invariants.transitions, ...invariants.mapping, ...invariants.pairing, ...invariants.ordering].map(
        ({ id }) => id,
      ),
    )
  })

  it('have ids of their own', () => {
    const ids = checkInvariants([], []).map(({ id }) => id)

    assert.equal(new Set(ids).size, ids.length)
  })

  it('let a client see every edge that a run may take', () => {
    const triples = (edges: readonly { from: string; to: string; trigger: string }[]) =>
      edges.map(({ from, to, trigger }) => `${from} ${to} ${trigger}`).toSorted()

    assert.deepEqual(triples(invariants.mapping), triples(invariants.transitions))
  })

  it('say how often a run reached the situation that they are about', () => {
    const seen = Object.fromEntries(checkInvariants(events, wire).map((verdict) => [verdict.id, verdict.seen]))

    assert.deepEqual([seen['TR-01'], seen['FM-01'], seen['FM-07'], seen['PE-01'], seen['PE-10']], [2, 2, 0, 1, 1])
  })

  const cases: [what: string, list: CheckedEvent[], expected: string[]][] = [
    [
      'a reply after which the run does not go on',
      instead(6, change('waiting_user', 'canceled', 'run.canceled')),
      ['PE-01@5', 'PE-09@6', 'OR-01@9', 'OR-09@7'],
    ],
    [
      'a reply whose change of state has another trigger',
      instead(6, change('waiting_user', 'queued', 'interaction.auto_decide.timeout')),
      ['PE-01@5', 'PE-04@6'],
    ],
    [
      'a decision by timeout without its change',
      instead(5, said('interaction.auto_decide.timeout')),
      ['PE-02@5', 'PE-03@6'],
    ],
    ['a change by a reply that nobody gave', without(5), ['PE-03@5']],
    ['a question while the run works', instead(8, said('user.input.required')), ['PE-05@8']],
    [
      'a conversation that starts before its first turn',
      numbered(said('conversation.started'), ...wire.slice(0, 1)),
      ['PE-06@1'],
    ],
    ['a success that nobody announces', without(10), ['PE-07@9']],
    ['a failure that is announced as a success', instead(9, change('running', 'failed', 'turn.failed')), ['PE-08@9']],
    [
      'a cancel that is announced with another code',
      [
        ...wire.slice(0, 8),
        ...[
          change('running', 'canceled', 'run.canceled'),
          said('conversation.failed', { error: { category: 'runtime', code: 'X' } }),
        ].map((event, index) => ({ ...event, seq: 9 + index })),
      ],
      ['PE-09@9'],
    ],
    ['a wait that says nothing of what for', without(4), ['OR-02@3']],
    ['a hole', wire.filter(({ seq }) => seq !== 8), ['OR-03@9']],
    ['a start at 2', wire.map((event) => ({ ...event, seq: event.seq + 1 })), ['OR-03@2']],
    [
      'an edge that does not exist',
      instead(7, change('queued', 'succeeded', 'turn.started')),
      ['FM-01@7', 'FM-09@7', 'FM-12@7', 'FM-14@7', 'PE-07@7', 'OR-01@9', 'OR-09@9'],
    ],
  ]
  for (const [what, list, expected] of cases) {
    it(`are broken by ${what}, at its seq`, () => {
      assert.deepEqual(broken(checkInvariants(events, list)), expected)
    })
  }

  const journals: [what: string, list: readonly RunEvent[], expected: RegExp][] = [
    ['a call without a result', renumbered(journalWithout('tool.done')), /^PE-10@\d+$/],
    ['a result without a call', renumbered(journalWithout('tool.called')), /^PE-10@\d+$/],
    ['a question that was never resolved', renumbered(journalWithout('input.resolved')), /^PE-11@\d+$/],
    ['a row that is lost', journalWithout('step.done'), /^OR-04@\d+,\d+$/],
    ['a run that was not accepted', renumbered(journalWithout('run.accepted')), /^OR-05@1 OR-07@1,/],
    ['something after the end', [...events, { ...(events.at(-2) as RunEvent), seq: events.length + 1 }], /OR-06@\d+/],
    ['an event in the wrong state', renumbered(journalWithout('run.state')), /OR-07@/],
    ['an attempt that does not grow', events.map((event) => ({ ...event, attempt: 1 })), /^OR-08@/],
    [
      'an end that nothing led to',
      renumbered(events.filter((event) => event.type !== 'run.state' || event.data.to !== 'succeeded')),
      /PE-12@\d+ OR-07@/,
    ],
  ]
  for (const [what, list, expected] of journals) {
    it(`are broken by ${what}, at its seq`, () => {
      assert.match(broken(checkInvariants(list, wire)).join(' '), expected)
    })
  }

  it('do not report something as missing that may still come', () => {
    for (let cut = 0; cut < wire.length; cut++) {
      const early = events.slice(0, -1)
      assert.deepEqual(broken(checkInvariants(early, wire.slice(0, cut))), [], `after ${cut} envelopes`)
    }
  })

  it('can each be broken by some journal', () => {
    const all = [
      ...cases.map(([, list]) => checkInvariants(events, list)),
      ...journals.map(([, list]) => checkInvariants(list, wire)),
    ]
    const found = new Set(all.flat().flatMap(({ id, kept }) => (kept ? [] : [id])))
    const rules = [...invariants.pairing, ...invariants.ordering].map(({ id }) => id)

    assert.deepEqual(
      rules.filter((id) => !found.has(id)),
      [],
    )
  })
})

describe('a long run', () => {
  it('is checked with one pass for each rule, also if many events wait for their neighbour', () => {
    const count = 2_000
    let reads = 0
    const counted = (type: string) => (_: unknown, index: number) => ({
      seq: index + 1,
      data: { to: 'waiting_user' },
      get type() {
        reads += 1
        return type
      },
    })
    const asked = Array.from({ length: count }, counted('user.input.required'))
    const accepted = Array.from({ length: count }, counted('interaction.reply.accepted'))

    checkInvariants(events, asked)
    checkInvariants(events, accepted)

    assert.ok(reads < 200 * count, `${reads} reads of ${2 * count} events`)
  })
})
