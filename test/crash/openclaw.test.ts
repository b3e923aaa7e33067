// Polylog is killed while an OpenClaw gateway works on its runs. The remote run goes on: it is
// found again and not started a second time, an approval is applied once, and there is one end.

import assert from 'node:assert/strict'
import { after, before, describe, it, test } from 'node:test'
import { createOpenclawEngine } from '../../src/engines/openclaw/openclaw-engine.ts'
import type { RunEvent } from '../../src/journal/event.ts'
import { systemClock } from '../../src/kit/clock.ts'
import type { GatewayAction } from '../fakes/openclaw-script.ts'
import { endedWithConsent } from '../support/run-helpers.ts'
import { crashImages } from '../support/crash-images.ts'
import { type FakeOpenclaw, startFakeOpenclaw } from '../support/fake-openclaw.ts'
import { startPolylogProcess } from '../support/polylog-process.ts'
import type { Polylog } from '../support/polylog.ts'
import { countingIds, openRig } from '../support/run-rig.ts'
import { openStream, type SseFrame, type SseStream } from '../support/sse.ts'
import { callServer, type Json, named, runIdOf, someone, toolState, until } from '../support/test-server.ts'

let gateway: FakeOpenclaw

before(async () => {
  gateway = await startFakeOpenclaw()
})
after(async () => {
  await gateway?.stop()
})

const told = ['I will clean up.', 'All clean.']

/** Text, a command that needs consent, text. A hold stands before the action with its number. */
function story(marker: string, holdAt?: number): GatewayAction[] {
  const actions: GatewayAction[] = [
    { text: ['I will ', 'clean up.'] },
    { call: { id: 'c1', name: 'exec', args: { command: 'rm -rf build' } } },
    { approval: { id: `a of ${marker}`, callId: 'c1', command: 'rm -rf build', text: 'removed' } },
    { text: ['All ', 'clean.'] },
  ]
  if (holdAt !== undefined) actions.splice(holdAt, 0, { hold: true })
  return actions
}

async function checkGateway(runId: string, marker: string): Promise<void> {
  const { started, resolved, aborted } = await gateway.state()
  assert.equal(started.filter((run) => run.runId === runId).length, 1, 'the remote run was started once')
  assert.deepEqual(
    resolved.filter(({ id }) => id === `a of ${marker}`),
    [{ id: `a of ${marker}`, decision: 'allow-once' }],
    'the approval was applied once',
  )
  assert.equal(aborted.includes(runId), false)
}

type Moment = { name: string; holdAt?: number; reach(scene: Scene): Promise<unknown> }

const moments: Moment[] = [
  { name: 'the run was accepted', holdAt: 0, reach: (scene) => scene.waitFor(named('agent.start')) },
  { name: 'the remote run was started', holdAt: 0, reach: (scene) => scene.untilStarted() },
  { name: 'the first message was shown', holdAt: 1, reach: (scene) => scene.waitFor(delta('clean up.')) },
  { name: 'the call was shown', holdAt: 2, reach: (scene) => scene.waitFor(toolState('running')) },
  { name: 'a person was asked', reach: (scene) => scene.untilAsked() },
  {
    name: 'the confirmation was stored',
    async reach(scene) {
      await scene.untilAsked()
      await scene.confirm()
    },
  },
  {
    name: 'the decision was applied',
    holdAt: 3,
    async reach(scene) {
      await scene.untilAsked()
      await scene.confirm()
      await scene.waitFor(toolState('succeeded'))
    },
  },
  {
    name: 'the last message was shown',
    holdAt: 4,
    async reach(scene) {
      await scene.untilAsked()
      await scene.confirm()
      await scene.waitFor(delta('clean.'))
    },
  },
  {
    name: 'the run ended',
    async reach(scene) {
      await scene.untilAsked()
      await scene.confirm()
      await scene.waitFor(named('agent.end'))
    },
  },
]

function delta(ending: string): (frame: SseFrame) => boolean {
  return ({ json }) => json.event === 'agent.delta' && String(json.data.delta).endsWith(ending)
}

class Scene {
  readonly marker = someone('scene')
  runId = ''
  /** Everything that the client got, over all connections, in whole frames. */
  seen = ''
  server: Polylog
  private stream: SseStream | undefined

  constructor(server: Polylog) {
    this.server = server
  }

  async ask(holdAt: number | undefined): Promise<void> {
    await gateway.script(this.marker, story(this.marker, holdAt))
    const body = { input: `clean ${this.marker}`, userId: this.marker }
    this.stream = await openStream(`${this.server.baseUrl}/v1/agent/chat`, { method: 'POST', body })
    this.runId = runIdOf(this.stream)
  }

  waitFor(fits: (frame: SseFrame) => boolean): Promise<SseFrame> {
    assert.ok(this.stream !== undefined)
    return this.stream.waitFor(fits)
  }

  untilStarted(): Promise<true> {
    return until('the remote run', async () =>
      (await gateway.state()).started.some(({ runId }) => runId === this.runId) ? true : undefined,
    )
  }

  async untilAsked(): Promise<void> {
    await this.waitFor(toolState('awaiting_input'))
    await this.untilStatus('awaiting_input')
  }

  untilStatus(...statuses: string[]): Promise<Json> {
    return until(`a run that is ${statuses.join(' or ')}`, async () => {
      const { body } = await this.call('GET', `/v1/agent/runs/${this.runId}`)
      return statuses.includes(String(body.status)) ? body : undefined
    })
  }

