// The engine against a stand-in gateway in its own process: what it makes of the gateway's
// events, and that faults lose nothing, repeat nothing and start nothing twice.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { closedAddress } from '../../../test/support/closed-port.ts'
import { type FakeOpenclaw, startFakeOpenclaw } from '../../../test/support/fake-openclaw.ts'
import { manualClock } from '../../../test/support/manual-clock.ts'
import { someone, until } from '../../../test/support/test-server.ts'
import type { GatewayAction } from '../../../test/fakes/openclaw-script.ts'
import { AppError } from '../../errors/app-error.ts'
import type { JsonValue } from '../../journal/event.ts'
import { type Clock, systemClock } from '../../kit/clock.ts'
import { ulidIds } from '../../kit/ids.ts'
import { createOpenAiClient } from '../../models/openai-client.ts'
import type { ModelMessage } from '../../models/model.ts'
import type { TurnDecision, TurnEngine, TurnPart, TurnRequest } from '../engine.ts'
import { createOpenclawEngine, openclawUrl } from './openclaw-engine.ts'

let gateway: FakeOpenclaw

before(async () => {
  gateway = await startFakeOpenclaw()
})
after(async () => {
  await gateway.stop()
})

function engineAt(url: string, options: { clock?: Clock; token?: string } = {}): TurnEngine {
  const { clock = systemClock, token = gateway.token } = options
  return createOpenclawEngine({
    url,
    token,
    version: '1.0.0',
    clock,
    chatCompletions: createOpenAiClient({
      baseUrl: `${openclawUrl(url, 'http')}/v1`,
      apiKey: token,
      provider: 'openclaw',
      keyVariable: 'OPENCLAW_TOKEN',
      ids: ulidIds(() => 0),
      clock,
    }),
  })
}

type Turn = {
  engine?: TurnEngine
  runId?: string
  conversationId?: string
  input?: string
  earlier?: ModelMessage[]
  handle?: JsonValue
  decisions?: Record<string, TurnDecision>
  signal?: AbortSignal
  onPart?(part: TurnPart): void
}

type Result = { parts: TurnPart[]; error: AppError | undefined; handle: JsonValue | undefined }

/** Runs a turn as the run loop does: it stops at an approval without a decision. */
async function take(turn: Turn): Promise<Result> {
  const { engine = engineAt(gateway.baseUrl), runId = someone('run'), decisions = {} } = turn
  const parts: TurnPart[] = []
  let handle = turn.handle
  const request: TurnRequest = {
    runId,
    owner: 'ada',
    conversationId: turn.conversationId ?? `of-${runId}`,
    messages: [...(turn.earlier ?? []), { role: 'user', content: turn.input ?? runId }],
    spec: {} as TurnRequest['spec'],
  }
  const signal = turn.signal ?? new AbortController().signal
  try {
    for await (const batch of engine.turn(request, turn.handle, { of: (key) => decisions[key] }, signal)) {
      for (const part of batch) {
        parts.push(part)
        turn.onPart?.(part)
        if (part.type === 'handle') handle = part.handle
        if (part.type === 'approval' && decisions[part.key] === undefined) return { parts, error: undefined, handle }
      }
    }
    return { parts, error: undefined, handle }
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return { parts, error, handle }
  }
}

/** The run id is the marker that selects the script. */
async function scripted(actions: GatewayAction[], turn: Turn = {}): Promise<Result & { runId: string }> {
  const runId = turn.runId ?? someone('run')
  await gateway.script(runId, actions)
  return { runId, ...(await take({ ...turn, runId })) }
}

const textOf = (parts: TurnPart[]) => parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
const visible = (parts: TurnPart[]) => parts.filter(({ type }) => type !== 'handle' && type !== 'attached')
const startsOf = async (runId: string) => (await gateway.state()).started.filter((run) => run.runId === runId).length

