// Who works on a run: two schedulers on one store, a clock that the tests move, and a
// store that fails on command.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ended, flaky, gate, quiet, reached, withHistory, withRig } from '../../test/support/run-helpers.ts'
import { enginesOf, type Answer, calls, type Rig, says, silence, toolOf } from '../../test/support/run-rig.ts'
import { foldRun } from '../journal/run-state.ts'
import type { Store } from '../stores/store.ts'
import { heartbeatMsOf } from './run-lease.ts'
import { Scheduler } from './scheduler.ts'

const leaseMs = 30_000
const heartbeatMs = heartbeatMsOf(leaseMs)

/** A second node on the same store, with an engine of its own. `store`: its way to the store, if the first one's fails. */
function secondNode(rig: Rig, answer: Answer, store = rig.store): Scheduler {
  return new Scheduler(
    { ...rig.dependencies, store, engines: enginesOf({ kind: 'step', name: 'scripted', step: answer }) },
    'node-2',
  )
}

/** A first node whose store fails on command, and the sound store behind it. */
function flakyFirst() {
  const { failing, wrapStore } = flaky()
  const sound: { store?: Store } = {}
  const wrap = (store: Store): Store => wrapStore((sound.store = store))
  return { failing, sound, wrapStore: wrap }
}

/** The clock is moved by minutes while a model says nothing. */
const limits = { stallMs: 3_600_000, runMaxMs: 3_600_000, leaseMs }

/** A heartbeat may come one turn late, but never two. */
async function isRenewed(rig: Rig, id: string): Promise<boolean> {
  const until = (await rig.store.readRun(id))?.leaseUntil ?? 0
  return until > rig.clock.monotonic() + heartbeatMs
}

const ownerOf = async (rig: Rig, id: string) => (await rig.store.readRun(id))?.leaseOwner

describe('a lease', () => {
  it('is renewed as long as its run is worked on, so that another node never claims the run', async () => {
    const first = gate()
    const second = gate()
    await withRig({ answer: first.answer, limits }, async (rig) => {
      const other = secondNode(rig, second.answer)
      const { id } = (await rig.start()).run
      rig.scheduler.start()
      other.start()
      await reached(() => first.asked.length === 1)
      for (let beats = 0; beats < 8; beats += 1) {
        await rig.clock.advance(heartbeatMs)
        await reached(() => isRenewed(rig, id))
        await quiet()
      }
      first.release(id)
      await rig.until(id, ended)
      await other.drain()

      assert.deepEqual([first.asked, second.asked], [[id], []])
      assert.equal(foldRun(await rig.events(id)).ended?.output, 'One moment. Done.')
    })
  })

  it('of a run that its node does not work on runs out, also while that node lives; the run is then claimed again', async () => {
    await withRig({ limits: { leaseMs } }, async (rig) => {
      for (let count = 0; count < 4; count += 1) rig.scheduler.reserve()
      const { id } = (await rig.start()).run
      // As after a fault between the claim and the loop.
      await rig.store.claim({ ...rig.scheduler.leaseRequest(), limit: 1 })
      for (let count = 0; count < 4; count += 1) rig.scheduler.release()
      rig.scheduler.start()
      await rig.clock.advance(heartbeatMs)
      await quiet()
      assert.equal((await rig.store.readRun(id))?.status, 'queued')

      for (let beats = 0; beats < 3; beats += 1) {
        await rig.clock.advance(heartbeatMs)
        await quiet()
      }

      await rig.until(id, ended)
      assert.equal((await rig.store.readRun(id))?.status, 'succeeded')
    })
  })

  it('that could not be renewed is lost: the old owner stops, writes nothing more and does not try again', async () => {
    const { failing, sound, wrapStore } = flakyFirst()
    const signals: AbortSignal[] = []
    const asked: string[] = []
    const answer: Answer = (_request, signal) => {
      asked.push('node-1')
      signals.push(signal)
      return silence(signal)
    }
    const second = gate()
    await withRig({ answer, wrapStore, limits }, async (rig) => {
      const other = secondNode(rig, second.answer, sound.store)
      const { id } = (await rig.start()).run
      rig.scheduler.start()
      await reached(() => signals.length === 1)
      failing.add('renewLeases')
      failing.add('claim')
      await rig.clock.advance(leaseMs)
      other.start()
      await reached(() => second.asked.length === 1)
      assert.equal(await ownerOf(rig, id), 'node-2')

      failing.clear()
      await rig.clock.advance(heartbeatMs)
      await reached(() => signals[0]?.aborted === true)
      for (let beats = 0; beats < 4; beats += 1) {
        await rig.clock.advance(heartbeatMs)
        await reached(() => isRenewed(rig, id))
        await quiet()
      }
      second.release(id)
      await rig.until(id, ended)
      await other.drain()

      const events = await rig.events(id)
      assert.deepEqual([asked.length, second.asked.length], [1, 1])
      assert.equal(events.filter(({ type }) => type === 'run.ended').length, 1)
      assert.equal(foldRun(events).ended?.output, 'One moment. Done.')
    })
  })

  it('that another node took is noticed at the next write, too: what the old owner says is not stored', async () => {
    const { sound, wrapStore } = flakyFirst()
    const first = gate()
    const second = gate()
    await withRig({ answer: first.answer, wrapStore, limits }, async (rig) => {
      const other = secondNode(rig, second.answer, sound.store)
      const { id } = (await rig.start()).run
      await rig.until(id, ({ lastSeq }) => lastSeq >= 5)
      // As if the first node was frozen: no timer of it fires while its lease runs out.
      rig.leaseClock.aheadMs = leaseMs
      other.start()
      await reached(() => second.asked.length === 1)

      first.release(id)
      await reached(() => rig.complaints.length > 0)
      // The loser reads the run again, and finds that it is not its own.
      await rig.clock.advance(1000)
      await quiet()
      await rig.clock.advance(60_000)
      await quiet()
      assert.equal(first.asked.length, 1)
      assert.equal(await ownerOf(rig, id), 'node-2')
      second.release(id)
      await rig.until(id, ended)
      await other.drain()

      assert.equal(foldRun(await rig.events(id)).ended?.output, 'One moment. Done.')
    })
  })
})

