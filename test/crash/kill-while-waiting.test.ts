// Kills and stops while a run waits: for a slot, for a person, for a deadline, for a cancel or
// for a drain. After the restart it waits, goes on or is closed, as if the server had only been
// slow.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type FakeFeishu, startFakeFeishu } from '../support/fake-feishu.ts'
import { type FakeProcess, spawnFake } from '../support/spawn-fake.ts'
import { CrashScene, Host, named, toolIs } from './crash-scene.ts'
import { queryDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'

let provider: FakeProcess
let feishu: FakeFeishu

before(async () => {
  ;[provider, feishu] = await Promise.all([spawnFake('repeatable-provider.ts'), startFakeFeishu()])
})
after(async () => {
  await Promise.all([provider?.stop(), feishu?.stop()])
})

async function parks(scene: CrashScene, tool: string): Promise<void> {
  await scene.untilAsked(tool)
  await until('the run parks', async () => (await scene.timeline()).status === 'awaiting_input')
}

async function cancel(scene: CrashScene): Promise<{ status: string; accepted: boolean }> {
  const response = await fetch(`${scene.baseUrl}/v1/agent/runs/${scene.runId}/cancel`, { method: 'POST' })
  assert.equal(response.status, 200)
  return (await response.json()) as { status: string; accepted: boolean }
}

describe('a server that is killed while its runs wait', () => {
  let host: Host
  let talking: CrashScene
  let asking: CrashScene
  let contested: CrashScene
  let expiring: CrashScene
  let first: CrashScene
  let second: CrashScene

  before(async () => {
    host = await Host.start(provider, feishu)
    talking = new CrashScene(host, 'talking')
    asking = new CrashScene(host, 'asking')
    contested = new CrashScene(host, 'contested')
    expiring = new CrashScene(host, 'expiring')
    first = new CrashScene(host, 'first')
    second = new CrashScene(host, 'second')
    const all = [talking, asking, contested, expiring, first, second]

    await talking.ask('hold=1:2 hold-always')
    await talking.waitFor((frame) => frame.json.data.delta === 'look ')
    for (const scene of [asking, contested, expiring]) {
      await scene.ask()
      await parks(scene, 'send_feishu_message')
    }
    await first.ask('hold=1:1')
    await first.waitFor(named('agent.delta'))
    await second.ask('', first.conversationId)
    await second.waitFor(named('agent.start'))
    assert.equal((await second.timeline()).status, 'queued')

    await host.kill()
    await Promise.all(all.map((scene) => scene.lost()))
    await passDeadline(expiring)
    await host.restart()
  })
  after(async () => {
    await host?.server.dispose()
  })

  /** As if a day had gone by while the server was down. */
  async function passDeadline(scene: CrashScene): Promise<void> {
    const { dataDir } = host.server
    const past = Date.now() - 1000
    const sql = `UPDATE interactions SET deadline_at = ? WHERE run_id = ? AND status = 'pending' RETURNING id`
    const rows = await queryDatabase(dataDir, sql, past, scene.runId)
    await queryDatabase(dataDir, 'UPDATE runs SET wake_at = ? WHERE id = ?', past, scene.runId)
    assert.equal(rows.length, 1)
  }

  it('behind another run of their conversation: they take their turn, in order', async () => {
    await first.finish()
    await second.finish()

    await first.checkHistory()
    const timeline = await second.checkHistory()
    assert.equal(timeline.events.find(({ event }) => event === 'diagnostic')?.payload.code, 'conversation_busy')
    const users = (await second.messages()).map(({ role, content }) => (role === 'user' ? content : role))
    assert.deepEqual(
      users.flatMap((content, index) => (content.startsWith('Tell Bob') ? [index] : [])),
      [0, users.lastIndexOf(users.find((content) => content.includes('mark=second')) ?? '')],
    )
    assert.deepEqual(await second.asked(), [1, 2, 3])
    const end = (await first.timeline()).events.at(-1) as unknown as { atMs: number }
    const started = timeline.events.find(({ payload }) => payload.trigger === 'turn.started') as unknown as {
      atMs: number
    }
    assert.ok(started.atMs >= end.atMs, 'not before the first has ended')
  })

  it('for a person whose time runs out meanwhile: the call is closed as denied, and the run goes on', async () => {
    const [row] = await scene409(expiring)
    assert.equal(row, 409, 'a decision that comes too late is refused')

    await expiring.finish()

    const timeline = await expiring.checkHistory()
    const resolved = timeline.events.filter(({ event }) => event === 'input.resolved').at(-1)
    assert.equal(resolved?.payload.resolution, 'expired')
    const last = timeline.events
      .filter(({ event, payload }) => event === 'tool.state' && payload.name === 'send_feishu_message')
      .at(-1)
    assert.equal(last?.payload.status, 'cancelled')
    assert.equal(last?.payload.error?.code, 'tool_expired')
    assert.deepEqual(await expiring.sent(), { messages: 0, requests: 0 })
  })

  it('for a person: two who click at once after the restart decide once', async () => {
    const [question] = await contested.pending()
    assert.ok(question !== undefined)

    const answers = await Promise.all([
      contested.decide(question.id, 'confirm'),
      contested.decide(question.id, 'confirm'),
    ])

    assert.deepEqual(answers.toSorted(), [200, 409])
    await contested.finish()
    await contested.checkHistory()
    assert.deepEqual(await contested.sent(), { messages: 1, requests: 1 })
  })

  it('for a person: a cancel after the restart closes the question and the call', async () => {
    const [question] = await asking.pending()

    assert.deepEqual(pick(await cancel(asking)), { status: 'cancelled', accepted: true })

    await asking.finish()
    const timeline = await asking.checkHistory('cancelled')
    assert.equal(timeline.events.findLast(({ event }) => event === 'tool.state')?.payload.status, 'cancelled')
    assert.equal(await asking.decide(question?.id ?? '', 'confirm'), 409)
    assert.deepEqual(await asking.sent(), { messages: 0, requests: 0 })
    assert.deepEqual(pick(await cancel(asking)), { status: 'cancelled', accepted: false })
  })

  it('for the model: a cancel after the restart ends the run in mid-sentence', async () => {
    await until('the step is asked again', async () => (await talking.asked()).length === 2)

    assert.deepEqual(pick(await cancel(talking)), { status: 'cancelled', accepted: true })

    await talking.finish()
    const timeline = await talking.checkHistory('cancelled')
    const abandoned = timeline.events.find(({ event }) => event === 'message.done')
    assert.deepEqual([abandoned?.payload.state, abandoned?.payload.text], ['abandoned', 'Let me look '])
    assert.deepEqual(
      (await talking.messages()).map(({ role }) => role),
      ['user'],
      'the torn text is no message',
    )
    assert.deepEqual(await talking.asked(), [1, 1])
  })

  async function scene409(scene: CrashScene): Promise<number[]> {
    const all = await scene.get<{ id: string; toolName: string }[]>(`/v1/tool-confirmations?runId=${scene.runId}`)
    const mine = all.filter(({ toolName }) => toolName === 'send_feishu_message')
    return await Promise.all(mine.map(({ id }) => scene.decide(id, 'confirm')))
  }
})

function pick({ status, accepted }: { status: string; accepted: boolean }): { status: string; accepted: boolean } {
  return { status, accepted }
}

describe('a server that gets SIGTERM while an unsafe tool is running', { concurrency: 2 }, () => {
  async function sending(
    behaviour: Parameters<FakeFeishu['behave']>[0],
    own: FakeFeishu,
    mark: string,
  ): Promise<CrashScene> {
    const scene = new CrashScene(await Host.start(provider, own), mark)
    await scene.ask()
    await parks(scene, 'send_feishu_message')
    await own.behave(behaviour)
    for (const { id } of await scene.pending()) await scene.decide(id, 'confirm')
    await scene.waitFor(
      (frame) => toolIs('send_feishu_message', 'running')(frame) && frame.json.data.previousStatus === 'awaiting_input',
    )
    return scene
  }

  it('waits for it, and the next start goes on after it', async () => {
    const own = await startFakeFeishu()
    const scene = await sending({ delayMs: 700 }, own, 'stopped')
    try {
      assert.equal(await scene.host.server.stop(), 0)
      await scene.lost()
      assert.deepEqual(await scene.sent(), { messages: 1, requests: 1 })
      await scene.host.restart()

      await scene.finish()

      await scene.checkHistory()
      assert.deepEqual(await scene.sent(), { messages: 1, requests: 1 })
      assert.deepEqual(await scene.asked(), [1, 2, 3])
    } finally {
      await scene.host.server.dispose()
      await own.stop()
    }
  })

  it('and is killed before the tool ends: a person is asked, because the outcome is unknown', async () => {
    const own = await startFakeFeishu()
    const scene = await sending({ afterRecording: 'hang' }, own, 'killed-in-drain')
    try {
      await until('the message arrives', async () => (await scene.sent()).messages === 1)
      const stopping = scene.host.server.stop()
      await until('the drain begins', async () => scene.host.server.log().includes('stopping: no new runs'))
      await scene.host.kill()
      await stopping
      await scene.lost()
      await scene.host.restart()

      const question = await until('the question', async () => (await scene.pending())[0])
      assert.equal(question.outcome, 'unknown')
      await scene.finish('reject')

      await scene.checkHistory()
      assert.deepEqual(await scene.sent(), { messages: 1, requests: 1 })
    } finally {
      await scene.host.server.dispose()
      await own.stop()
    }
  })
})