  async confirm(): Promise<void> {
    const { body } = await this.call('GET', `/v1/tool-confirmations?status=pending&runId=${this.runId}`)
    for (const { id } of body as unknown as { id: string }[])
      assert.equal((await this.call('POST', `/v1/tool-confirmations/${id}/confirm`)).status, 200)
  }

  call(method: string, path: string): ReturnType<typeof callServer> {
    return callServer(this.server.baseUrl, method, path, { user: this.marker })
  }

  async lost(): Promise<void> {
    await this.stream?.ended()
    const text = this.stream?.text() ?? ''
    this.seen += text.slice(0, text.lastIndexOf('\n\n') + 2).replaceAll(/event: ping\n[^]*?\n\n/g, '')
  }

  async finish(server: Polylog): Promise<void> {
    this.server = server
    const last = [...this.seen.matchAll(/^id: (\S+)$/gm)].at(-1)?.[1]
    const url = `${server.baseUrl}/v1/agent/runs/${this.runId}/stream?userId=${this.marker}`
    this.stream = await openStream(url, { headers: last === undefined ? {} : { 'last-event-id': last } })
    const { status } = await this.untilStatus('awaiting_input', 'succeeded', 'failed')
    if (status === 'awaiting_input') await this.confirm()
    await this.untilStatus('succeeded', 'failed')
    await this.lost()
  }

  async check(): Promise<void> {
    const whole = await openStream(`${this.server.baseUrl}/v1/agent/runs/${this.runId}/stream?userId=${this.marker}`)
    await whole.ended()
    const { frames } = whole
    assert.equal(this.seen, whole.text(), 'what the client got is what an uninterrupted one gets')
    assert.equal(frames.filter(named('agent.end')).length, 1)
    assert.equal(frames.at(-1)?.json.data.status, 'succeeded', JSON.stringify(frames.at(-1)?.json.data))
    const texts = frames.filter(named('agent.message')).map(({ json }) => String(json.data.content))
    assert.deepEqual(texts, told)
    const deltas = frames.filter(named('agent.delta')).map(({ json }) => String(json.data.delta))
    assert.equal(deltas.join(''), told.join(''))
    assert.equal(frames.filter(toolState('succeeded')).length, 1)
    assert.equal(frames.filter(toolState('awaiting_input')).length, 1)
    await checkGateway(this.runId, this.marker)
  }
}

describe('a server that is killed when', () => {
  const scenes = new Map<Moment, Scene>()
  let next: Polylog

  before(async () => {
    const server = await startPolylogProcess({
      POLYLOG_ENGINE: 'openclaw',
      POLYLOG_ENGINE_FALLBACK: 'none',
      OPENCLAW_URL: gateway.baseUrl,
      OPENCLAW_TOKEN: gateway.token,
      POLYLOG_PING_MS: '600000',
    })
    for (const moment of moments) {
      const scene = new Scene(server)
      scenes.set(moment, scene)
      await scene.ask(moment.holdAt)
      await moment.reach(scene)
    }
    await server.kill()
    await Promise.all([...scenes.values()].map((scene) => scene.lost()))
    next = await server.restart()
    await gateway.release()
    const releasing = setInterval(() => void gateway.release(), 50)
    await Promise.all([...scenes.values()].map((scene) => scene.finish(next)))
    clearInterval(releasing)
  })
  after(async () => {
    await next?.dispose()
  })

  for (const moment of moments) {
    it(`${moment.name} finds the remote run again: nothing is lost, shown twice or done twice`, async () => {
      await scenes.get(moment)?.check()
    })
  }
})

test('a journal that ends after any commit leads to one remote run, one applied approval and one end', async (context) => {
  const images = crashImages(context)
  const marker = someone('images')
  const engine = () =>
    createOpenclawEngine({
      url: gateway.baseUrl,
      token: gateway.token,
      version: '1.0.0',
      clock: systemClock,
      chatCompletions: { stream: () => assert.fail() },
    })
  await gateway.script(marker, story(marker))
  const ids = countingIds(marker)
  const first = await openRig({
    turnEngine: engine(),
    ids,
    ...images.options,
  })
  const { run } = await first.start({ input: `clean ${marker}` })
  await first.until(run.id, ({ status }) => status === 'waiting_user')
  const [asked] = await first.store.interactionsOf(run.id)
  await first.confirm('ada', asked?.id ?? '', undefined)
  await first.until(run.id, ({ endedAt }) => endedAt !== null)
  await first.close()
  await checkGateway(run.id, marker)
  assert.ok(images.paths.length > 8, `${images.paths.length} images`)

  for (const [index, image] of images.paths.entries()) {
    const rig = await images.reopen(image, { turnEngine: engine(), clock: first.clock })
    rig.scheduler.start()
    await endedWithConsent(rig, run.id)
    const events = await rig.events(run.id)
    const count = (type: RunEvent['type']) => events.filter((event) => event.type === type).length
    const text = events.map((event) => (event.type === 'text.delta' ? event.data.text : '')).join('')
    assert.equal(text, told.join(''), `image ${index}`)
    assert.deepEqual([count('run.ended'), count('tool.called'), count('tool.done')], [1, 1, 1], `image ${index}`)
    await rig.close()
  }
  await checkGateway(run.id, marker)
})
