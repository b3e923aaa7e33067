// The engine against a stand-in gateway in its own process: what it makes of the gateway's events, and
// what it sends.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ModelMessage } from '../../models/model.ts'
import { closedAddress } from '../../../test/support/closed-port.ts'
import { manualClock } from '../../../test/support/manual-clock.ts'
import { openclawTurns, story, storyParts, textOf, visible } from '../../../test/support/openclaw-turns.ts'
import { someone, until } from '../../../test/support/test-server.ts'
import { AppError } from '../../errors/app-error.ts'
import type { JsonValue } from '../../journal/event.ts'
import type { TurnPart } from '../engine.ts'

const openclaw = openclawTurns()
const { engineAt, take, scripted, startsOf } = openclaw

test('text, reasoning, calls and the end of a remote run become the parts of a turn', async () => {
  const { parts, error, runId } = await scripted([{ reasoning: ['Hm', '.'] }, ...story])

  assert.equal(error, undefined)
  assert.deepEqual(visible(parts), [{ type: 'reasoning', text: 'Hm' }, { type: 'reasoning', text: '.' }, ...storyParts])
  const handles = parts.filter((part) => part.type === 'handle').map(({ handle }) => handle)
  assert.equal((handles[0] as { state: string }).state, 'starting')
  assert.deepEqual(handles[1], { ...(handles[0] as object), state: 'started', runId })
  assert.equal(JSON.stringify(handles).includes(openclaw.gateway.token), false)
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
  const { started } = await openclaw.gateway.state()
  const mine = started.filter((run) => run.runId === runId)
  assert.equal(mine.length, 1)
  assert.match(mine[0]?.sessionKey ?? '', /^agent:main:conv:of-run/)
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
  assert.equal(textOf(parts), textOf(storyParts))
  const calls = (all: TurnPart[]) => all.filter(({ type }) => type === 'tool-called' || type === 'tool-done')
  assert.deepEqual(calls(parts), calls(storyParts))
  assert.equal(parts.at(-1)?.type, 'finish')
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

test('abort stops the remote run', async () => {
  const runId = someone('run')
  await openclaw.gateway.script(runId, [{ text: 'I am ' }, { hold: true }])
  const engine = engineAt(openclaw.gateway.baseUrl)
  const abort = new AbortController()
  const { handle } = await take({
    engine,
    runId,
    signal: abort.signal,
    onPart: (part) => part.type === 'text' && abort.abort(new AppError('run_fenced', 'cancelled')),
  })
  assert.deepEqual((await openclaw.gateway.state()).aborted, [])
  await engine.abort(handle as JsonValue, new AbortController().signal)
  assert.deepEqual((await openclaw.gateway.state()).aborted, [runId])
})

test('a gateway that cannot be used before anything was sent is unavailable', async () => {
  const nobody = await take({ engine: engineAt(await closedAddress()) })
  assert.equal(nobody.error?.code, 'engine_unavailable')

  const wrong = await take({ engine: engineAt(openclaw.gateway.baseUrl, { token: 'wrong-token' }) })
  assert.equal(wrong.error?.code, 'engine_unavailable')
  assert.match(wrong.error?.message ?? '', /token mismatch/)
  assert.equal(wrong.error?.message.includes('wrong-token'), false)

  await openclaw.gateway.behave({ connectError: { code: 'UNAVAILABLE', message: 'still starting' } })
  assert.match((await take({})).error?.message ?? '', /still starting/)

  for (const behaviour of [{ upgradeStatus: 404 }, { upgradeStatus: 302 }, { closeBeforeHello: true }]) {
    await openclaw.gateway.behave(behaviour)
    assert.equal((await take({})).error?.code, 'engine_unavailable', JSON.stringify(behaviour))
  }
  await openclaw.gateway.behave({ silent: true })
  const clock = manualClock()
  const silent = take({ engine: engineAt(openclaw.gateway.baseUrl, { clock }) })
  await until('a connection', async () => ((await openclaw.gateway.state()).open > 0 ? true : undefined))
  await clock.advance(10_000)
  assert.equal((await silent).error?.code, 'engine_unavailable')
  await openclaw.gateway.behave({})
})

test('a gateway that refuses the message fails the turn with its reason', async () => {
  await openclaw.gateway.behave({ refuseSend: 'the agent is archived' })
  const { error, runId } = await scripted([])
  await openclaw.gateway.behave({})
  assert.equal(error?.code, 'engine_failed')
  assert.match(error?.message ?? '', /the agent is archived/)
  assert.equal(await startsOf(runId), 0)
})

test('a message is never taken for a command of the gateway', async () => {
  await openclaw.gateway.behave({ scopes: ['operator.read', 'operator.write'] })
  const refused = await take({ input: 'please /config set x' })
  const harmless = await take({ input: 'What is 1/2?' })
  await openclaw.gateway.behave({})
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
  const { started } = await openclaw.gateway.state()
  const first = started.find(({ message }) => message.includes(`first ${runId}`))?.message ?? ''
  assert.match(first, /User: My name is Ada\.\n\nAssistant: Hello Ada\./)
  assert.equal(first.includes('Be kind'), false)

  const second = someone('run')
  await take({ runId: second, conversationId: `of-${runId}`, input: `next ${second}`, earlier })
  const sent = (await openclaw.gateway.state()).started.find((run) => run.runId === second)
  assert.equal(sent?.message, `next ${second}`)
})

test('where the WebSocket is refused, the turn runs over chat completions, without re-attach', async () => {
  await openclaw.gateway.behave({ upgradeStatus: 404, chatCompletions: true })
  const plain = await scripted([{ text: ['Plain ', 'text.'] }])
  assert.deepEqual(visible(plain.parts).slice(0, 2), [
    { type: 'text', text: 'Plain ' },
    { type: 'text', text: 'text.' },
  ])
  assert.equal(plain.parts.at(-1)?.type, 'finish')
  const { completions } = await openclaw.gateway.state()
  assert.match(completions.at(-1)?.user ?? '', /^conv:/)

  const again = await take({ runId: plain.runId, handle: plain.handle as JsonValue })
  assert.equal(again.error?.code, 'engine_outcome_unknown')

  const broken = await scripted([{ text: 'half' }, { error: 'out of credit' }])
  assert.equal(broken.error?.code, 'engine_failed')
  assert.match(broken.error?.message ?? '', /out of credit/)
  const cut = await scripted([{ text: 'half' }, { drop: true }])
  assert.equal(cut.error?.code, 'engine_stream_incomplete')

  const wrong = await take({ engine: engineAt(openclaw.gateway.baseUrl, { token: 'wrong-token' }) })
  assert.equal(wrong.error?.code, 'engine_unavailable')

  // A gateway that says no to the handshake is not asked over HTTP.
  await openclaw.gateway.behave({
    connectError: { code: 'NOT_PAIRED', message: 'pairing required' },
    chatCompletions: true,
  })
  assert.match((await take({})).error?.message ?? '', /pairing required/)
  await openclaw.gateway.behave({})
})

test('turns share one connection, which is closed after the last one', async () => {
  const engine = engineAt(openclaw.gateway.baseUrl)
  const before = (await openclaw.gateway.state()).connections
  const ids = [someone('run'), someone('run'), someone('run')]
  for (const runId of ids) await openclaw.gateway.script(runId, [{ text: 'I ' }, { hold: true }, { text: 'am done.' }])
  let waiting = 0
  const turns = ids.map((runId) =>
    take({
      engine,
      runId,
      onPart(part) {
        if (part.type === 'text' && part.text === 'I' && (waiting += 1) === ids.length) void openclaw.gateway.release()
      },
    }),
  )
  for (const { parts } of await Promise.all(turns)) assert.equal(textOf(parts), 'I\n\nam done.')
  const { connections } = await openclaw.gateway.state()
  assert.equal(connections, before + 1)
  await until('the connection is closed', async () => ((await openclaw.gateway.state()).open === 0 ? true : undefined))
})
