// A scripted turn engine in the real run machinery: its turns are journaled like those of a
// local run, exactly once, whatever interrupts them.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import type { Decisions, TurnEngine, TurnPart, TurnRequest } from '../engines/engine.ts'
import { AppError } from '../errors/app-error.ts'
import type { EventType, JsonValue, RunEvent } from '../journal/event.ts'
import { openRig, type Rig, type RigOptions, says } from '../../test/support/run-rig.ts'
import { crashImages } from '../../test/support/crash-images.ts'
import { ended, endedWithConsent, eventsOf, isWaiting } from '../../test/support/run-helpers.ts'

type Turn = (
  handle: JsonValue | undefined,
  decisions: Decisions,
  signal: AbortSignal,
  request: TurnRequest,
) => AsyncIterable<TurnPart[]>

type Scripted = TurnEngine & { handles: (JsonValue | undefined)[]; aborted: JsonValue[] }

function scripted(turn: Turn, more: Partial<TurnEngine> = {}): Scripted {
  const handles: (JsonValue | undefined)[] = []
  const aborted: JsonValue[] = []
  return {
    kind: 'turn',
    name: 'remote',
    canEditInput: false,
    handles,
    aborted,
    turn(request, handle, decisions, signal) {
      handles.push(handle)
      return turn(handle, decisions, signal, request)
    },
    abort(handle) {
      aborted.push(handle)
      return Promise.resolve()
    },
    ...more,
  }
}

async function rigWith(context: TestContext, turnEngine: TurnEngine, options: RigOptions = {}): Promise<Rig> {
  const rig = await openRig({ turnEngine, ...options })
  context.after(() => rig.close())
  return rig
}

const types = (events: RunEvent[]) => events.map(({ type }) => type)

async function finished(rig: Rig): Promise<RunEvent[]> {
  const { run } = await rig.start()
  await rig.until(run.id, ended)
  return await rig.events(run.id)
}

async function untilAborted(signal: AbortSignal): Promise<never> {
  return await new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason as Error)
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
  })
}

const call = { callId: 'c1', name: 'search', input: { q: 'x' } }

test('text, reasoning, calls and the end of a remote turn become the events of a run', async (context) => {
  const engine = scripted(async function* () {
    yield [{ type: 'handle', handle: { run: 'r' } }]
    yield [{ type: 'reasoning', text: 'Hm.' }]
    yield [
      { type: 'text', text: 'Let me ' },
      { type: 'text', text: 'look.' },
    ]
    yield [{ type: 'tool-called', ...call }]
    yield [{ type: 'tool-progress', callId: 'c1', message: 'half' }]
    yield [{ type: 'tool-done', callId: 'c1', outcome: 'succeeded', output: { hits: 2 } }]
    yield [{ type: 'context', layer: 'session', patch: { topic: 'x' } }]
    yield [
      { type: 'text', text: 'Two hits.' },
      { type: 'finish', reason: 'stop', usage: { outputTokens: 4 } },
    ]
  })
  const events = await finished(await rigWith(context, engine))

  assert.deepEqual(types(events), [
    'run.accepted',
    'context.patch',
    'run.state',
    'engine.handle',
    'step.started',
    'reasoning.delta',
    'text.delta',
    'text.delta',
    'message.done',
    'tool.called',
    'step.done',
    'tool.started',
    'tool.progress',
    'tool.done',
    'context.patch',
    'step.started',
    'text.delta',
    'message.done',
    'step.done',
    'run.state',
    'run.ended',
  ])
  assert.equal(eventsOf(events, 'run.ended')[0]?.data.output, 'Two hits.')
  assert.equal(eventsOf(events, 'tool.called')[0]?.data.source, 'engine:remote')
  assert.deepEqual(eventsOf(events, 'tool.done')[0]?.data.output, { hits: 2 })
  assert.equal(eventsOf(events, 'step.done').at(-1)?.data.usage?.outputTokens, 4)
})

test('a turn that begins with a call and ends without text still has a final message', async (context) => {
  const engine = scripted(async function* () {
    yield [{ type: 'tool-called', ...call }]
    yield [
      { type: 'tool-done', callId: 'c1', outcome: 'succeeded' },
      { type: 'finish', reason: 'stop' },
    ]
  })
  const events = await finished(await rigWith(context, engine))

  assert.equal(eventsOf(events, 'run.ended')[0]?.data.status, 'succeeded')
  assert.equal(eventsOf(events, 'message.done').length, 1)
})

