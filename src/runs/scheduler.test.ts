// Which runs are worked on, and when: slots, turns, deadlines, drains and a store
// that fails for a while. Real SQLite, a clock that the tests move.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  ended,
  flaky,
  gate,
  quiet,
  reached,
  unavailable,
  withHistory,
  withRig,
} from '../../test/support/run-helpers.ts'
import { type Answer, calls, says, silence, toolOf } from '../../test/support/run-rig.ts'
import { foldRun } from '../journal/run-state.ts'
import type { Store } from '../stores/store.ts'

const isRunning = ({ status }: { status: string }) => status === 'running'

describe('the scheduler', () => {
  it('works on as many runs as it has slots; the next begins when one ends', async () => {
    const { asked, answer, release } = gate()
    await withRig({ answer, limits: { concurrency: 2 } }, async (rig) => {
      const ids: string[] = []
      for (let count = 0; count < 4; count += 1) ids.push((await rig.start()).run.id)
      await reached(() => asked.length === 2)
      await quiet()
      assert.deepEqual(asked, ids.slice(0, 2))
      assert.equal(rig.scheduler.hasFreeSlot(), false)

      release(ids[1] as string)
      await rig.until(ids[2] as string, isRunning)
      await rig.until(ids[1] as string, ended)
      await reached(() => asked.length === 3)
      await quiet()
      assert.deepEqual(asked, ids.slice(0, 2).concat(ids[2] as string))

      for (const id of ids) {
        await reached(() => asked.includes(id))
        release(id)
        await rig.until(id, ended)
      }
      assert.deepEqual(asked, ids)
      await reached(() => rig.scheduler.hasFreeSlot())
    })
  })

  it('takes the runs of one conversation one after the other, in the order in which they were accepted', async () => {
    const { asked, answer, release } = gate()
    await withRig({ answer }, async (rig) => {
      const ids: string[] = []
      for (let count = 0; count < 3; count += 1) ids.push((await rig.start({ conversationId: 'one' })).run.id)
      const other = (await rig.start({ conversationId: 'two' })).run.id
      await reached(() => asked.length === 2)
      await quiet()
      assert.deepEqual(asked, [ids[0], other], 'another conversation does not wait')

      for (const [index, id] of ids.entries()) {
        release(id)
        await rig.until(id, ended)
        const next = ids[index + 1]
        if (next !== undefined) await reached(() => asked.includes(next))
      }
      assert.deepEqual(asked, [ids[0], other, ids[1], ids[2]])
    })
  })

  it('gives no slot to a run that waits for a person, and one to a run that got its decision', async () => {
    const done: string[] = []
    const send = toolOf({
      name: 'send',
      effect: 'unsafe',
      confirm: 'always',
      run: async (_input, { runId }) => {
        done.push(runId)
        return { ok: true, output: null, summary: '' }
      },
    })
    const answer: Answer = ({ messages }) =>
      messages.at(-1)?.role === 'tool' ? says('Sent.') : calls({ callId: 'c', name: 'send' })
    await withRig({ answer, tools: [send], limits: { concurrency: 1 } }, async (rig) => {
      const first = (await rig.start()).run.id
      await rig.until(first, ({ status }) => status === 'waiting_user')
      const second = (await rig.start()).run.id
      await rig.until(second, ({ status }) => status === 'waiting_user')
      await reached(() => rig.scheduler.hasFreeSlot())
      const [question] = await rig.store.interactionsOf(first)

      await rig.confirm('ada', question?.id ?? '', undefined)
      await rig.until(first, ended)

      assert.deepEqual(done, [first])
    })
  })

  it('wakes a run at its deadline, and not before', async () => {
    const send = toolOf({
      name: 'send',
      effect: 'unsafe',
      confirm: 'always',
      run: () => assert.fail('nobody allowed it'),
    })
    const answer: Answer = ({ messages }) =>
      messages.at(-1)?.role === 'tool' ? says('Then not.') : calls({ callId: 'c', name: 'send' })
    await withRig({ answer, tools: [send], limits: { confirmationTtlMs: 60_000 } }, async (rig) => {
      const { id } = (await rig.start()).run
      await rig.until(id, ({ status }) => status === 'waiting_user')
      await reached(() => rig.clock.pending > 0)

      await rig.clock.advance(59_000)
      await quiet()
      assert.equal((await rig.store.readRun(id))?.status, 'waiting_user')
      await rig.clock.advance(1_000)
      await rig.until(id, ended)

      const state = foldRun(await rig.events(id))
      assert.deepEqual(
        [state.calls.get('c')?.done?.outcome, state.calls.get('c')?.done?.error?.code, state.ended?.status],
        ['denied', 'tool_expired', 'succeeded'],
      )
    })
  })

  it('goes on in place when the store fails and comes back; what was shown stays', async () => {
    const { asked, answer, release } = gate()
    const { failing, hits, wrapStore } = flaky()
    await withRig({ answer, wrapStore }, async (rig) => {
      const { id } = (await rig.start()).run
      await rig.until(id, ({ lastSeq }) => lastSeq >= 5)
      const shown = await rig.events(id)

      failing.add('append')
      release(id)
      // The waits grow: half a second, one, two; each time it is tried again and fails.
      await reached(() => rig.complaints.length === 1)
      const tries = hits.length
      await rig.clock.advance(500)
      await reached(() => rig.complaints.length === 2)
      assert.equal(hits.length, tries + 1)
      await rig.clock.advance(999)
      await quiet()
      assert.equal(hits.length, tries + 1)
      assert.equal(asked.length, 1, 'the model is not asked while nothing can be written down')
      failing.clear()
      await rig.clock.advance(1)
      await reached(() => asked.length === 2)
      release(id)
      await rig.until(id, ended)

      const events = await rig.events(id)
      assert.deepEqual(events.slice(0, shown.length), shown)
      assert.deepEqual(
        events.map(({ seq }) => seq),
        events.map((_, index) => index + 1),
      )
      assert.equal(foldRun(events).ended?.status, 'succeeded')
      assert.equal(foldRun(events).ended?.output, 'One moment. Done.')
    })
  })

  it('goes on in place when the store cannot be read for a moment', async () => {
    const { failing, wrapStore } = flaky()
    await withRig({ wrapStore }, async (rig) => {
      failing.add('historyBefore')
      const { id } = (await rig.start(withHistory)).run
      await reached(() => rig.complaints.length === 1)
      failing.clear()

      await rig.clock.advance(500)
      await rig.until(id, ended)

      const events = await rig.events(id)
      assert.equal(foldRun(events).ended?.status, 'succeeded')
      assert.equal(events.filter(({ type }) => type === 'run.ended').length, 1)
    })
  })

  it('ends a run visibly when its loop trips over a fault of ours', async () => {
    const wrapStore = (store: Store): Store =>
      new Proxy(store, {
        get(target, name: keyof Store) {
          if (name === 'historyBefore') return () => Promise.resolve(new Proxy([], { get: (_, key) => explode(key) }))
          return (target[name] as (...args: unknown[]) => unknown).bind(target)
        },
      })
    const explode = (key: string | symbol): never => {
      throw new TypeError(`a fault, at ${String(key)}`)
    }
    await withRig({ wrapStore }, async (rig) => {
      const { id } = (await rig.start(withHistory)).run
      await rig.until(id, ended)

      const { ended: end } = foldRun(await rig.events(id))
      assert.equal(end?.status, 'failed')
      assert.equal(end?.error?.code, 'internal_error')
    })
  })

  it('claims again when a claim failed', async () => {
    const { failing, wrapStore } = flaky()
    await withRig({ wrapStore, limits: { concurrency: 1 } }, async (rig) => {
      rig.scheduler.reserve()
      const { id } = (await rig.start()).run
      rig.scheduler.release()
      failing.add('claim')
      rig.scheduler.poke()
      await reached(() => rig.complaints.length > 0)
      failing.clear()

      await rig.clock.advance(500)
      await rig.until(id, ended)
    })
  })

  it('does not forget a run that it claimed and could not read', async () => {
    for (const method of ['readEvents', 'readRun'] as const) {
      const { failing, wrapStore } = flaky()
      await withRig({ wrapStore, limits: { concurrency: 1 } }, async (rig) => {
        rig.scheduler.reserve()
        const { id } = (await rig.start()).run
        rig.scheduler.release()
        failing.add(method)
        rig.scheduler.poke()
        await reached(() => rig.complaints.length > 0)
        failing.clear()

        await rig.clock.advance(1000)
        await rig.until(id, ended)
      })
    }
  })

  it('leaves a parked run parked when the store fails just as it is woken in vain', async () => {
    const send = (name: string) =>
      toolOf({ name, effect: 'unsafe', confirm: 'always', run: async () => ({ ok: true, output: null, summary: '' }) })
    const answer: Answer = ({ messages }) =>
      messages.at(-1)?.role === 'tool'
        ? says('Sent.')
        : calls({ callId: 'c1', name: 'one' }, { callId: 'c2', name: 'two' })
    let once = false
    // Only the write without events, by which a woken run gives its lease back.
    const wrapStore = (store: Store): Store => ({
      ...store,
      async append(write) {
        if (write.events.length === 0 && !once) {
          once = true
          throw unavailable()
        }
        await store.append(write)
      },
    })
    await withRig({ answer, tools: [send('one'), send('two')], wrapStore }, async (rig) => {
      const { id } = (await rig.start()).run
      await rig.until(id, ({ status }) => status === 'waiting_user')
      const [first, second] = await rig.store.interactionsOf(id)

      await rig.confirm('ada', first?.id ?? '', undefined)
      await reached(() => once && rig.complaints.length > 0)
      await rig.clock.advance(500)
      await quiet()
      assert.equal((await rig.store.readRun(id))?.status, 'waiting_user')
      await rig.confirm('ada', second?.id ?? '', undefined)
      await rig.until(id, ended)

      assert.equal((await rig.store.readRun(id))?.status, 'succeeded')
    })
  })

  it('cancels a run that is queued, one that waits and one that talks, also with all slots taken', async () => {
    const answer: Answer = (_request, signal) => silence(signal)
    await withRig({ answer, limits: { concurrency: 1 } }, async (rig) => {
      const talking = (await rig.start()).run.id
      const queued = (await rig.start()).run.id
      await rig.until(talking, isRunning)

      for (const id of [queued, talking]) {
        const { run, accepted } = await rig.service.cancel('ada', id, 'enough')
        assert.deepEqual([run.status, accepted], ['canceled', true])
        assert.equal((await rig.service.cancel('ada', id, null)).accepted, false)
      }
    })
  })

  it('drains: model work stops, tools finish, nothing new begins, and the next start goes on', async () => {
    let finish = () => {}
    const slow = toolOf({
      name: 'slow',
      effect: 'unsafe',
      run: () => new Promise((resolve) => (finish = () => resolve({ ok: true, output: 'x', summary: '' }))),
    })
    let asked = 0
    const answer: Answer = ({ messages }, signal) => {
      asked += 1
      if (messages.some((message) => message.content === 'use the tool')) return calls({ callId: 'c', name: 'slow' })
      return silence(signal)
    }
    await withRig({ answer, tools: [slow] }, async (rig) => {
      const talking = (await rig.start()).run.id
      const working = (await rig.start({ input: 'use the tool' })).run.id
      await rig.until(talking, isRunning)
      await reached(async () => foldRun(await rig.events(working)).calls.get('c')?.started === true)
      const before = asked

      let drained = false
      const draining = rig.scheduler.drain().then(() => (drained = true))
      await quiet()
      assert.equal(drained, false, 'the tool is waited for')
      finish()
      await draining

      assert.equal(asked, before)
      assert.equal(foldRun(await rig.events(working)).calls.get('c')?.done?.outcome, 'succeeded')
      for (const id of [talking, working]) assert.equal((await rig.store.readRun(id))?.status, 'running')
    })
  })

  it('begins no run whose claim or acceptance was on its way when the drain began', async () => {
    for (const method of ['claim', 'accept'] as const) {
      let asked = 0
      let hold: (() => void) | undefined
      const answer: Answer = (_request, signal) => {
        asked += 1
        return silence(signal)
      }
      // The store has done it, and its answer is still on its way.
      const wrapStore = (store: Store): Store => ({
        ...store,
        [method]: async (input: never) => {
          const result = await store[method](input)
          await new Promise<void>((resolve) => (hold = resolve))
          return result
        },
      })
      await withRig({ answer, wrapStore }, async (rig) => {
        if (method === 'claim') for (let count = 0; count < 4; count += 1) rig.scheduler.reserve()
        const starting = rig.start()
        if (method === 'claim') {
          await starting
          for (let count = 0; count < 4; count += 1) rig.scheduler.release()
          rig.scheduler.poke()
        }
        await reached(() => hold !== undefined)

        const draining = rig.scheduler.drain()
        hold?.()
        const { run } = await starting
        await draining
        await quiet()

        assert.equal(asked, 0, method)
        const row = await rig.store.readRun(run.id)
        assert.deepEqual([row?.status, row?.leaseOwner], ['queued', null], method)
      })
    }
  })
})
