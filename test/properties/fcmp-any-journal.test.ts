// FCMP over any run that can happen: random journals of messages, failing tools, questions
// that are answered in any order or by their deadline, restarts, rejected answers and every
// ending, cut anywhere, and with any rows unreadable.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { beginning, parseCursor } from '../../src/dialects/cursor.ts'
import { encodeEvents } from '../../src/dialects/dialect.ts'
import { checkInvariants } from '../../src/dialects/fcmp/check-invariants.ts'
import { type FcmpEnvelope, violationOf } from '../../src/dialects/fcmp/envelope.ts'
import { fcmpDialect } from '../../src/dialects/fcmp/fcmp.ts'
import type { EventData, RunEvent } from '../../src/journal/event.ts'
import { foldRun } from '../../src/journal/run-state.ts'
import { type Ending, endingEvents } from '../../src/runs/run-ending.ts'
import { JournalBuilder } from '../scenarios/journal-builder.ts'

type Resolution = Exclude<EventData<'input.resolved'>['resolution'], 'closed'>
type Question = { resolution: Resolution; order: number; answered: boolean }
type Command =
  | { do: 'say' | 'blank' | 'trouble' | 'restart' | 'warn' | 'reject' }
  | { do: 'ask'; questions: Question[] }
type Story = { commands: Command[]; end: 'succeeds' | 'fails' | 'cancelled' | 'goes on'; runs: boolean }

const resolutions: Resolution[] = ['confirmed', 'rejected', 'replied', 'auto_decided', 'expired']
const alone: ReadonlySet<Resolution> = new Set<Resolution>(['auto_decided', 'expired'])
const question: fc.Arbitrary<Question> = fc.record({
  resolution: fc.constantFrom(...resolutions),
  order: fc.nat(100),
  // Most are answered; one that is not leaves the run waiting.
  answered: fc.nat(9).map((dice) => dice > 0),
})
const command: fc.Arbitrary<Command> = fc.oneof(
  fc.constantFrom('say', 'blank', 'trouble', 'restart', 'warn', 'reject').map((name) => ({ do: name })),
  fc.array(question, { minLength: 1, maxLength: 4 }).map((questions) => ({ do: 'ask' as const, questions })),
)
const story: fc.Arbitrary<Story> = fc.record({
  commands: fc.array(command, { maxLength: 8 }),
  end: fc.constantFrom('succeeds', 'fails', 'cancelled', 'goes on'),
  // False: it is cancelled, or given up, before it ever runs.
  runs: fc.nat(9).map((dice) => dice > 0),
})

function journalOf({ commands, end, runs }: Story): RunEvent[] {
  const journal = new JournalBuilder()
  journal.accepted('Go.')
  if (!runs) return ended(journal, end === 'succeeds' ? 'goes on' : end)
  journal.running()
  let step = 0
  for (const what of commands) {
    step += 1
    const id = `message-${step}`
    switch (what.do) {
      case 'say':
        journal.answers(step, id, 'Well, ', 'hello.')
        break
      case 'blank':
        journal.answers(step, id, ' ')
        break
      case 'reject':
        journal
          .answers(step, id, 'No JSON.')
          .add('output.rejected', { step, messageId: id, errors: ['it is not JSON'] })
        break
      case 'warn':
        journal.add('diagnostic', { code: 'output_truncated', message: 'Cut off.' })
        break
      case 'restart':
        journal.restarted()
        break
      case 'trouble':
        journal.asks(step, id).calls(`call-${step}`, 'search', {}, { step }).stepDone(step, id, 1)
        journal.starts(`call-${step}`, {}).done(`call-${step}`, 'threw', 'It broke.', {
          error: { code: 'tool_error', message: 'It broke.' },
        })
        break
      case 'ask':
        if (!asks(journal, step, what.questions)) return ended(journal, end === 'succeeds' ? 'goes on' : end)
    }
  }
  return ended(journal, end)
}

/** As the loop ends a run, wherever it stands. */
function ended(journal: JournalBuilder, end: Story['end']): RunEvent[] {
  if (end === 'goes on') return journal.events
  const error = { code: 'model_error', message: 'It broke.' }
  const endings: Record<typeof end, Ending> = {
    succeeds: { status: 'succeeded' },
    fails: { status: 'failed', error },
    cancelled: { status: 'canceled', by: 'ada', reason: null },
  }
  let ids = 0
  const events = endingEvents(foldRun(journal.events), endings[end], () => `end-${(ids += 1)}`)
  for (const { type, data } of events) journal.add(type, data)
  return journal.events
}