test('a handle is stored before the engine goes on', async (context) => {
  let seen: EventType[] = []
  const rigs: Rig[] = []
  const engine = scripted(async function* (_handle, _decisions, _signal, { runId }) {
    yield [{ type: 'handle', handle: 1 }]
    seen = types((await rigs[0]?.events(runId)) ?? [])
    yield [{ type: 'finish', reason: 'stop' }]
  })
  const rig = await rigWith(context, engine)
  rigs.push(rig)
  await finished(rig)

  assert.equal(seen.at(-1), 'engine.handle')
})

/** A remote turn with two messages and a call that is approved, as a gateway that can be re-attached plays it. */
function replayingEngine(): Scripted {
  return scripted(async function* (handle, decisions, signal) {
    if (handle === undefined) yield [{ type: 'handle', handle: { run: 'remote-1' } }]
    else yield [{ type: 'attached', replays: 'turn' }]
    yield [{ type: 'reasoning', text: 'think' }]
    for (const text of ['I will ', 'refund. ']) yield [{ type: 'text', text }]
    yield [{ type: 'approval', key: 'a1', prompt: 'Refund order 7', ...call }]
    const decision = decisions.of('a1')
    if (decision === undefined) await untilAborted(signal)
    const outcome = decision?.resolution === 'confirmed' ? 'succeeded' : 'denied'
    yield [{ type: 'tool-done', callId: 'c1', outcome, output: outcome }]
    for (const text of ['It is ', 'done.']) yield [{ type: 'text', text }]
    yield [{ type: 'finish', reason: 'stop' }]
  })
}

test('an approval parks the run, and the decision goes on with the same remote turn', async (context) => {
  for (const decide of ['confirm', 'reject'] as const) {
    const engine = replayingEngine()
    const rig = await rigWith(context, engine)
    const { run } = await rig.start()
    await rig.until(run.id, isWaiting)
    const [row] = await rig.store.interactionsOf(run.id)
    assert.equal(row?.prompt, 'Refund order 7')
    assert.deepEqual(row?.input, { q: 'x' })
    if (decide === 'confirm') await rig.confirm('ada', row?.id ?? '', undefined)
    else await rig.reject('ada', row?.id ?? '', 'too dear')
    await rig.until(run.id, ended)

    const events = await rig.events(run.id)
    assert.deepEqual(engine.handles, [undefined, { run: 'remote-1' }])
    assert.equal((await rig.store.readRun(run.id))?.engine, 'remote')
    assert.deepEqual(
      eventsOf(events, 'text.delta').map(({ data }) => data.text),
      ['I will ', 'refund. ', 'It is ', 'done.'],
    )
    assert.equal(eventsOf(events, 'reasoning.delta').length, 1)
    assert.equal(eventsOf(events, 'input.required').length, 1)
    assert.equal(eventsOf(events, 'tool.called').length, 1)
    assert.equal(eventsOf(events, 'tool.done')[0]?.data.outcome, decide === 'confirm' ? 'succeeded' : 'denied')
    assert.equal(eventsOf(events, 'run.ended')[0]?.data.status, 'succeeded')
    assert.deepEqual(engine.aborted, [])
  }
})

test('a call that was reported before it was rejected is denied, and not a failure', async (context) => {
  const engine = scripted(async function* (handle, decisions) {
    if (handle === undefined) yield [{ type: 'handle', handle: 1 }]
    else yield [{ type: 'attached', replays: 'turn' }]
    yield [{ type: 'tool-called', ...call }]
    // After a crash the approval is no longer pending, so only its result is reported.
    if (decisions.of('a1') === undefined) yield [{ type: 'approval', key: 'a1', prompt: 'Refund order 7', ...call }]
    yield [{ type: 'tool-done', callId: 'c1', outcome: 'failed', error: { code: 'tool_failed', message: 'refused' } }]
    yield [{ type: 'finish', reason: 'stop' }]
  })
  const rig = await rigWith(context, engine)
  const { run } = await rig.start()
  await rig.until(run.id, isWaiting)
  const [row] = await rig.store.interactionsOf(run.id)
  await rig.reject('ada', row?.id ?? '', 'too dear')
  await rig.until(run.id, ended)

  const [done] = eventsOf(await rig.events(run.id), 'tool.done')
  assert.equal(done?.data.outcome, 'denied')
  assert.equal(done?.data.error?.message, 'too dear')
})