describe('a drain', () => {
  it('gives every lease back, so that another node goes on at once', async () => {
    const { failing, wrapStore } = flaky()
    const first = gate()
    let slowCalls = 0
    const slow = toolOf({
      name: 'slow',
      run: () => (++slowCalls === 1 ? new Promise(() => {}) : Promise.resolve({ ok: true, output: null, summary: '' })),
    })
    const answer: Answer = (request, signal) =>
      request.messages.some((message) => message.content === 'use the tool')
        ? calls({ callId: 'c', name: 'slow' })
        : first.answer(request, signal)
    await withRig({ answer, tools: [slow], wrapStore, limits: { leaseMs } }, async (rig) => {
      const talking = (await rig.start()).run.id
      const working = (await rig.start({ input: 'use the tool' })).run.id
      await reached(async () => foldRun(await rig.events(working)).calls.get('c')?.started === true)
      await reached(() => first.asked.length === 1)
      failing.add('historyBefore')
      const paused = (await rig.start(withHistory)).run.id
      await reached(() => rig.complaints.length === 1)

      const draining = rig.scheduler.drain(5000)
      await quiet()
      await rig.clock.advance(5000)
      await draining

      for (const id of [talking, working, paused]) assert.equal(await ownerOf(rig, id), null)
      failing.clear()
      const other = secondNode(rig, () => says('Done.'))
      other.start()
      await rig.until(talking, ended)
      await rig.until(paused, ended)
      await rig.until(working, ended)
      await other.drain()
    })
  })

  it('that cuts an unsafe call off leaves its outcome to a person, whatever the tool says when it is stopped', async () => {
    const done: string[] = []
    const send = toolOf({
      name: 'send',
      effect: 'unsafe',
      run: (_input, { signal }) =>
        new Promise((_, reject) => {
          done.push('send')
          signal.addEventListener('abort', () => reject(new Error('the connection is closed')))
        }),
    })
    const answer: Answer = ({ messages }) =>
      messages.at(-1)?.role === 'tool' ? says('Sent.') : calls({ callId: 'c', name: 'send' })
    await withRig({ answer, tools: [send], limits: { leaseMs } }, async (rig) => {
      const { id } = (await rig.start()).run
      await reached(() => done.length === 1)
      const draining = rig.scheduler.drain(10_000)
      await rig.clock.advance(10_000)
      await draining
      assert.equal(foldRun(await rig.events(id)).calls.get('c')?.done, undefined)

      const other = secondNode(rig, answer)
      other.start()
      await rig.until(id, ({ status }) => status === 'waiting_user')
      await other.drain()

      const [question] = await rig.store.interactionsOf(id)
      assert.deepEqual([question?.outcome, question?.status, done], ['unknown', 'pending', ['send']])
    })
  })

  it('does not lose the wake-up of a run that was decided on a moment before', async () => {
    const { failing, wrapStore } = flaky()
    const send = toolOf({
      name: 'send',
      effect: 'unsafe',
      confirm: 'always',
      run: async () => ({ ok: true, output: null, summary: '' }),
    })
    const answer: Answer = ({ messages }) =>
      messages.at(-1)?.role === 'tool' ? says('Sent.') : calls({ callId: 'c', name: 'send' })
    let entered = false
    const slowReads = (store: Store): Store => {
      const wrapped = wrapStore(store)
      return new Proxy(wrapped, {
        get(target, name: keyof Store) {
          if (name !== 'interactionsOf' || !failing.has(name)) return target[name]
          return async (runId: string) => {
            entered = true
            await quiet()
            return await target.interactionsOf(runId)
          }
        },
      })
    }
    await withRig({ answer, tools: [send], wrapStore: slowReads, limits: { leaseMs } }, async (rig) => {
      const { id } = (await rig.start()).run
      await rig.until(id, ({ status }) => status === 'waiting_user')
      const [question] = await rig.store.interactionsOf(id)
      failing.add('interactionsOf')
      await rig.confirm('ada', question?.id ?? '', undefined)
      await reached(() => entered)
      await rig.scheduler.drain()
      failing.clear()

      const other = secondNode(rig, answer)
      other.start()
      await rig.until(id, ended)
      await other.drain()

      assert.equal((await rig.store.readRun(id))?.status, 'succeeded')
    })
  })
})
