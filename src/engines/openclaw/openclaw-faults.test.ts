// Lost connections, lost frames and restarts of the gateway: they lose nothing, repeat nothing and start
// nothing twice.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startFakeOpenclaw } from '../../../test/support/fake-openclaw.ts'
import { manualClock } from '../../../test/support/manual-clock.ts'
import {
  openclawTurns,
  type TurnResult,
  story,
  storyParts,
  textOf,
  visible,
} from '../../../test/support/openclaw-turns.ts'
import { someone, until } from '../../../test/support/test-server.ts'
import type { GatewayAction } from '../../../test/fakes/openclaw-script.ts'
import { AppError } from '../../errors/app-error.ts'
import type { JsonValue } from '../../journal/event.ts'

const openclaw = openclawTurns()
const { engineAt, take, scripted, startsOf } = openclaw

const call = { id: 'c1', name: 'search', args: { q: 'x' } }

test('a connection that drops at any point of the run loses and repeats nothing', async () => {
  for (let at = 0; at <= story.length; at += 1) {
    const actions: GatewayAction[] = [
      ...story.slice(0, at),
      { drop: true },
      { untilFollowed: true },
      ...story.slice(at),
    ]
    const { parts, error, runId } = await scripted(actions)
    assert.equal(error, undefined, `dropped at ${at}: ${error?.message}`)
    assert.equal(textOf(parts), 'Let me look.Two hits.', `dropped at ${at}`)
    const others = visible(parts).filter(({ type }) => type !== 'text' && type !== 'tool-progress')
    assert.deepEqual(
      others.map(({ type }) => type),
      ['tool-called', 'tool-done', 'finish'],
      `dropped at ${at}`,
    )
    assert.equal(await startsOf(runId), 1)
  }
})

test('lost frames are read from the history, and frames that come twice count once', async () => {
  for (let at = 0; at < story.length; at += 1) {
    const lossy = await scripted([...story.slice(0, at), { lose: 2 }, ...story.slice(at)])
    assert.equal(lossy.error, undefined)
    assert.equal(textOf(lossy.parts), 'Let me look.Two hits.', `lost at ${at}`)
    const types = visible(lossy.parts).map(({ type }) => type)
    assert.deepEqual(
      types.filter((type) => type !== 'text' && type !== 'tool-progress'),
      ['tool-called', 'tool-done', 'finish'],
    )
  }
  const doubled = await scripted([{ duplicate: 100 }, ...story])
  assert.deepEqual(visible(doubled.parts), storyParts)
})

test('numbers that the gateway skips when it merges text need no look at the history', async () => {
  const before = (await openclaw.gateway.state()).historyReads
  await scripted(story)
  // One read before the start, to know whether the session has history.
  assert.equal((await openclaw.gateway.state()).historyReads, before + 1)
})

test('text in a lost frame is shown when the next frame comes, and not only at the end', async () => {
  const actions: GatewayAction[] = [
    { text: 'One.' },
    { lose: 1 },
    { text: 'Two.' },
    { reasoning: 'Hm.' },
    { hold: true },
    { text: 'Three.' },
  ]
  const { parts } = await scripted(actions, {
    // Time stands still, so that a silence does not make the engine look at the history.
    engine: engineAt(openclaw.gateway.baseUrl, { clock: manualClock() }),
    onPart: (part) => part.type === 'text' && part.text.includes('Two.') && void openclaw.gateway.release(),
  })
  assert.equal(textOf(parts), 'One.\n\nTwo.\n\nThree.')
})

test('after a reconnect the progress of tools is still shown', async () => {
  const actions: GatewayAction[] = [...story.slice(0, 2), { drop: true }, { untilFollowed: true }, ...story.slice(2)]
  const { parts } = await scripted(actions)
  assert.equal(parts.filter(({ type }) => type === 'tool-progress').length, 1)
})