const call = { id: 'c1', name: 'search', args: { q: 'x' } }
const story: GatewayAction[] = [
  { text: ['Let ', 'me ', 'look.\n'] },
  { call },
  { progress: { id: 'c1', text: 'half' } },
  { result: { id: 'c1', text: '{"hits":2}' } },
  { text: ['Two ', 'hits.'] },
]
const told: TurnPart[] = [
  { type: 'text', text: 'Let' },
  { type: 'text', text: ' me' },
  { type: 'text', text: ' look.' },
  { type: 'tool-called', callId: 'c1', name: 'search', input: { q: 'x' } },
  { type: 'tool-progress', callId: 'c1', message: 'half' },
  { type: 'tool-done', callId: 'c1', outcome: 'succeeded', output: { hits: 2 } },
  { type: 'text', text: 'Two' },
  { type: 'text', text: ' hits.' },
  { type: 'finish', reason: 'stop', usage: { inputTokens: 11, outputTokens: 7 } },
]

test('text, reasoning, calls and the end of a remote run become the parts of a turn', async () => {
  const { parts, error, runId } = await scripted([{ reasoning: ['Hm', '.'] }, ...story])

  assert.equal(error, undefined)
  assert.deepEqual(visible(parts), [{ type: 'reasoning', text: 'Hm' }, { type: 'reasoning', text: '.' }, ...told])
  const handles = parts.filter((part) => part.type === 'handle').map(({ handle }) => handle)
  assert.equal((handles[0] as { state: string }).state, 'starting')
  assert.deepEqual(handles[1], { ...(handles[0] as object), state: 'started', runId })
  assert.equal(JSON.stringify(handles).includes(gateway.token), false)
})

test('the remote run is started only after its handle was taken, with the run id as idempotency key', async () => {
  const runId = someone('run')
  const before: Promise<number>[] = []
  await take({
    runId,
    onPart(part) {
      if (part.type === 'handle') before.push(startsOf(runId))
    },
  })
  assert.equal(await before[0], 0)
  const { started } = await gateway.state()
  const mine = started.filter((run) => run.runId === runId)
  assert.equal(mine.length, 1)
  assert.match(mine[0]?.sessionKey ?? '', /^agent:main:conv:of-run/)
})

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
  assert.deepEqual(visible(doubled.parts), told)
})

test('numbers that the gateway skips when it merges text need no look at the history', async () => {
  const before = (await gateway.state()).historyReads
  await scripted(story)
  // One read before the start, to know whether the session has history.
  assert.equal((await gateway.state()).historyReads, before + 1)
})