/** False: a question is left open, and the run waits. */
function asks(journal: JournalBuilder, step: number, questions: readonly Question[]): boolean {
  const asked = questions.map((one, index) => ({ ...one, id: `i-${step}-${index}`, call: `c-${step}-${index}` }))
  journal.asks(step, `message-${step}`)
  for (const [index, { call }] of asked.entries()) journal.calls(call, 'send', {}, { step, index })
  journal.stepDone(step, `message-${step}`, asked.length)
  for (const { id, call } of asked) journal.confirmation(id, call, {})
  journal.parks()
  const answered = asked.filter((one) => one.answered).toSorted((a, b) => a.order - b.order)
  for (const { id, resolution } of answered) journal.resolved(id, resolution)
  if (answered.length < asked.length) return false
  const last = answered.at(-1)?.resolution ?? 'replied'
  journal.unparks(alone.has(last) ? 'interaction.auto_decide.timeout' : 'interaction.reply.accepted')
  for (const { call } of asked) journal.returns(call, 'ok')
  return true
}

const runId = 'r'

function envelopesOf(events: readonly RunEvent[]): FcmpEnvelope[] {
  const dialect = fcmpDialect()
  let state = dialect.open({ runId })
  return events.flatMap((event) => {
    const projection = dialect.step(state, event)
    state = projection.state
    return projection.frames.map(({ data }) => data as FcmpEnvelope)
  })
}

/** What is true for every output, also if rows are missing. */
function assertSound(envelopes: readonly FcmpEnvelope[]): void {
  let state: FcmpEnvelope | undefined
  for (const [index, envelope] of envelopes.entries()) {
    assert.equal(envelope.seq, index + 1)
    assert.equal(violationOf(envelope), null)
    const next = envelopes[index + 1]
    if (envelope.type === 'conversation.state.changed') {
      state = envelope
      if (envelope.data.to === 'waiting_user') assert.equal(next?.type, 'user.input.required')
    }
    if (envelope.type === 'interaction.reply.accepted' || envelope.type === 'interaction.auto_decide.timeout') {
      const change = envelopes.slice(index + 1).find(({ type }) => type === 'conversation.state.changed')
      assert.deepEqual(
        [change?.data.from, change?.data.to, change?.data.trigger],
        ['waiting_user', 'queued', envelope.type],
      )
    }
    if (envelope.type === 'conversation.failed' && state?.data.to === 'canceled') {
      assert.deepEqual(envelope.data, { error: { category: 'runtime', code: 'CANCELED' } })
    }
  }
}

describe('FCMP, for any run', () => {
  it('keeps every rule, and every envelope fits the schema, at every moment', () => {
    fc.assert(
      fc.property(story, (told) => {
        const events = journalOf(told)
        for (let cut = 1; cut <= events.length; cut++) {
          const part = events.slice(0, cut)
          const envelopes = envelopesOf(part)
          assertSound(envelopes)
          assert.deepEqual(
            checkInvariants(part, envelopes).filter(({ kept }) => !kept),
            [],
          )
        }
      }),
      { numRuns: 200 },
    )
  })

  it('goes on after any frame with exactly the bytes that come after it', () => {
    fc.assert(
      fc.property(story, (told) => {
        const events = journalOf(told)
        const dialect = fcmpDialect()
        const whole = encodeEvents(dialect, dialect.open({ runId }), events, beginning).text
        const frames = whole.split('\n\n').slice(0, -1)
        for (const [index, frame] of frames.entries()) {
          const cursor = parseCursor(/^id: (.+)$/m.exec(frame)?.[1] ?? '')
          const rest = encodeEvents(dialect, dialect.open({ runId }), events, cursor).text
          assert.equal(
            rest,
            frames
              .slice(index + 1)
              .map((one) => `${one}\n\n`)
              .join(''),
          )
        }
      }),
      { numRuns: 200 },
    )
  })

  it('has no hole, no half of a pair and no envelope that does not fit, whichever rows cannot be read', () => {
    fc.assert(
      fc.property(story, fc.infiniteStream(fc.nat(3)), (told, dice) => {
        const readable = journalOf(told).filter(() => dice.next().value !== 0)
        assertSound(envelopesOf(readable))
      }),
      { numRuns: 500 },
    )
  })
})