test('changed arguments are refused if the engine cannot run the call with them', async (context) => {
  const engine = replayingEngine()
  const rig = await rigWith(context, engine)
  const { run } = await rig.start()
  await rig.until(run.id, isWaiting)
  const [row] = await rig.store.interactionsOf(run.id)
  await rig.confirm('ada', row?.id ?? '', { q: 'y' })
  await rig.until(run.id, ended)

  const [done] = eventsOf(await rig.events(run.id), 'tool.done')
  assert.equal(done?.data.outcome, 'denied')
  assert.match(done?.data.summary ?? '', /cannot run a call with changed arguments/)
})

test('killed after any commit, the turn is re-attached, nothing is shown twice, and there is one end', async (context) => {
  const images = crashImages(context)
  const first = await openRig({
    turnEngine: replayingEngine(),
    ...images.options,
  })
  const { run } = await first.start()
  await first.until(run.id, isWaiting)
  const [row] = await first.store.interactionsOf(run.id)
  await first.confirm('ada', row?.id ?? '', undefined)
  await first.until(run.id, ended)
  await first.close()
  assert.ok(images.paths.length > 8, `${images.paths.length} images`)

  for (const [index, image] of images.paths.entries()) {
    const engine = replayingEngine()
    const rig = await images.reopen(image, { turnEngine: engine, clock: first.clock })
    rig.scheduler.start()
    await endedWithConsent(rig, run.id)
    const events = await rig.events(run.id)
    const shown = eventsOf(events, 'text.delta').map(({ data }) => data.text)
    assert.equal(shown.join(''), 'I will refund. It is done.', `image ${index}`)
    assert.equal(eventsOf(events, 'run.ended').length, 1, `image ${index}`)
    assert.equal(eventsOf(events, 'tool.called').length, 1, `image ${index}`)
    assert.equal(eventsOf(events, 'tool.done').length, 1, `image ${index}`)
    assert.equal(eventsOf(events, 'input.required').length, 1, `image ${index}`)
    // Only an image without the handle may start a remote turn.
    const starts = engine.handles.filter((handle) => handle === undefined).length
    const before = eventsOf(events, 'engine.handle').length
    assert.equal(before, 1, `image ${index}`)
    assert.ok(starts <= 1, `image ${index}`)
    await rig.close()
  }
})

test('a turn whose outcome is unknown after a crash fails visibly, and its open call is unknown', async (context) => {
  const engine = scripted(async function* (handle) {
    if (handle !== undefined) throw new AppError('engine_outcome_unknown', 'The remote side has forgotten the turn.')
    yield [{ type: 'handle', handle: 1 }]
    yield [{ type: 'tool-called', ...call }]
    yield [{ type: 'question', key: 'q', prompt: 'Which one?' }]
  })
  const rig = await rigWith(context, engine)
  const { run } = await rig.start()
  await rig.until(run.id, isWaiting)
  await rig.clock.advance(3_600_001)
  rig.scheduler.poke()
  await rig.until(run.id, ended)

  const events = await rig.events(run.id)
  assert.equal(eventsOf(events, 'run.ended')[0]?.data.error?.code, 'engine_outcome_unknown')
  assert.equal(eventsOf(events, 'tool.done')[0]?.data.outcome, 'unknown')
  assert.equal(engine.handles.length, 2)
})

test('an engine that is not available before its turn begins is replaced, and the journal says so', async (context) => {
  const engine = scripted(() => {
    throw new AppError('engine_unavailable', 'Nobody listens.')
  })
  const rig = await rigWith(context, engine, { answer: () => says('From here.') })
  const { run } = await rig.start()
  await rig.until(run.id, ended)
  const events = await rig.events(run.id)

  assert.equal((await rig.store.readRun(run.id))?.engine, 'scripted')
  const [diagnostic] = eventsOf(events, 'diagnostic')
  assert.equal(diagnostic?.data.code, 'engine_fallback')
  assert.deepEqual(diagnostic?.data.details, { from: 'remote', to: 'scripted' })
  assert.equal(eventsOf(events, 'run.ended')[0]?.data.output, 'From here.')
})

