// Commands that reach another node than the one that drives the run, and runs that one node hands to
// another. Two schedulers on one store, a bus between them whose hints a test can lose, and a clock
// that the tests move.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { processCluster, type ProcessCluster } from '../../test/support/process-cluster.ts'
import { ended, gate, isWaiting, quiet, reached, withRig } from '../../test/support/run-helpers.ts'
import { type Answer, calls, type Rig, type RigOptions, says, silence, toolOf } from '../../test/support/run-rig.ts'
import { type SecondNode, type SecondNodeOptions, secondNodeOn } from '../../test/support/second-node.ts'
import { foldRun } from '../journal/run-state.ts'
import type { Store } from '../stores/store.ts'
import { heartbeatMsOf } from './run-lease.ts'

const leaseMs = 30_000
const heartbeatMs = heartbeatMsOf(leaseMs)
const limits = { stallMs: 3_600_000, runMaxMs: 3_600_000, leaseMs }

/** Two nodes that have started. */
async function withTwoNodes(
  options: RigOptions & { second?: (rig: Rig) => SecondNodeOptions },
  work: (rig: Rig, other: SecondNode, cluster: ProcessCluster) => Promise<void>,
): Promise<void> {
  const { second, ...first } = options
  await withRig({ ...first, limits: { ...limits, ...first.limits } }, async (rig) => {
    const cluster = processCluster()
    rig.dependencies.cluster = cluster.open()
    const { answer, changes }: SecondNodeOptions = second?.(rig) ?? { answer: (_request, signal) => silence(signal) }
    const other = secondNodeOn(rig, { answer, changes: { cluster: cluster.open(), ...changes } })
    rig.scheduler.start()
    other.scheduler.start()
    try {
      await work(rig, other, cluster)
    } finally {
      await other.scheduler.drain(0)
    }
  })
}

const isRunning = ({ status }: { status: string }) => status === 'running'

/** One tool that needs consent and one that works until the test ends it. */
function twoTools() {
  const sent: string[] = []
  // The test may end the tool before it has started.
  const finished = Promise.withResolvers<void>()
  const tools = [
    toolOf({
      name: 'send',
      effect: 'unsafe',
      confirm: 'always',
      run: async (_input, { runId }) => {
        sent.push(runId)
        return { ok: true, output: null, summary: '' }
      },
    }),
    toolOf({
      name: 'slow',
      timeoutMs: 3_600_000,
      run: (_input, { signal }) =>
        new Promise((resolve, reject) => {
          void finished.promise.then(() => resolve({ ok: true, output: null, summary: '' }))
          signal.addEventListener('abort', () => reject(new Error('aborted')))
        }),
    }),
  ]
  const answer: Answer = ({ messages }) =>
    messages.at(-1)?.role === 'tool'
      ? says('Sent.')
      : calls({ callId: 'c1', name: 'send' }, { callId: 'c2', name: 'slow' })
  return { tools, answer, sent, finish: () => finished.resolve() }
}

