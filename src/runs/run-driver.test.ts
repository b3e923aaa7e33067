// A claimed run is never left without an owner that works on it: it goes on when the
// store can be read and written again, and it can be ended from every state.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  ended,
  flaky,
  gate,
  isWaiting,
  quiet,
  reached,
  unavailable,
  withHistory,
  withRig,
} from '../../test/support/run-helpers.ts'
import { type Answer, calls, countingIds, says, silence, toolOf } from '../../test/support/run-rig.ts'
import { foldRun } from '../journal/run-state.ts'
import type { Store } from '../stores/store.ts'

describe('a run whose store fails', () => {
  it('goes on after a read that failed while an append was under way, and can be cancelled', async () => {
    for (const then of ['finish', 'cancel'] as const) {
      let openGate = () => {}
      let readFails = false
      let appends: Promise<unknown> = Promise.resolve()
      // Appends are answered in their order, as by the real store; the one with the progress takes its time.
      const wrapStore = (store: Store): Store => ({
        ...store,
        append(write) {
          const slow = write.events.some(({ type }) => type === 'tool.progress')
          const before = appends
          const work = async () => {
            await before.catch(() => {})
            if (slow) await new Promise<void>((resolve) => (openGate = resolve))
            await store.append(write)
          }
          appends = work()
          return appends as Promise<void>
        },
        interactionsOf: (runId) => (readFails ? Promise.reject(unavailable()) : store.interactionsOf(runId)),
      })
      let report = (_message: string) => {}
      let finish = () => {}
      const look = toolOf({
        name: 'look',
        run: (_input, { progress }) => {
          report = progress
          return new Promise((resolve) => (finish = () => resolve({ ok: true, output: null, summary: '' })))
        },
      })
      const send = toolOf({ ...look, name: 'send', effect: 'unsafe', confirm: 'always' })
      const answer: Answer = ({ messages }) =>
        messages.at(-1)?.role === 'tool'
          ? says('Done.')
          : calls({ callId: 'look', name: 'look' }, { callId: 'send', name: 'send' })
      await withRig({ answer, tools: [look, send], wrapStore }, async (rig) => {
        const { id } = (await rig.start()).run
        await reached(async () => foldRun(await rig.events(id)).calls.get('look')?.started === true)
        const [question] = await rig.store.interactionsOf(id)
        report('half way')
        readFails = true
        await rig.reject('ada', question?.id ?? '', undefined)
        await quiet()
        await rig.clock.advance(500)
        await quiet()
        readFails = false
        openGate()
        await reached(() => rig.complaints.length > 0)
        await rig.clock.advance(500)
        await reached(async () => foldRun(await rig.events(id)).attempt === 2)
        // The call only reads, so it runs again.
        await reached(async () => foldRun(await rig.events(id)).calls.get('look')?.starts === 2)
        if (then === 'cancel') assert.equal((await rig.service.cancel('ada', id, null)).run.status, 'canceled')
        else {
          finish()
          await rig.until(id, ended)
          assert.equal((await rig.store.readRun(id))?.status, 'succeeded')
        }
      })
    }
  })

  it('goes on from exactly what was stored, however long its journal is', async () => {
    const { failing, wrapStore } = flaky()
    const words = Array.from({ length: 2200 }, (_, index) => `${index} `)
    let asked = 0
    const answer: Answer = async function* () {
      asked += 1
      for (let from = 0; from < words.length; from += 20)
        yield words.slice(from, from + 20).map((text) => ({ type: 'text', text }))
      if (asked === 1) failing.add('append')
      yield [{ type: 'text', text: 'End.' }]
      yield [{ type: 'finish', reason: 'stop' }]
    }
    await withRig({ answer, wrapStore }, async (rig) => {
      const { id } = (await rig.start()).run
      await reached(() => rig.complaints.length > 0)
      failing.clear()
      await rig.clock.advance(500)
      await rig.until(id, ended)

      const events = await rig.events(id)
      assert.deepEqual(
        events.map(({ seq }) => seq),
        events.map((_, index) => index + 1),
      )
      // A state that is not what was shown would close the message as superseded and begin another one.
      assert.deepEqual(
        events.flatMap((event) => (event.type === 'message.done' ? [[event.data.state, event.data.text]] : [])),
        [['active', `${words.join('')}End.`]],
      )
      const shown = events.flatMap((event) => (event.type === 'text.delta' ? [event.data.text] : []))
      assert.equal(shown.join(''), `${words.join('')}End.`)
    })
  })

  it('is cancelled at once when the store answers again, not after the long wait of its last failure', async () => {
    const { failing, wrapStore } = flaky()
    await withRig({ wrapStore }, async (rig) => {
      failing.add('historyBefore')
      const { id } = (await rig.start(withHistory)).run
      for (let waitMs = 500; waitMs < 16_000; waitMs *= 2) {
        const complaints = rig.complaints.length
        await reached(() => rig.complaints.length > complaints || complaints > 0)
        await rig.clock.advance(waitMs)
        await quiet()
      }
      failing.clear()

      assert.equal((await rig.service.cancel('ada', id, null)).run.status, 'canceled')
    })
  })
})