test('a run that ends without its last event, or without any, is finished from the history', async (context) => {
  // Without ticks: the engine has to notice the silence of the run itself.
  const quiet = await startFakeOpenclaw({ tickMs: 3_600_000 })
  context.after(() => quiet.stop())
  for (const ending of [{ endWithoutFinal: true }, { silentEnd: true }] as const) {
    const clock = manualClock()
    const runId = someone('run')
    await quiet.script(runId, [...story, ending])
    const before = (await quiet.state()).connections
    const turn = take({ runId, engine: engineAt(quiet.baseUrl, { clock }) })
    let result: TurnResult | undefined
    void turn.then((found) => (result = found))
    const { parts, error } = await until('the end of the turn', async () => {
      await clock.advance(1_000)
      return result
    })
    assert.equal(error, undefined)
    assert.equal(textOf(parts), 'Let me look.Two hits.')
    assert.equal(parts.at(-1)?.type, 'finish')
    assert.equal((await quiet.state()).connections, before + 1, 'on the same connection')
  }
})

test('a gateway that is restarted in the middle of a run fails the turn visibly, and does not start it again', async () => {
  for (const sessions of [true, false]) {
    const { error, parts, runId } = await scripted([{ text: 'I am ' }, { call }, { restart: { sessions } }])
    assert.equal(error?.code, 'engine_outcome_unknown')
    assert.equal(textOf(parts), 'I am')
    assert.equal(await startsOf(runId), 1)
  }
})

test('a run that finished before the gateway was restarted is finished from its session', async () => {
  const runId = someone('run')
  await openclaw.gateway.script(runId, [...story, { hold: true }])
  const first = take({
    runId,
    onPart(part) {
      if (part.type === 'text' && part.text.includes('hits')) void openclaw.gateway.restart({})
    },
  })
  const { parts, error } = await first
  assert.equal(error, undefined)
  assert.equal(textOf(parts), 'Let me look.Two hits.')
  assert.equal(parts.at(-1)?.type, 'finish')
})

test('a start whose answer was lost is looked up, and sent again only if the gateway never got it', async () => {
  for (const dropSend of ['before', 'after'] as const) {
    await openclaw.gateway.behave({ dropSend })
    const { parts, error, runId } = await scripted([{ text: ['Once', ' only.'] }])
    assert.equal(error, undefined)
    assert.equal(textOf(parts), 'Once only.')
    assert.equal(await startsOf(runId), 1)
  }
})

test('a start that met a restart of the gateway is not sent again, because nobody knows whether it arrived', async () => {
  await openclaw.gateway.behave({ dropSend: 'restart' })
  const before = (await openclaw.gateway.state()).sends
  const { error, runId } = await scripted([{ text: 'Once only.' }])
  assert.equal(error?.code, 'engine_outcome_unknown')
  assert.equal(await startsOf(runId), 0)
  assert.equal((await openclaw.gateway.state()).sends, before + 1)
})

test('after a crash the run is found again by its handle: still at work, finished, or unknown', async () => {
  const runId = someone('run')
  await openclaw.gateway.script(runId, [...story.slice(0, 2), { hold: true }, ...story.slice(2)])
  const abort = new AbortController()
  const crash = () => abort.abort(new AppError('run_fenced', 'dead'))
  const first = await take({ runId, signal: abort.signal, onPart: (part) => part.type === 'tool-called' && crash() })
  const working = take({
    runId,
    handle: first.handle as JsonValue,
    onPart: (part) => void (part.type === 'tool-called' && openclaw.gateway.release()),
  })
  assert.equal(textOf((await working).parts), 'Let me look.Two hits.')
  const finished = await take({ runId, handle: first.handle as JsonValue })
  assert.equal(textOf(finished.parts), 'Let me look.Two hits.')
  assert.equal(finished.parts.at(-1)?.type, 'finish')
  assert.equal(await startsOf(runId), 1)

  const handle = { transport: 'websocket', sessionKey: 'conv:nobody', runKey: 'never', state: 'starting' }
  const unknown = await take({ runId: 'never', handle })
  assert.equal(unknown.error?.code, 'engine_outcome_unknown')
  assert.equal(await startsOf('never'), 0)
})

test('a handle of another version is an unknown outcome', async () => {
  for (const handle of [1, null, {}, { transport: 'pigeon' }, { sessionKey: 7, runKey: [] }] as JsonValue[]) {
    assert.equal((await take({ handle })).error?.code, 'engine_outcome_unknown')
  }
})
