// What callers are promised of starting, cancelling and deciding, with a store that is slow,
// and a model that does not stop.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openRig, type Rig, type RigOptions, says, silence } from '../../test/support/run-rig.ts'
import { asUser } from '../kit/caller.ts'
import type { Store } from '../stores/store.ts'
import { ended, reached } from '../../test/support/run-helpers.ts'

async function withRig(options: RigOptions, body: (rig: Rig) => Promise<void>): Promise<void> {
  const rig = await openRig(options)
  try {
    await body(rig)
  } finally {
    await rig.close()
  }
}

const running = ({ status }: { status: string }) => status === 'running'

/** A store whose appends that end a run wait until `release` is called. */
function slowEnds(): { wrap: (store: Store) => Store; asked: Promise<void>; release: () => void } {
  const gate = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  const wrap = (store: Store): Store => ({
    ...store,
    async append(write) {
      if (write.events.some((event) => event.type === 'run.ended')) {
        asked.resolve()
        await gate.promise
      }
      return await store.append(write)
    },
  })
  return { wrap, asked: asked.promise, release: gate.resolve }
}

describe('a cancel', () => {
  it('is accepted when the run ends as cancelled, and not when it had ended before', async () => {
    await withRig({ answer: (_request, signal) => silence(signal) }, async (rig) => {
      const { run } = await rig.start()
      await rig.until(run.id, running)

      const first = await rig.service.cancel('ada', run.id, 'enough')
      const second = await rig.service.cancel('ada', run.id, 'again')

      assert.deepEqual([first.accepted, first.run.status, first.run.cancel?.reason], [true, 'canceled', 'enough'])
      assert.deepEqual(await rig.service.stop([run]), { stopped: [run.id], stopping: [] })
      assert.deepEqual([second.accepted, second.run.status, second.run.cancel?.reason], [false, 'canceled', 'enough'])
    })
  })

  it('that takes long is accepted with the state of that moment, and the run ends as cancelled', async () => {
    const slow = slowEnds()
    await withRig({ answer: (_request, signal) => silence(signal), wrapStore: slow.wrap }, async (rig) => {
      const { run } = await rig.start()
      await rig.until(run.id, running)

      const answer = rig.service.cancel('ada', run.id, null)
      await slow.asked
      await rig.clock.advance(10_000)
      const { run: answered, accepted } = await answer

      assert.deepEqual([accepted, answered.status, answered.endedAt], [true, 'running', null])
      assert.notEqual(answered.cancel, null)
      const armed = rig.clock.pending
      const stopping = rig.service.stop([run])
      await reached(() => rig.clock.pending > armed)
      await rig.clock.advance(10_000)
      assert.deepEqual(await stopping, { stopped: [], stopping: [run.id] })
      slow.release()
      await rig.until(run.id, ended)
      assert.equal((await rig.store.readRun(run.id))?.status, 'canceled')
    })
  })

  it('of another user’s run is refused as if there were no such run', async () => {
    await withRig({ answer: (_request, signal) => silence(signal) }, async (rig) => {
      const { run } = await rig.start()

      await assert.rejects(rig.service.cancel('eve', run.id, null), { code: 'run_not_found' })
      await assert.rejects(rig.service.get(asUser('eve'), run.id), { code: 'run_not_found' })
      assert.equal((await rig.store.readRun(run.id))?.cancel, null)
    })
  })
})

describe('whenBusy cancel', () => {
  it('stores the new run and the cancel of the old one together: a store that refuses the run keeps the old one', async () => {
    const answer: RigOptions['answer'] = (request, signal) =>
      request.messages.at(-1)?.content === 'second' ? says('Two.') : silence(signal)
    await withRig({ answer, limits: { concurrency: 1, queueMax: 0 } }, async (rig) => {
      const { run } = await rig.start({ conversationId: 'c' })
      await rig.until(run.id, running)

      await assert.rejects(rig.start({ conversationId: 'c', input: 'second', whenBusy: 'cancel' }), {
        code: 'queue_full',
      })

      const after = await rig.store.readRun(run.id)
      assert.deepEqual([after?.status, after?.cancel], ['running', null])
    })
  })

  it('cancels every earlier run of the conversation and no run of another one', async () => {
    const answer: RigOptions['answer'] = (request, signal) =>
      request.messages.at(-1)?.content === 'last' ? says('Done.') : silence(signal)
    await withRig({ answer }, async (rig) => {
      const first = (await rig.start({ conversationId: 'c' })).run
      const queued = (await rig.start({ conversationId: 'c' })).run
      const elsewhere = (await rig.start({ conversationId: 'd' })).run

      const last = (await rig.start({ conversationId: 'c', input: 'last', whenBusy: 'cancel' })).run
      for (const { id } of [first, queued, last]) await rig.until(id, ended)

      const statusOf = async ({ id }: { id: string }) => (await rig.store.readRun(id))?.status
      assert.deepEqual(
        [await statusOf(first), await statusOf(queued), await statusOf(last), await statusOf(elsewhere)],
        ['canceled', 'canceled', 'succeeded', 'running'],
      )
      assert.equal((await rig.store.readRun(first.id))?.cancel?.reason, 'replaced by a newer message')
    })
  })
})

describe('a server that goes down', () => {
  it('refuses runs, jobs and uploads, and still finds and cancels what is there', async () => {
    await withRig({ answer: (_request, signal) => silence(signal) }, async (rig) => {
      const { run } = await rig.start()
      await rig.until(run.id, running)
      rig.service.refuseNewRuns()

      await assert.rejects(rig.start(), { code: 'shutting_down' })
      await assert.rejects(
        rig.service.startStandalone({
          owner: 'ada',
          family: 'job',
          input: 'x',
          spec: { agentId: 'a', engine: 'scripted', model: 'm/m' },
          held: null,
          createdAt: 1,
          idempotency: null,
        }),
        { code: 'shutting_down' },
      )
      await assert.rejects(rig.service.startHeld(run, { input: 'x', files: [] }, []), { code: 'shutting_down' })
      assert.equal((await rig.service.get(asUser('ada'), run.id)).id, run.id)
      assert.equal((await rig.service.cancel('ada', run.id, null)).accepted, true)
    })
  })
})
