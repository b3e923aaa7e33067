// What must be true for every run, no matter how often its server was killed.

import assert from 'node:assert/strict'
import type { Random } from '../support/random.ts'
import type { Ledger } from './outside-world.ts'
import type { Answered, Finished } from './torture-client.ts'

type Entry = {
  seq: number
  event: string
  payload: { name?: string; status?: string; interactionId?: string; resolution?: string }
}

export async function checkRun(baseUrl: string, finished: Finished, ledger: Ledger, random: Random): Promise<void> {
  const { wire, plan, id, frames } = finished
  const about = `${wire.name} ${id} (${plan.prompt})`
  const ends = frames.filter((frame) => wire.isEnd(frame)).length
  if (wire.name === 'comparison') {
    await checkComparison(baseUrl, finished, about)
    return
  }
  if (wire.parks !== true) {
    assert.equal(ends, 1, `${about}: one end`)
    assert.ok(wire.isEnd(frames.at(-1) ?? ''), `${about}: nothing after the end`)
  }

  const replay = await framesAt(baseUrl, finished)
  assert.deepEqual(frames, replay, `${about}: what the client got is what the replay tells`)
  if (wire.resumes) {
    const cut = random.between(0, frames.length - 1)
    const rest = await framesAt(baseUrl, finished, frames[cut]?.match(/^id: (\S+)$/m)?.[1])
    assert.deepEqual(rest, frames.slice(cut + 1), `${about}: a resume after any frame gives exactly the rest`)
  }
  await checkTimeline(baseUrl, finished, ledger, about)
}

async function checkTimeline(
  baseUrl: string,
  { wire, plan, id, cancelAnswer }: Finished,
  ledger: Ledger,
  about: string,
): Promise<void> {
  const timeline = (await readJson(`${baseUrl}/v1/agent/runs/${id}/timeline?userId=${plan.user}`)) as {
    status: string
    skipped: number
    events: Entry[]
  }
  const expected = plan.cancelAfter === undefined ? ['succeeded'] : ['succeeded', 'cancelled']
  assert.ok(expected.includes(timeline.status), `${about}: ended as ${timeline.status}`)
  assert.equal(timeline.skipped, 0, about)
  const { events } = timeline
  assert.deepEqual(
    events.map(({ seq }) => seq),
    events.map((_, index) => index + 1),
    `${about}: no hole`,
  )
  assert.equal(events.filter(({ event }) => event === 'agent.end').length, 1, `${about}: one end in the journal`)
  assert.equal(events.at(-1)?.event, 'agent.end', `${about}: the end is last`)

  const invariants = (await readJson(`${baseUrl}/v1/agent/runs/${id}/invariants?userId=${plan.user}`)) as {
    kept: boolean
    rules: { id: string; kept: boolean }[]
  }
  assert.deepEqual(
    invariants.rules.filter(({ kept }) => !kept).map(({ id: rule }) => rule),
    [],
    `${about}: every rule is kept`,
  )
  for (const [tool, executed] of [
    ['pay', ledger.paid],
    ['stamp', ledger.stamped],
  ] as const) {
    const succeeded = events.filter(
      ({ event, payload }) => event === 'tool.state' && payload.name === tool && payload.status === 'succeeded',
    ).length
    const found = Object.keys(executed).filter((name) => name.startsWith(`${plan.mark}-`)).length
    assert.ok(found >= succeeded, `${about}: a call that succeeded was made`)
  }
  checkResolutions(events, about)
  // Other families answer in words of their own.
  if (cancelAnswer !== undefined && wire.cancel(plan.user, id)?.path.startsWith('/v1/agent/') === true) {
    const told = JSON.parse(cancelAnswer.text) as { status: string; accepted: boolean }
    assert.ok([200, 202].includes(cancelAnswer.status), `${about}: the cancel got ${cancelAnswer.text}`)
    if (cancelAnswer.status === 200)
      assert.equal(told.status, timeline.status, `${about}: the answer to the cancel was true`)
    if (cancelAnswer.status === 202) assert.equal(timeline.status, 'cancelled', `${about}: an accepted cancel cancels`)
  }
}

/** A decision takes effect at most once. */
function checkResolutions(events: readonly Entry[], about: string): void {
  const seen = new Set<string>()
  for (const { payload } of events) {
    const { interactionId, resolution } = payload
    if (interactionId === undefined || resolution === undefined) continue
    assert.ok(!seen.has(interactionId), `${about}: ${interactionId} was resolved once`)
    seen.add(interactionId)
  }
}

/** A decision that was sent, and the answer to it. */
export type SentDecision = {
  id: string
  decision: 'confirm' | 'reject'
  /** `unknown`: the question was what to do after a crash. */
  outcome: string | null
  payment: string | undefined
  answer: Answered
}

export function checkDecisions(decisions: readonly SentDecision[], { paid }: Ledger): void {
  const taken = new Map<string, SentDecision>()
  for (const sent of decisions) {
    const { id, answer } = sent
    // 409: another request decided it, or one whose answer was cut off, or it was closed with its run.
    assert.ok([200, 409].includes(answer.status), `confirmation ${id}: ${answer.text}`)
    if (answer.status !== 200) continue
    assert.ok(!taken.has(id), `confirmation ${id}: two requests were told that they decided it`)
    taken.set(id, sent)
  }
  for (const { id, decision, outcome, payment } of taken.values()) {
    if (decision === 'reject' && outcome === null && payment !== undefined)
      assert.equal(paid[payment], undefined, `confirmation ${id} was rejected, so its payment is not made`)
  }
}

/** How the frames of two arms interleave is each connection's own; each arm's frames are not. */
async function checkComparison(baseUrl: string, finished: Finished, about: string): Promise<void> {
  const replay = await framesAt(baseUrl, finished)
  for (const arm of ['a', 'b']) {
    const ofArm = (frames: string[]) =>
      frames.map((frame) => frame.replace(/^id: .*\n/, '')).filter((frame) => frame.includes(`"arm":"${arm}"`))
    assert.deepEqual(ofArm(finished.frames), ofArm(replay), `${about}: arm ${arm}`)
    assert.equal(ofArm(replay).filter((frame) => /"type":"(done|error)"/.test(frame)).length, 1, `${about}: arm ${arm}`)
  }
}

async function framesAt(baseUrl: string, { wire, plan, id }: Finished, lastId?: string): Promise<string[]> {
  const frames: string[] = []
  for (let last = lastId; ; last = frames.at(-1)?.match(/^id: (\S+)$/m)?.[1]) {
    const headers: Record<string, string> = last === undefined ? {} : { 'last-event-id': last }
    const stream = await openText(`${baseUrl}${wire.attach(plan.user, id)}`, headers)
    const read = stream.split(wire.separator).filter((frame) => frame !== '' && wire.isJournaled(frame))
    frames.push(...read)
    // A stream that ended at a decision goes on after its last frame.
    if (wire.parks !== true || read.length === 0) return frames
  }
}

async function openText(url: string, headers: Record<string, string>): Promise<string> {
  const response = await fetch(url, { headers })
  assert.ok(response.status === 200 || response.status === 204, `${url} answered ${response.status}`)
  return await response.text()
}

export async function readJson(url: string): Promise<unknown> {
  const response = await fetch(url)
  const text = await response.text()
  assert.equal(response.status, 200, `${url}: ${text}`)
  return JSON.parse(text)
}
