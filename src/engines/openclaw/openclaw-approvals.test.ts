// Approvals of the gateway: they stop the turn, and each decision is sent once.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openclawTurns, story, textOf } from '../../../test/support/openclaw-turns.ts'
import { someone } from '../../../test/support/test-server.ts'
import type { GatewayAction } from '../../../test/fakes/openclaw-script.ts'
import { AppError } from '../../errors/app-error.ts'
import type { JsonValue } from '../../journal/event.ts'
import type { TurnDecision } from '../engine.ts'

const openclaw = openclawTurns()
const { take, scripted, startsOf } = openclaw

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
    await openclaw.gateway.script(
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
    const { resolved } = await openclaw.gateway.state()
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
  await openclaw.gateway.script(runId, [
    ...guarded.slice(0, 2),
    { approval: mine },
    { hold: true },
    { text: 'All clean.' },
  ])
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
  await openclaw.gateway.release()
  const last = await take({ runId, handle: first.handle as JsonValue, decisions })
  assert.equal(textOf(last.parts), 'I will clean up.All clean.')
  assert.equal((await openclaw.gateway.state()).resolved.filter(({ id }) => id === mine.id).length, 1)
})

test('the approvals of other runs are not touched', async () => {
  const other = someone('run')
  await openclaw.gateway.script(other, [{ approval: { ...approval, id: `of ${other}` } }])
  await take({ runId: other })
  const { parts, error } = await scripted([{ drop: true }, { untilFollowed: true }, ...story])
  assert.equal(error, undefined)
  assert.equal(parts.filter(({ type }) => type === 'approval').length, 0)
  assert.equal((await openclaw.gateway.state()).resolved.filter(({ id }) => id === `of ${other}`).length, 0)
})