test('frames of any shape are ignored', async () => {
  const raw = [
    '',
    'null',
    '[]',
    '"text"',
    '{"type":"event"}',
    '{"type":"event","event":"agent","payload":null}',
    '{"type":"event","event":"agent","payload":{"runId":7,"seq":"x","data":[]}}',
    '{"type":"event","event":"chat","payload":[]}',
    '{"type":"event","event":"exec.approval.requested","payload":{"request":7}}',
    '{"type":"event","event":"something.new","payload":{"x":1}}',
    '{"type":"res"}',
    '{"type":"res","id":"999","ok":true}',
    '{"type":"req","id":"1","method":"x"}',
    `{"type":"event","event":"agent","payload":${'['.repeat(5000)}${']'.repeat(5000)}}`,
    '{"broken',
  ]
  const { parts, error } = await scripted([...raw.map((text) => ({ raw: text })), ...story])
  assert.equal(error, undefined)
  // A frame that cannot be read may have been any, so the history is read, which has whole messages.
  assert.equal(textOf(parts), textOf(told))
  const calls = (all: TurnPart[]) => all.filter(({ type }) => type === 'tool-called' || type === 'tool-done')
  assert.deepEqual(calls(parts), calls(told))
  assert.equal(parts.at(-1)?.type, 'finish')
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
    engine: engineAt(gateway.baseUrl, { clock: manualClock() }),
    onPart: (part) => part.type === 'text' && part.text.includes('Two.') && void gateway.release(),
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
    let result: Result | undefined
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

test('a message that only the last event reports is shown', async () => {
  const { parts } = await scripted([{ final: 'Settings saved.' }])
  assert.equal(textOf(parts), 'Settings saved.')
})

test('an error of the gateway is an error of the turn, with its reason', async () => {
  const { error, parts } = await scripted([{ text: 'I ' }, { error: 'The provider is out of credit.' }])
  assert.equal(error?.code, 'engine_failed')
  assert.match(error?.message ?? '', /out of credit/)
  assert.equal(textOf(parts), 'I')
  assert.deepEqual(parts.at(-1), { type: 'spent', usage: { inputTokens: 11, outputTokens: 2 } })
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
  await gateway.script(runId, [...story, { hold: true }])
  const first = take({
    runId,
    onPart(part) {
      if (part.type === 'text' && part.text.includes('hits')) void gateway.restart({})
    },
  })
  const { parts, error } = await first
  assert.equal(error, undefined)
  assert.equal(textOf(parts), 'Let me look.Two hits.')
  assert.equal(parts.at(-1)?.type, 'finish')
})

test('a start whose answer was lost is looked up, and sent again only if the gateway never got it', async () => {
  for (const dropSend of ['before', 'after'] as const) {
    await gateway.behave({ dropSend })
    const { parts, error, runId } = await scripted([{ text: ['Once', ' only.'] }])
    assert.equal(error, undefined)
    assert.equal(textOf(parts), 'Once only.')
    assert.equal(await startsOf(runId), 1)
  }
})

test('a start that met a restart of the gateway is not sent again, because nobody knows whether it arrived', async () => {
  await gateway.behave({ dropSend: 'restart' })
  const before = (await gateway.state()).sends
  const { error, runId } = await scripted([{ text: 'Once only.' }])
  assert.equal(error?.code, 'engine_outcome_unknown')
  assert.equal(await startsOf(runId), 0)
  assert.equal((await gateway.state()).sends, before + 1)
})

const approval = { id: 'a1', callId: 'c1', command: 'rm -rf build', text: 'removed' }
const guarded: GatewayAction[] = [
  { text: 'I will clean up.' },
  { call: { id: 'c1', name: 'exec', args: { command: 'rm -rf build' } } },
  { approval },
  { text: 'All clean.' },
]

test('an approval stops the turn, and the decision goes to the gateway once', async () => {
  for (const [resolution, decision] of [
    ['confirmed', 'allow-once'],
    ['rejected', 'deny'],
    ['expired', 'deny'],
  ] as const) {
    const runId = someone('run')
    const mine = { ...approval, id: `of ${runId}` }
    await gateway.script(
      runId,
      guarded.map((action) => ('approval' in action ? { approval: mine } : action)),
    )
    const first = await take({ runId })
    const asked = first.parts.at(-1)
    assert.ok(asked?.type === 'approval')
    assert.equal(asked.key, mine.id)
    assert.equal(asked.callId, 'c1')
    assert.match(asked.prompt, /rm -rf build/)
    assert.ok((asked.expiresAt ?? 0) > Date.now())

    const decisions = { [mine.id]: { resolution } as TurnDecision }
    const second = await take({ runId, handle: first.handle as JsonValue, decisions })

    assert.equal(second.error, undefined)
    assert.deepEqual(second.parts[0], { type: 'attached', replays: 'turn' })
    assert.equal(textOf(second.parts), 'I will clean up.All clean.')
    const done = second.parts.find((part) => part.type === 'tool-done')
    assert.equal(done?.outcome, resolution === 'confirmed' ? 'succeeded' : 'failed')
    const { resolved } = await gateway.state()
    assert.deepEqual(
      resolved.filter(({ id }) => id === mine.id),
      [{ id: mine.id, decision }],
    )
    assert.equal(await startsOf(runId), 1)
  }
})

test('an approval that was decided elsewhere, or twice, is not decided again', async () => {
  const runId = someone('run')
  const mine = { ...approval, id: `of ${runId}` }
  await gateway.script(runId, [...guarded.slice(0, 2), { approval: mine }, { hold: true }, { text: 'All clean.' }])
  const first = await take({ runId })
  const decisions = { [mine.id]: { resolution: 'confirmed' } as TurnDecision }
  const abort = new AbortController()
  // The server dies after the decision was sent: the turn is attached once more.
  await take({
    runId,
    handle: first.handle as JsonValue,
    decisions,
    signal: abort.signal,
    onPart: (part) => part.type === 'tool-done' && abort.abort(new AppError('run_fenced', 'dead')),
  })
  await gateway.release()
  const last = await take({ runId, handle: first.handle as JsonValue, decisions })
  assert.equal(textOf(last.parts), 'I will clean up.All clean.')
  assert.equal((await gateway.state()).resolved.filter(({ id }) => id === mine.id).length, 1)
})

test('the approvals of other runs are not touched', async () => {
  const other = someone('run')
  await gateway.script(other, [{ approval: { ...approval, id: `of ${other}` } }])
  await take({ runId: other })
  const { parts, error } = await scripted([{ drop: true }, { untilFollowed: true }, ...story])
  assert.equal(error, undefined)
  assert.equal(parts.filter(({ type }) => type === 'approval').length, 0)
  assert.equal((await gateway.state()).resolved.filter(({ id }) => id === `of ${other}`).length, 0)
})

test('after a crash the run is found again by its handle: still at work, finished, or unknown', async () => {
  const runId = someone('run')
  await gateway.script(runId, [...story.slice(0, 2), { hold: true }, ...story.slice(2)])
  const abort = new AbortController()
  const crash = () => abort.abort(new AppError('run_fenced', 'dead'))
  const first = await take({ runId, signal: abort.signal, onPart: (part) => part.type === 'tool-called' && crash() })
  const working = take({
    runId,
    handle: first.handle as JsonValue,
    onPart: (part) => void (part.type === 'tool-called' && gateway.release()),
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

test('abort stops the remote run', async () => {
  const runId = someone('run')
  await gateway.script(runId, [{ text: 'I am ' }, { hold: true }])
  const engine = engineAt(gateway.baseUrl)
  const abort = new AbortController()
  const { handle } = await take({
    engine,
    runId,
    signal: abort.signal,
    onPart: (part) => part.type === 'text' && abort.abort(new AppError('run_fenced', 'cancelled')),
  })
  assert.deepEqual((await gateway.state()).aborted, [])
  await engine.abort(handle as JsonValue, new AbortController().signal)
  assert.deepEqual((await gateway.state()).aborted, [runId])
})

test('a gateway that cannot be used before anything was sent is unavailable', async () => {
  const nobody = await take({ engine: engineAt(await closedAddress()) })
  assert.equal(nobody.error?.code, 'engine_unavailable')

  const wrong = await take({ engine: engineAt(gateway.baseUrl, { token: 'wrong-token' }) })
  assert.equal(wrong.error?.code, 'engine_unavailable')
  assert.match(wrong.error?.message ?? '', /token mismatch/)
  assert.equal(wrong.error?.message.includes('wrong-token'), false)

  await gateway.behave({ connectError: { code: 'UNAVAILABLE', message: 'still starting' } })
  assert.match((await take({})).error?.message ?? '', /still starting/)

  for (const behaviour of [{ upgradeStatus: 404 }, { upgradeStatus: 302 }, { closeBeforeHello: true }]) {
    await gateway.behave(behaviour)
    assert.equal((await take({})).error?.code, 'engine_unavailable', JSON.stringify(behaviour))
  }
  await gateway.behave({ silent: true })
  const clock = manualClock()
  const silent = take({ engine: engineAt(gateway.baseUrl, { clock }) })
  await until('a connection', async () => ((await gateway.state()).open > 0 ? true : undefined))
  await clock.advance(10_000)
  assert.equal((await silent).error?.code, 'engine_unavailable')
  await gateway.behave({})
})

test('a gateway that refuses the message fails the turn with its reason', async () => {
  await gateway.behave({ refuseSend: 'the agent is archived' })
  const { error, runId } = await scripted([])
  await gateway.behave({})
  assert.equal(error?.code, 'engine_failed')
  assert.match(error?.message ?? '', /the agent is archived/)
  assert.equal(await startsOf(runId), 0)
})

test('a message is never taken for a command of the gateway', async () => {
  await gateway.behave({ scopes: ['operator.read', 'operator.write'] })
  const refused = await take({ input: 'please /config set x' })
  const harmless = await take({ input: 'What is 1/2?' })
  await gateway.behave({})
  assert.equal(refused.error?.code, 'engine_failed')
  assert.match(refused.error?.message ?? '', /operator\.admin/)
  assert.equal(harmless.error, undefined)
})

test('earlier turns that the session does not have are sent along, others are not', async () => {
  const runId = someone('run')
  const earlier: ModelMessage[] = [
    { role: 'system', content: 'Be kind.' },
    { role: 'user', content: 'My name is Ada.' },
    { role: 'assistant', content: 'Hello Ada.' },
  ]
  await take({ runId, input: `first ${runId}`, earlier })
  const { started } = await gateway.state()
  const first = started.find(({ message }) => message.includes(`first ${runId}`))?.message ?? ''
  assert.match(first, /User: My name is Ada\.\n\nAssistant: Hello Ada\./)
  assert.equal(first.includes('Be kind'), false)

  const second = someone('run')
  await take({ runId: second, conversationId: `of-${runId}`, input: `next ${second}`, earlier })
  const sent = (await gateway.state()).started.find((run) => run.runId === second)
  assert.equal(sent?.message, `next ${second}`)
})

test('where the WebSocket is refused, the turn runs over chat completions, without re-attach', async () => {
  await gateway.behave({ upgradeStatus: 404, chatCompletions: true })
  const plain = await scripted([{ text: ['Plain ', 'text.'] }])
  assert.deepEqual(visible(plain.parts).slice(0, 2), [
    { type: 'text', text: 'Plain ' },
    { type: 'text', text: 'text.' },
  ])
  assert.equal(plain.parts.at(-1)?.type, 'finish')
  const { completions } = await gateway.state()
  assert.match(completions.at(-1)?.user ?? '', /^conv:/)

  const again = await take({ runId: plain.runId, handle: plain.handle as JsonValue })
  assert.equal(again.error?.code, 'engine_outcome_unknown')

  const broken = await scripted([{ text: 'half' }, { error: 'out of credit' }])
  assert.equal(broken.error?.code, 'engine_failed')
  assert.match(broken.error?.message ?? '', /out of credit/)
  const cut = await scripted([{ text: 'half' }, { drop: true }])
  assert.equal(cut.error?.code, 'engine_stream_incomplete')

  const wrong = await take({ engine: engineAt(gateway.baseUrl, { token: 'wrong-token' }) })
  assert.equal(wrong.error?.code, 'engine_unavailable')

  // A gateway that says no to the handshake is not asked over HTTP.
  await gateway.behave({ connectError: { code: 'NOT_PAIRED', message: 'pairing required' }, chatCompletions: true })
  assert.match((await take({})).error?.message ?? '', /pairing required/)
  await gateway.behave({})
})

test('turns share one connection, which is closed after the last one', async () => {
  const engine = engineAt(gateway.baseUrl)
  const before = (await gateway.state()).connections
  const ids = [someone('run'), someone('run'), someone('run')]
  for (const runId of ids) await gateway.script(runId, [{ text: 'I ' }, { hold: true }, { text: 'am done.' }])
  let waiting = 0
  const turns = ids.map((runId) =>
    take({
      engine,
      runId,
      onPart(part) {
        if (part.type === 'text' && part.text === 'I' && (waiting += 1) === ids.length) void gateway.release()
      },
    }),
  )
  for (const { parts } of await Promise.all(turns)) assert.equal(textOf(parts), 'I\n\nam done.')
  const { connections } = await gateway.state()
  assert.equal(connections, before + 1)
  await until('the connection is closed', async () => ((await gateway.state()).open === 0 ? true : undefined))
})
