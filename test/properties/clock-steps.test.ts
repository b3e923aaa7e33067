// The system clock may be set at any moment: by a person, by a time server, after a suspended
// laptop wakes. With any such steps, a run with tools and a confirmation writes a valid journal
// and ends as it does under a steady clock.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkInvariants } from '../../src/dialects/fcmp/check-invariants.ts'
import { fcmpDialect } from '../../src/dialects/fcmp/fcmp.ts'
import type { CheckedEvent } from '../../src/journal/check-rules.ts'
import type { RunEvent } from '../../src/journal/event.ts'
import type { ModelPart } from '../../src/models/model.ts'
import { type ManualClock, manualClock } from '../support/manual-clock.ts'
import { calls, countingIds, openRig, type Rig, says, toolOf } from '../support/run-rig.ts'

const day = 86_400_000
const decade = 3650 * day

/** Small steps as a time server makes them, hours as people do, and years as a dead battery does. */
const steps = fc.array(
  fc.oneof(
    fc.constant(0),
    fc.integer({ min: -500, max: 500 }),
    fc.integer({ min: -day, max: day }),
    fc.constantFrom(-decade, decade, -300, 3_600_000, -3_600_000),
  ),
  { minLength: 10, maxLength: 10 },
)

type Outcome = { shape: string[]; events: RunEvent[]; paid: number; complaints: string[]; messages: string[] }

/** One run: text, a lookup beside a payment that needs consent, a second lookup, an answer. `setClock` moves the clock. */
async function play(file: string, clock: ManualClock, setClock: () => void): Promise<Outcome> {
  const stepOn = () => {
    setClock()
    // Looks for work by the new time: a run that is under way is none.
    rig.scheduler.poke()
  }
  let paid = 0
  const answers = [
    () => stepping(calls({ callId: 'a', name: 'look', text: 'Let me see. ' }, { callId: 'b', name: 'pay' }), stepOn),
    () => stepping(calls({ callId: 'c', name: 'look' }), stepOn),
    () => stepping(says('All ', 'is ', 'paid.'), stepOn),
  ]
  let asked = 0
  const options = {
    file,
    clock,
    ids: countingIds(),
    answer: () => (answers[asked++] ?? answers[2]!)(),
    // No step of this test reaches the deadline: that a deadline is a time of day is not under test.
    limits: { confirmationTtlMs: 100 * decade },
    tools: [
      toolOf({
        name: 'look',
        async run() {
          stepOn()
          return { ok: true, output: 'seen', summary: 'Seen.' }
        },
      }),
      toolOf({
        name: 'pay',
        effect: 'unsafe' as const,
        confirm: 'always' as const,
        async run() {
          paid += 1
          stepOn()
          return { ok: true, output: 'paid', summary: 'Paid.' }
        },
      }),
    ],
  }
  let rig: Rig = await openRig(options)
  try {
    const { run } = await rig.start({ conversationId: 'c' })
    await rig.until(run.id, (row) => row.status === 'waiting_user')
    stepOn()
    // Another process, which knows of the times before only from the journal.
    await rig.close()
    rig = await openRig(options)
    rig.scheduler.start()
    const [question] = await rig.store.interactionsOf(run.id)
    await rig.confirm('ada', question!.id, undefined)
    stepOn()
    await rig.until(run.id, (row) => row.endedAt !== null)
    const { run: second } = await rig.start({ conversationId: 'c', input: 'And now?' })
    stepOn()
    await rig.until(second.id, (row) => row.endedAt !== null)
    const events = await rig.events(run.id)
    const messages = (await rig.store.listMessages(run.conversationId ?? '', { limit: 50 })).rows.map(
      ({ role, content }) => `${role}: ${content}`,
    )
    return { shape: shapeOf(events), events, paid, complaints: rig.complaints, messages }
  } finally {
    await rig.close()
  }
}

async function* stepping(parts: AsyncIterable<ModelPart[]>, stepOn: () => void): AsyncGenerator<ModelPart[]> {
  for await (const part of parts) {
    yield part
    stepOn()
  }
}

function shapeOf(events: readonly RunEvent[]): string[] {
  return events.map(({ type, data }) => {
    const { outcome, to, text } = data as { outcome?: string; to?: string; text?: string }
    return [type, outcome, to, type === 'message.done' ? text : ''].filter(Boolean).join(' ')
  })
}

function brokenRules(events: readonly RunEvent[]): string[] {
  const dialect = fcmpDialect()
  let state = dialect.open({ runId: 'r' })
  const wire: CheckedEvent[] = []
  for (const event of events) {
    const projection = dialect.step(state, event)
    state = projection.state
    wire.push(...projection.frames.map((frame) => frame.data as CheckedEvent))
  }
  return checkInvariants(events, wire).flatMap(({ id, kept }) => (kept ? [] : [id]))
}

async function playWith(steps: readonly number[]): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-clock-'))
  const clock = manualClock()
  let next = 0
  try {
    return await play(join(folder, 'polylog.db'), clock, () => clock.set(steps[next++ % steps.length] ?? 0))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

test('whatever the clock does, the journal is valid and the run ends as under a steady clock', async () => {
  const steady = await playWith([0])
  assert.equal(steady.shape.at(-1), 'run.ended')
  assert.ok(steady.messages.length > 4)
  assert.deepEqual(
    steady.events.flatMap((event) => (event.type === 'run.ended' ? [event.data.status] : [])),
    ['succeeded'],
  )

  await fc.assert(
    fc.asyncProperty(steps, async (list) => {
      const { shape, events, paid, complaints, messages } = await playWith(list)

      assert.deepEqual(shape, steady.shape)
      assert.deepEqual(messages, steady.messages)
      assert.equal(paid, 1)
      assert.deepEqual(complaints, [])
      assert.deepEqual(brokenRules(events), [])
      for (const [index, event] of events.entries()) {
        assert.ok(event.at >= (events[index - 1]?.at ?? 0), `event ${event.seq} lies before the one before it`)
        if ('durationMs' in event.data) assert.equal(event.data.durationMs, 0)
      }
    }),
    // A run that never ends takes long to give up on: the first counter-example has to do.
    { numRuns: 25, endOnFailure: true },
  )
})