test('an engine that fails after its turn began fails the run, and is not replaced', async (context) => {
  const engine = scripted(async function* () {
    yield [{ type: 'handle', handle: 1 }]
    yield [{ type: 'text', text: 'I' }]
    throw new AppError('engine_unavailable', 'The gateway is gone.')
  })
  const events = await finished(await rigWith(context, engine, { answer: () => says('Never.') }))

  assert.equal(eventsOf(events, 'run.ended')[0]?.data.error?.code, 'engine_unavailable')
  assert.equal(eventsOf(events, 'diagnostic').length, 0)
  assert.equal(eventsOf(events, 'message.done')[0]?.data.state, 'abandoned')
})

test('the tokens of a turn that failed are counted once, wherever the process is killed', async (context) => {
  const failing = () =>
    scripted(async function* (handle) {
      if (handle === undefined) yield [{ type: 'handle', handle: 1 }]
      else yield [{ type: 'attached', replays: 'turn' }]
      yield [{ type: 'text', text: 'I' }]
      yield [{ type: 'spent', usage: { inputTokens: 11, outputTokens: 2 } }]
      // So that the tokens are committed before the end.
      await setTimeout(20)
      throw new AppError('engine_failed', 'The provider is out of credit.')
    })
  const images = crashImages(context)
  const first = await openRig({ turnEngine: failing(), ...images.options })
  const { run } = await first.start()
  await first.until(run.id, ended)
  assert.equal((await first.store.readRun(run.id))?.usage?.inputTokens, 11)
  await first.close()

  for (const [index, image] of images.paths.entries()) {
    const rig = await images.reopen(image, { turnEngine: failing(), clock: first.clock })
    rig.scheduler.start()
    await rig.until(run.id, ended)
    const { usage } = (await rig.store.readRun(run.id)) ?? {}
    assert.deepEqual([usage?.steps, usage?.inputTokens, usage?.outputTokens], [1, 11, 2], `image ${index}`)
    await rig.close()
  }
})

test('a cancel stops the remote turn, and ends the run even if the remote side does not answer', async (context) => {
  for (const answers of [true, false]) {
    const aborted: JsonValue[] = []
    const engine = scripted(
      async function* (_handle, _decisions, signal) {
        yield [{ type: 'handle', handle: { run: 'r' } }]
        yield [{ type: 'tool-called', ...call }]
        await untilAborted(signal)
      },
      {
        abort(handle) {
          aborted.push(handle)
          return answers ? Promise.resolve() : new Promise(() => {})
        },
      },
    )
    const rig = await rigWith(context, engine)
    const { run } = await rig.start()
    await rig.until(run.id, ({ lastSeq }) => lastSeq >= 8)
    const cancelling = rig.service.cancel('ada', run.id, null)
    while (aborted.length === 0) await new Promise((resolve) => setImmediate(resolve))
    if (!answers) await rig.clock.advance(5_000)
    await rig.until(run.id, ended)
    await cancelling

    const events = await rig.events(run.id)
    assert.deepEqual(aborted, [{ run: 'r' }])
    assert.equal(eventsOf(events, 'run.ended')[0]?.data.status, 'canceled')
    assert.equal(eventsOf(events, 'tool.done').length, 1)
  }
})

test('a remote side that says nothing more, or ends without a word, fails the run', async (context) => {
  const silent = scripted(async function* (_handle, _decisions, signal) {
    yield [{ type: 'text', text: 'I' }]
    await untilAborted(signal)
  })
  const rig = await rigWith(context, silent)
  const { run } = await rig.start()
  await rig.until(run.id, ({ lastSeq }) => lastSeq >= 4)
  await rig.clock.advance(60_000)
  await rig.until(run.id, ended)
  assert.equal(eventsOf(await rig.events(run.id), 'run.ended')[0]?.data.error?.code, 'engine_stalled')

  const cut = scripted(async function* () {
    yield [{ type: 'text', text: 'I' }]
  })
  const events = await finished(await rigWith(context, cut))
  assert.equal(eventsOf(events, 'run.ended')[0]?.data.error?.code, 'engine_stream_incomplete')
})

