// The edges of invariants.json, compared with a second, independent list of them, over every
// sequence of up to six lifecycle events.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type EventType, eventTypes, isTerminal, type RunEvent, type RunStatus, runStatuses } from './event.ts'
import { allowedIn, type Phase, phaseAfter, refusal, transitions } from './transitions.ts'

type Told = Pick<RunEvent, 'type' | 'data'>

const phases: Phase[] = ['new', ...runStatuses, 'ended']
const triggers = [...new Set(transitions.map(({ trigger }) => trigger))]
const change = (from: RunStatus, to: RunStatus, trigger: string) =>
  ({ type: 'run.state', data: { from, to, trigger } }) as Told
const ended = (status: string) => ({ type: 'run.ended', data: { status } }) as Told
const other = (type: EventType) => ({ type, data: {} }) as unknown as Told

/** What may end, begin or move a run, and one event of each other kind that does not. */
const lifecycle: Told[] = [
  other('run.accepted'),
  ...transitions.map(({ from, to, trigger }) => change(from, to, trigger)),
  ...(['succeeded', 'failed', 'canceled'] as const).map(ended),
]

/** The table read a second time, in words of its own: what the specification draws as a picture. */
const picture: Record<string, [trigger: string, to: Phase][]> = {
  queued: [
    ['turn.started', 'running'],
    ['run.canceled', 'canceled'],
    ['restart.reconcile_failed', 'failed'],
    ['upload.expired', 'failed'],
  ],
  running: [
    ['turn.needs_input', 'waiting_user'],
    ['turn.succeeded', 'succeeded'],
    ['turn.failed', 'failed'],
    ['run.canceled', 'canceled'],
    ['restart.reconcile_failed', 'failed'],
    ['restart.requeued', 'queued'],
  ],
  waiting_user: [
    ['interaction.reply.accepted', 'queued'],
    ['interaction.auto_decide.timeout', 'queued'],
    ['run.canceled', 'canceled'],
    ['restart.reconcile_failed', 'failed'],
  ],
}

describe('the table of transitions', () => {
  it('has exactly the edges of the second list', () => {
    for (const from of runStatuses) {
      for (const to of runStatuses) {
        for (const trigger of [...triggers, 'invented']) {
          const drawn = (picture[from] ?? []).some(([name, target]) => name === trigger && target === to)
          assert.equal(refusal(from, change(from, to, trigger)) === null, drawn, `${from} -> ${to} for ${trigger}`)
        }
      }
    }
  })

  it('accepts or refuses every sequence of up to six lifecycle events as the second list says', () => {
    let accepted = 0
    const walk = (phase: Phase, depth: number): void => {
      for (const event of lifecycle) {
        const expected = expectedAfter(phase, event)
        const refused = refusal(phase, event)
        assert.equal(refused === null, expected !== null, `${JSON.stringify(event)} in ${phase}: ${refused}`)
        if (expected === null) continue
        accepted += 1
        assert.equal(phaseAfter(phase, event), expected)
        if (depth > 1) walk(expected, depth - 1)
      }
    }

    // A sequence is refused as soon as one of its events is, so only what was accepted is walked further.
    walk('new', 6)

    assert.ok(accepted > 60, `only ${accepted} sequences were walked`)
  })

  it('lets nothing follow the end', () => {
    for (const type of eventTypes) assert.match(refusal('ended', other(type)) ?? '', /nothing follows run\.ended/)
  })

  it('lets nothing but the end follow a terminal state, and only the end that says the same', () => {
    for (const phase of runStatuses.filter(isTerminal)) {
      for (const type of eventTypes.filter((name) => name !== 'run.ended'))
        assert.notEqual(refusal(phase, other(type)), null, `${type} in ${phase}`)
      for (const status of ['succeeded', 'failed', 'canceled'])
        assert.equal(refusal(phase, ended(status)) === null, status === phase)
    }
  })

  it('begins every run with run.accepted, once', () => {
    for (const type of eventTypes) assert.equal(refusal('new', other(type)) === null, type === 'run.accepted', type)
    for (const phase of phases.filter((name) => name !== 'new'))
      assert.notEqual(refusal(phase, other('run.accepted')), null)
  })

  it('lets work happen only while the run is running', () => {
    for (const type of [
      'step.started',
      'text.delta',
      'reasoning.delta',
      'step.done',
      'tool.called',
      'tool.started',
      'tool.progress',
      'input.required',
    ] as const) {
      assert.deepEqual(allowedIn[type], ['running'], type)
    }
  })

  it('names each edge once', () => {
    assert.equal(new Set(transitions.map(({ id }) => id)).size, transitions.length)
  })
})

function expectedAfter(phase: Phase, event: Told): Phase | null {
  if (event.type === 'run.accepted') return phase === 'new' ? 'queued' : null
  if (event.type === 'run.ended') return (event.data as { status: string }).status === phase ? 'ended' : null
  const { from, trigger } = event.data as { from: string; trigger: string }
  if (from !== phase) return null
  return picture[phase]?.find(([name]) => name === trigger)?.[1] ?? null
}