describe('a command at another node than the owner', () => {
  for (const deaf of [false, true]) {
    const when = deaf ? 'within one heartbeat if its signal is lost' : 'at once'

    it(`cancels the run ${when}`, async () => {
      const signals: AbortSignal[] = []
      const answer: Answer = (_request, signal) => {
        signals.push(signal)
        return silence(signal)
      }
      await withTwoNodes({ answer }, async (rig, other, cluster) => {
        cluster.deaf = deaf
        const { id } = (await rig.start()).run
        await reached(() => signals.length === 1)

        if (!deaf) {
          const { run, accepted } = await other.service.cancel('ada', id, 'enough')
          assert.deepEqual([run.status, accepted, run.cancel?.reason], ['canceled', true, 'enough'])
          return
        }
        await other.service.requestCancel(id, 'ada', 'enough')
        await quiet()
        assert.equal(signals[0]?.aborted, false)
        await rig.clock.advance(heartbeatMs)
        await rig.until(id, ended)
        assert.equal((await rig.store.readRun(id))?.status, 'canceled')
      })
    })

    it(`confirms a call ${when}, while another call of the run is at work`, async () => {
      const { tools, answer, sent, finish } = twoTools()
      await withTwoNodes({ answer, tools, second: () => ({ answer }) }, async (rig, other, cluster) => {
        cluster.deaf = deaf
        const { id } = (await rig.start()).run
        await reached(async () => (await rig.store.interactionsOf(id)).length === 1)
        const [question] = await rig.store.interactionsOf(id)

        await other.confirm('ada', question?.id ?? '')
        if (deaf) {
          await quiet()
          assert.deepEqual(sent, [])
          await rig.clock.advance(heartbeatMs)
        }
        await reached(() => sent.length === 1)
        finish()
        await rig.until(id, ended)
        const state = foldRun(await rig.events(id))
        assert.deepEqual([state.ended?.status, state.attempt, sent], ['succeeded', 1, [id]])
      })
    })
  }

  it('wakes a parked run at a node that has a free slot, if this one has none', async () => {
    const { tools, answer, sent, finish } = twoTools()
    const { asked, answer: busy, release } = gate()
    const second = (rig: Rig) => ({
      answer: busy,
      changes: { limits: { ...rig.dependencies.limits, nodeConcurrency: 1 } },
    })
    await withTwoNodes({ answer, tools, second }, async (rig, other) => {
      const { id } = (await rig.start()).run
      await reached(async () => (await rig.store.interactionsOf(id)).length === 1)
      finish()
      await rig.until(id, isWaiting)
      // The node may free the slot of the parked run later, so it is tried until all are taken.
      let taken = 0
      await reached(() => (taken += rig.scheduler.reserve() ? 1 : 0) === 4)
      const blocker = (await rig.start()).run.id
      await reached(() => asked.includes(blocker))
      for (let count = 0; count < 4; count += 1) rig.scheduler.release()

      const [question] = await rig.store.interactionsOf(id)
      await other.confirm('ada', question?.id ?? '')
      await rig.until(id, ended)
      assert.deepEqual(sent, [id])
      release(blocker)
      await rig.until(blocker, ended)
    })
  })

  it('is found after the bus between the nodes was gone', async () => {
    const answer: Answer = (_request, signal) => silence(signal)
    await withTwoNodes({ answer }, async (rig, other, cluster) => {
      const { id } = (await rig.start()).run
      await rig.until(id, isRunning)
      cluster.deaf = true
      await other.service.requestCancel(id, 'ada', null)
      await quiet()
      assert.equal((await rig.store.readRun(id))?.status, 'running')

      cluster.reconnect()
      await rig.until(id, ended)
    })
  })

  it('replaces an earlier run that another node drives, if the request says so', async () => {
    const signals: AbortSignal[] = []
    const answer: Answer = (_request, signal) => {
      signals.push(signal)
      return silence(signal)
    }
    await withTwoNodes({ answer, second: () => ({ answer: () => says('Newer.') }) }, async (rig, other) => {
      const first = (await rig.start({ conversationId: 'one' })).run.id
      await reached(() => signals.length === 1)
      const { run } = await other.service.start({
        owner: 'ada',
        family: 'agent',
        input: 'No, this.',
        earlier: [],
        whenBusy: 'cancel',
        idempotency: null,
        conversationId: 'one',
      })
      await rig.until(first, ended)
      assert.equal((await rig.store.readRun(first))?.status, 'canceled')
      // Either node may have claimed the newer run, and the model of the first one says nothing.
      await other.service.requestCancel(run.id, 'ada', null)
      await rig.until(run.id, ended)
    })
  })
})

describe('a cancel request', () => {
  it('that is stored while the owner reads the run is not lost', async () => {
    const { asked, answer } = gate()
    let hold: (() => void) | undefined
    let armed = false
    // The row was read before the request, and arrives after it.
    const wrapStore = (store: Store): Store => ({
      ...store,
      async readRun(id) {
        const row = await store.readRun(id)
        if (armed && hold === undefined) await new Promise<void>((resolve) => (hold = resolve))
        return row
      },
    })
    await withRig({ answer, wrapStore, limits: { ...limits, concurrency: 1 } }, async (rig) => {
      rig.scheduler.reserve()
      const { id } = (await rig.start()).run
      rig.scheduler.release()
      armed = true
      rig.scheduler.poke()
      await reached(() => hold !== undefined)
      await rig.service.requestCancel(id, 'ada', null)
      hold?.()
      await rig.until(id, ended)

      assert.deepEqual([asked, (await rig.store.readRun(id))?.status], [[], 'canceled'])
    })
  })
})