test('a call without a result at the end of the turn is unknown', async (context) => {
  const engine = scripted(async function* () {
    yield [{ type: 'tool-called', ...call }]
    yield [{ type: 'finish', reason: 'stop' }]
  })
  const events = await finished(await rigWith(context, engine))
  assert.equal(eventsOf(events, 'tool.done')[0]?.data.outcome, 'unknown')
  assert.equal(eventsOf(events, 'run.ended')[0]?.data.status, 'succeeded')
})

test('a long output is cut, and kept whole beside the journal', async (context) => {
  const long = 'x'.repeat(300_000)
  const engine = scripted(async function* () {
    yield [{ type: 'tool-called', ...call }]
    yield [{ type: 'tool-done', callId: 'c1', outcome: 'succeeded', output: long }]
    yield [{ type: 'finish', reason: 'stop' }]
  })
  const rig = await rigWith(context, engine)
  const [done] = eventsOf(await finished(rig), 'tool.done')
  assert.equal(done?.data.truncated, true)
  assert.equal(done?.data.fullLength, 300_000)
  assert.equal((await rig.store.readBlob(done?.data.outputRef ?? ''))?.body, long)
})

test('where the wire cannot ask a person, an approval is refused at once', async (context) => {
  const engine = replayingEngine()
  const rig = await rigWith(context, engine)
  const { run } = await rig.start({ consent: 'refuse' })
  await rig.until(run.id, ended)

  const events = await rig.events(run.id)
  assert.equal(eventsOf(events, 'input.required').length, 0)
  assert.equal(eventsOf(events, 'tool.done')[0]?.data.outcome, 'denied')
  assert.equal(eventsOf(events, 'run.ended')[0]?.data.status, 'succeeded')
})

test('several approvals are asked at once, and a call that had begun is denied as any other', async (context) => {
  const engine = scripted(async function* (handle, decisions, signal) {
    if (handle === undefined) yield [{ type: 'handle', handle: 1 }]
    else yield [{ type: 'attached', replays: 'nothing' }]
    if (handle === undefined) yield [{ type: 'tool-called', ...call }]
    yield [
      { type: 'approval', key: 'a1', prompt: 'One?', ...call },
      { type: 'approval', key: 'a2', prompt: 'Two?', ...call, callId: 'c2' },
    ]
    if (decisions.of('a1') === undefined || decisions.of('a2') === undefined) await untilAborted(signal)
    yield [
      { type: 'tool-done', callId: 'c2', outcome: 'succeeded' },
      { type: 'finish', reason: 'stop' },
    ]
  })
  const rig = await rigWith(context, engine)
  const { run } = await rig.start()
  await rig.until(run.id, isWaiting)
  const [one, two] = await rig.store.interactionsOf(run.id)
  assert.deepEqual([one?.prompt, two?.prompt], ['One?', 'Two?'])
  await rig.reject('ada', one?.id ?? '', 'no')
  await rig.confirm('ada', two?.id ?? '', undefined)
  await rig.until(run.id, ended)

  const events = await rig.events(run.id)
  assert.deepEqual(
    eventsOf(events, 'tool.done').map(({ data }) => [data.callId, data.outcome]),
    [
      ['c1', 'denied'],
      ['c2', 'succeeded'],
    ],
  )
  assert.equal(engine.handles.length, 2)
})

test('a null handle says that nothing was started, so another engine may answer', async (context) => {
  const engine = scripted(async function* () {
    yield [{ type: 'handle', handle: 1 }]
    yield [{ type: 'handle', handle: null }]
    throw new AppError('engine_unavailable', 'HTTP 503')
  })
  const events = await finished(await rigWith(context, engine, { answer: () => says('From here.') }))

  assert.equal(eventsOf(events, 'diagnostic')[0]?.data.code, 'engine_fallback')
  assert.equal(eventsOf(events, 'run.ended')[0]?.data.output, 'From here.')
  assert.deepEqual(engine.aborted, [])
})