describe('a run that cannot go on', () => {
  it('is ended from every state, also when writing its end is refused or fails at first', async () => {
    const send = toolOf({ name: 'send', effect: 'unsafe', confirm: 'always', run: () => assert.fail('not allowed') })
    const look = toolOf({ name: 'look', run: () => new Promise(() => {}) })
    const states: Record<string, Answer> = {
      'in mid sentence': (_request, signal) => silence(signal),
      'in a tool': () => calls({ callId: 'c', name: 'look' }),
      'waiting for a person': () => calls({ callId: 'c', name: 'send' }),
    }
    for (const [state, answer] of Object.entries(states)) {
      const { failing, hits, wrapStore } = flaky()
      const mint = countingIds()
      let broken = false
      // An empty id is refused by the journal: the ending that needs a new id cannot be written.
      const ids = () => (broken ? '' : mint())
      await withRig({ answer, tools: [send, look], wrapStore, ids }, async (rig) => {
        const { id } = (await rig.start()).run
        if (state === 'waiting for a person') await rig.until(id, isWaiting)
        else await rig.until(id, ({ lastSeq }) => lastSeq >= (state === 'in a tool' ? 7 : 4))
        if (state === 'in a tool')
          await reached(async () => foldRun(await rig.events(id)).calls.get('c')?.started === true)
        broken = true
        failing.add('append')
        const cancelling = rig.service.cancel('ada', id, null)
        await reached(() => hits.length > 0 || rig.complaints.length > 0)
        await quiet()
        failing.clear()
        for (let tries = 0; tries < 4; tries += 1) {
          await rig.clock.advance(2000)
          await quiet()
        }
        broken = false
        await rig.until(id, ended)

        assert.equal((await cancelling).run.status, 'canceled', state)
        const rows = await rig.store.interactionsOf(id)
        assert.ok(
          rows.every(({ status }) => status === 'closed'),
          state,
        )
        assert.equal((await rig.events(id)).at(-1)?.type, 'run.ended', state)
      })
    }
  })

  it('because its first event is lost ends as unrecoverable, and lets its conversation go on', async () => {
    for (const from of ['queued', 'running'] as const) {
      let lossy = false
      const wrapStore = (store: Store): Store => ({
        ...store,
        async readEvents(runId, after, limit) {
          const page = await store.readEvents(runId, after, limit)
          const events = lossy ? page.events.filter(({ type }) => type !== 'run.accepted') : page.events
          const skipped = page.events.length - events.length
          return { events, skipped, nextAfter: page.nextAfter, atHead: page.atHead }
        },
      })
      const { answer, asked, release } = gate()
      await withRig({ answer, wrapStore, limits: { concurrency: 1, leaseMs: 30_000 } }, async (rig) => {
        if (from === 'queued') rig.scheduler.reserve()
        const { id } = (await rig.start({ conversationId: 'one' })).run
        if (from === 'running') {
          await reached(() => asked.length === 1)
          // A claim whose lease has run out again when the clock is right.
          rig.leaseClock.aheadMs = 40_000
          const claim = () => rig.store.claim({ ...rig.scheduler.leaseRequest(), leaseMs: -40_001, limit: 1 })
          // A claim skips a run whose row is locked, as it is while the last append is being committed.
          while ((await claim()).length === 0);
          rig.leaseClock.aheadMs = 0
        }
        lossy = true
        if (from === 'queued') rig.scheduler.release()
        else {
          release(id)
          await quiet()
          await rig.clock.advance(1000)
        }
        rig.scheduler.poke()
        await rig.until(id, ended)
        assert.equal((await rig.store.readRun(id))?.error?.code, 'run_unrecoverable', from)
        lossy = false

        const next = (await rig.start({ conversationId: 'one' })).run.id
        await reached(() => asked.includes(next))
        release(next)
        await rig.until(next, ended)
      })
    }
  })
})