describe('a node that stops', () => {
  it('keeps its leases while its tools finish, and then hands its runs over at once', async () => {
    const { tools, finish } = twoTools()
    const answer: Answer = ({ messages }) =>
      messages.at(-1)?.role === 'tool' ? says('Done.') : calls({ callId: 'c', name: 'slow' })
    const second = gate()
    await withTwoNodes({ answer, tools, second: () => ({ answer: second.answer }) }, async (rig) => {
      const { id } = (await rig.start()).run
      await reached(async () => foldRun(await rig.events(id)).calls.get('c')?.started === true)
      const draining = rig.scheduler.drain()
      for (let beats = 0; beats < 6; beats += 1) {
        await rig.clock.advance(heartbeatMs)
        await quiet()
        assert.equal((await rig.store.readRun(id))?.leaseOwner, 'node-1')
      }
      assert.deepEqual(
        (await rig.store.listNodes()).map((node) => [node.id, node.draining]),
        [
          ['node-1', true],
          ['node-2', false],
        ],
      )
      finish()
      await draining
      await reached(() => second.asked.length === 1)
      assert.deepEqual(
        (await rig.store.listNodes()).map((node) => node.id),
        ['node-2'],
      )
      second.release(id)
      await rig.until(id, ended)

      const state = foldRun(await rig.events(id))
      assert.deepEqual(
        [state.calls.get('c')?.done?.outcome, state.ended?.output, state.attempt],
        ['succeeded', 'One moment. Done.', 2],
      )
    })
  })

  it('hands over a run that it accepts while it stops', async () => {
    const { asked, answer } = gate()
    const second = gate()
    let hold: (() => void) | undefined
    const wrapStore = (store: Store): Store => ({
      ...store,
      async accept(input) {
        const result = await store.accept(input)
        await new Promise<void>((resolve) => (hold = resolve))
        return result
      },
    })
    await withTwoNodes({ answer, wrapStore, second: () => ({ answer: second.answer }) }, async (rig) => {
      const starting = rig.start()
      await reached(() => hold !== undefined)
      let drained = false
      const draining = rig.scheduler.drain().then(() => (drained = true))
      await quiet()
      assert.equal(drained, false, 'the drain waits for the run that is being accepted')
      hold?.()
      const { id } = (await starting).run
      await draining
      await reached(() => second.asked.includes(id))
      assert.deepEqual(asked, [])
      second.release(id)
      await rig.until(id, ended)
    })
  })
})

describe('a deadline', () => {
  it('is kept by a node whose clock is behind that of the store', async () => {
    const send = toolOf({ name: 'send', effect: 'unsafe', confirm: 'always', run: () => assert.fail('not allowed') })
    const answer: Answer = ({ messages }) =>
      messages.at(-1)?.role === 'tool' ? says('Then not.') : calls({ callId: 'c', name: 'send' })
    await withRig({ answer, tools: [send], limits: { ...limits, confirmationTtlMs: 60_000 } }, async (rig) => {
      const { id } = (await rig.start()).run
      await rig.until(id, isWaiting)
      await rig.scheduler.drain()
      const { clock } = rig
      const behind = {
        now: () => clock.now() - 5000,
        monotonic: () => clock.monotonic(),
        after: (ms: number, fire: () => void) => clock.after(ms, fire),
      }
      const other = secondNodeOn(rig, { answer, changes: { clock: behind } })
      other.scheduler.start()
      await quiet()
      await clock.advance(60_000)
      await rig.until(id, ended)

      const state = foldRun(await rig.events(id))
      assert.equal(state.calls.get('c')?.done?.error?.code, 'tool_expired')
      await other.scheduler.drain()
    })
  })
})
