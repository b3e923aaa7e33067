// A node that cannot renew its leases stops in time, and one that was frozen starts nothing that the
// new owner of the run starts too. Real store, a clock that the tests move.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ended, eventsOf, gate, quiet, reached, unavailable, withRig } from '../../test/support/run-helpers.ts'
import { type Answer, calls, says, silence, toolOf } from '../../test/support/run-rig.ts'
import { hanging, secondNodeOn } from '../../test/support/second-node.ts'
import { foldRun } from '../journal/run-state.ts'
import type { RunWrite } from '../stores/run-store.ts'
import type { Store } from '../stores/store.ts'
import type { EndedRun } from './run-dependencies.ts'
import { heartbeatMsOf } from './run-lease.ts'

const leaseMs = 30_000
const heartbeatMs = heartbeatMsOf(leaseMs)
const limits = { stallMs: 3_600_000, runMaxMs: 3_600_000, leaseMs }

const usesTool: Answer = ({ messages }) =>
  messages.at(-1)?.role === 'tool' ? says('Sent.') : calls({ callId: 'c', name: 'send' })

/** An unsafe tool that works until it is aborted, or is told to finish. */
function unsafeTool() {
  const signals: AbortSignal[] = []
  const started: string[] = []
  const tool = toolOf({
    name: 'send',
    effect: 'unsafe',
    timeoutMs: 3_600_000,
    run: (_input, { signal, runId }) => {
      started.push(runId)
      signals.push(signal)
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))))
    },
  })
  return { tool, signals, started }
}

describe('a node whose database does not answer', () => {
  it('stops model and tools before its lease ends, writes nothing, and goes on when the run is still its own', async () => {
    const { methods, resume, wrapStore } = hanging()
    const signals: AbortSignal[] = []
    let asked = 0
    const answer: Answer = (_request, signal) => {
      asked += 1
      signals.push(signal)
      return asked === 1 ? silence(signal) : says('Done.')
    }
    await withRig({ answer, wrapStore, limits }, async (rig) => {
      rig.scheduler.start()
      const { id } = (await rig.start()).run
      await reached(() => asked === 1)
      await quiet()
      const before = await rig.events(id)
      for (const name of ['renewLeases', 'append', 'claim', 'beatNode']) methods.add(name)

      await rig.clock.advance(leaseMs * 0.8)
      assert.equal(signals[0]?.aborted, false)
      await rig.clock.advance(leaseMs * 0.1)
      assert.equal(signals[0]?.aborted, true)
      await rig.clock.advance(leaseMs)
      await quiet()
      assert.equal(asked, 1, 'nothing starts before the store has answered')
      assert.deepEqual(await rig.events(id), before)

      resume()
      await rig.clock.advance(heartbeatMs)
      await rig.until(id, ended)
      assert.equal(asked, 2)
      assert.equal(foldRun(await rig.events(id)).ended?.status, 'succeeded')
    })
  })

  it('leaves the run to the node that took it over; an unsafe call is aborted, and its outcome is unknown', async () => {
    const { methods, resume, wrapStore } = hanging()
    const { tool, signals, started } = unsafeTool()
    const sound: { store?: Store } = {}
    const wrap = (store: Store): Store => wrapStore((sound.store = store))
    await withRig({ answer: usesTool, tools: [tool], wrapStore: wrap, limits }, async (rig) => {
      rig.scheduler.start()
      const { id } = (await rig.start()).run
      await reached(() => started.length === 1)
      for (const name of ['renewLeases', 'append', 'claim', 'beatNode']) methods.add(name)
      await rig.clock.advance(leaseMs * 0.9)
      assert.equal(signals[0]?.aborted, true)

      const other = secondNodeOn(rig, { answer: usesTool, changes: { store: sound.store as Store } })
      await rig.clock.advance(leaseMs * 0.1)
      other.scheduler.start()
      await rig.until(id, ({ status }) => status === 'waiting_user')
      resume()
      await rig.clock.advance(heartbeatMs)
      await quiet()

      const [question] = await rig.store.interactionsOf(id)
      assert.deepEqual([question?.outcome, question?.status], ['unknown', 'pending'])
      assert.equal(started.length, 1)
      await rig.service.cancel('ada', id, null)
      await other.scheduler.drain()
    })
  })
})

