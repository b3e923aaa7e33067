// A server that is stopped or killed while an AG-UI agent works for it: no remote run is started
// twice, no decision is sent twice, and an outcome that is not known is reported as unknown.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonValue } from '../../journal/event.ts'
import { approval, endOf, refund, sharedAgUiRig } from '../../../test/support/ag-ui-rig.ts'
import { crashImages } from '../../../test/support/crash-images.ts'
import { interrupt, message, result } from '../../../test/support/fake-ag-ui.ts'
import { ended, endedWithConsent, eventsOf, isWaiting } from '../../../test/support/run-helpers.ts'
import { openRig } from '../../../test/support/run-rig.ts'
import { until } from '../../../test/support/until.ts'

const { fake, engineAt, rigWith, asked } = sharedAgUiRig()

test('a stop of the server leaves the remote agent at work', async (context) => {
  const rig = await rigWith(context)
  const question = await asked([...message('m', 'I'), { stall: true }])
  const { run } = await rig.start({ input: question })
  await rig.until(run.id, ({ lastSeq }) => lastSeq >= 5)
  await rig.close()
  await fake.release()
  const seen = await until('the end of the remote run', async () =>
    (await fake.runs(question)).find((each) => each.isOver),
  )

  assert.equal(seen.closedEarly, false)
})

test('killed after any commit: no run is started twice, no decision applied twice, and there is one end', async (context) => {
  const images = crashImages(context)
  const answers = [
    [...refund, interrupt(approval)],
    [result('c1', 'done'), ...message('m2', 'It is ', 'done.')],
  ]
  const question = await asked(...answers)
  const first = await openRig({
    turnEngine: engineAt(),
    ...images.options,
  })
  const { run } = await first.start({ input: question })
  await first.until(run.id, isWaiting)
  const [row] = await first.store.interactionsOf(run.id)
  await first.confirm('ada', row?.id ?? '', undefined)
  await first.until(run.id, ended)
  await first.close()
  assert.ok(images.paths.length > 8, `${images.paths.length} images`)

  const seenEnds = new Set<string>()
  for (const [index, path] of images.paths.entries()) {
    const at = `image ${index}`
    await fake.reset()
    const rig = await images.reopen(path, { turnEngine: engineAt(), clock: first.clock })
    const journal = await rig.events(run.id)
    const states = eventsOf(journal, 'engine.handle').map(({ data }) => (data.handle as { state: string }).state)
    // An image whose remote agent waits for a decision: the agent of this life has to know that.
    const isInterrupted = states.at(-1) === 'interrupted'
    if (isInterrupted) await primeInterrupt(question)
    await fake.script(question, ...(isInterrupted ? answers.slice(1) : answers))
    const remoteBefore = (await fake.runs(question)).length
    rig.scheduler.start()
    await endedWithConsent(rig, run.id)

    const events = await rig.events(run.id)
    const remote = (await fake.runs(question)).length - remoteBefore
    const end = endOf(events)
    seenEnds.add(`${states.at(-1)} ${end?.status} ${end?.error?.code}`)
    assert.equal(eventsOf(events, 'run.ended').length, 1, at)
    assert.equal(
      eventsOf(events, 'tool.called').length,
      end?.status === 'succeeded' ? 1 : eventsOf(journal, 'tool.called').length,
      at,
    )
    if (journal.some(({ type }) => type === 'run.ended')) assert.equal(remote, 0, at)
    else if (states.length === 0) assert.equal(remote, 2, at)
    else if (isInterrupted) assert.equal(remote, 1, at)
    else assert.equal(remote, 0, `${at}: what may have been started is not started again`)
    for (const count of Object.values((await fake.seen()).applied)) assert.equal(count, 1, at)
    await rig.close()
  }
  assert.deepEqual([...seenEnds].toSorted(), [
    'finished succeeded undefined',
    'interrupted succeeded undefined',
    'resuming failed engine_outcome_unknown',
    'started failed engine_outcome_unknown',
    'undefined succeeded undefined',
  ])

  /** Lets the agent run into its interrupt on the thread of the run, as it did before the crash. */
  async function primeInterrupt(asking: string): Promise<void> {
    await fake.script(asking, [interrupt(approval)])
    const threadId = run.conversationId ?? run.id
    const messages = [{ id: 'x', role: 'user', content: asking }]
    const body = { threadId, runId: 'prime', state: {}, messages, tools: [], context: [], forwardedProps: {} }
    const response = await fetch(fake.url, { method: 'POST', body: JSON.stringify(body) })
    await response.text()
  }
})

test('a handle of another version has an unknown outcome', async () => {
  const engine = engineAt()
  const request = {} as Parameters<typeof engine.turn>[0]
  const attempt = async (handle: JsonValue) => {
    for await (const parts of engine.turn(request, handle, { of: () => undefined }, new AbortController().signal))
      void parts
  }
  await assert.rejects(attempt({ state: 'new' }), { code: 'engine_outcome_unknown' })
})