describe('a node that was frozen', () => {
  for (const taken of [true, false]) {
    const title = taken
      ? 'does not start an unsafe tool whose run was taken over meanwhile, although tool.started is on disk'
      : 'starts the tool if its run was not taken over'
    it(title, async () => {
      const { tool, started } = unsafeTool()
      let hold: (() => void) | undefined
      const sound: { store?: Store } = {}
      // The commit is done, and its answer is on its way while the process is frozen.
      const wrapStore = (store: Store): Store => {
        sound.store = store
        return {
          ...store,
          async append(write: RunWrite) {
            await store.append(write)
            if (write.events.some(({ type }) => type === 'tool.started'))
              await new Promise<void>((resolve) => (hold = resolve))
          },
        }
      }
      await withRig({ answer: usesTool, tools: [tool], wrapStore, limits }, async (rig) => {
        const { id } = (await rig.start()).run
        await reached(() => hold !== undefined)
        const other = secondNodeOn(rig, { answer: usesTool, changes: { store: sound.store as Store } })
        // No timer fires, as after a machine slept: only the clocks of the day and of the store go on.
        rig.clock.set(leaseMs)
        rig.leaseClock.aheadMs = leaseMs
        if (taken) {
          other.scheduler.start()
          await rig.until(id, ({ status }) => status === 'waiting_user')
        }
        hold?.()
        if (taken) await quiet()
        else await reached(() => started.length > 0)

        assert.deepEqual(started, taken ? [] : [id])
        if (taken) assert.equal((await rig.store.interactionsOf(id))[0]?.outcome, 'unknown')
        await rig.service.requestCancel(id, 'ada', null)
        await rig.until(id, ended)
        await other.scheduler.drain()
      })
    })
  }
})

describe('a dead node', () => {
  it('is replaced when its lease ends, without waiting for the next heartbeat', async () => {
    const { asked, answer, release } = gate()
    await withRig({ answer, limits: { ...limits, concurrency: 1 } }, async (rig) => {
      rig.scheduler.reserve()
      const { id } = (await rig.start()).run
      const untilMs = heartbeatMs * 2.5
      await rig.store.claim({ node: 'dead', leaseMs: untilMs, limit: 1 })
      rig.scheduler.release()
      rig.scheduler.start()
      await quiet()

      for (let beats = 0; beats < 2; beats += 1) {
        await rig.clock.advance(heartbeatMs)
        await quiet()
      }
      await rig.clock.advance(heartbeatMs / 2 - 1)
      await quiet()
      assert.deepEqual(asked, [])
      await rig.clock.advance(1)
      await reached(() => asked.length === 1)

      release(id)
      await rig.until(id, ended)
    })
  })
})

describe('the end of a run', () => {
  it('is told once if the answer of the store to the last write was lost', async () => {
    let lost = 0
    const wrapStore = (store: Store): Store => ({
      ...store,
      async append(write: RunWrite) {
        await store.append(write)
        if (lost === 0 && write.events.some(({ type }) => type === 'run.ended')) {
          lost += 1
          throw unavailable()
        }
      },
    })
    await withRig({ wrapStore, limits }, async (rig) => {
      const told: EndedRun[] = []
      rig.dependencies.runEnded = (run) => void told.push(run)
      const { id } = (await rig.start()).run
      await rig.until(id, ended)
      await reached(() => rig.complaints.length > 0)
      await rig.clock.advance(500)
      await reached(() => told.length > 0)
      await rig.clock.advance(60_000)
      await quiet()

      assert.deepEqual(told, [{ runId: id, family: 'agent', engine: 'scripted', status: 'succeeded' }])
      assert.equal(eventsOf(await rig.events(id), 'run.ended').length, 1)
    })
  })
})
