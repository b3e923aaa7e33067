// Retention removes only runs that ended longer ago than the setting, repeats this, and keeps
// their messages.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { quiet, reached, withRig, ended } from '../../test/support/run-helpers.ts'
import { type Answer, calls, type Rig, says, toolOf } from '../../test/support/run-rig.ts'
import type { RunStore } from '../stores/run-store.ts'
import type { SnapshotStore } from '../stores/snapshot-store.ts'
import { startRetention } from './retention.ts'

const hour = 3_600_000
const minute = 60_000
const limits = { stallMs: 24 * hour, runMaxMs: 24 * hour, confirmationTtlMs: 24 * hour }

const isThere = async (rig: Rig, id: string) => (await rig.store.readRun(id)) !== undefined

async function endedRun(rig: Rig, conversationId: string): Promise<string> {
  const { id } = (await rig.start({ conversationId })).run
  await rig.until(id, ended)
  return id
}

describe('retention', () => {
  it('removes runs that ended longer ago than the setting, sweep after sweep, and leaves everything else', async () => {
    const send = toolOf({ name: 'send', effect: 'unsafe', confirm: 'always', run: () => assert.fail('not allowed') })
    const answer: Answer = ({ messages }) =>
      messages.some(({ content }) => content === 'send it') ? calls({ callId: 'c', name: 'send' }) : says('Hello.')
    await withRig({ answer, tools: [send], limits }, async (rig) => {
      const waiting = (await rig.start({ input: 'send it' })).run.id
      await rig.until(waiting, ({ status }) => status === 'waiting_user')
      const first = await endedRun(rig, 'one')
      const conversation = (await rig.store.readRun(first))?.conversationId ?? ''
      await rig.clock.advance(hour / 2)
      const second = await endedRun(rig, 'one')
      const retention = startRetention({ ...rig.dependencies, node: 'a', retentionMs: hour, fileTtlMs: hour })
      try {
        await rig.clock.advance(hour / 2)
        await quiet()
        assert.ok((await isThere(rig, first)) && (await isThere(rig, second)), 'an hour has not passed')

        await rig.clock.advance(minute)
        await reached(async () => !(await isThere(rig, first)))
        assert.ok(await isThere(rig, second), 'a younger run stays')

        for (let sweeps = 0; sweeps < 31; sweeps += 1) {
          await rig.clock.advance(minute)
          await quiet()
        }
        await reached(async () => !(await isThere(rig, second)))
        assert.equal((await rig.store.readRun(waiting))?.status, 'waiting_user', 'a run that has not ended stays')
        const messages = await rig.store.allMessages(conversation, { limit: 10 })
        assert.equal(messages.length, 4, 'questions and answers stay')
      } finally {
        retention.stop()
      }
    })
  })

  it('removes snapshots that expired longer ago than the setting, and keeps those that can still be compared', async () => {
    await withRig({ limits }, async (rig) => {
      const asked: number[] = []
      let due = 201
      const expireSnapshots: SnapshotStore['expireSnapshots'] = async (before, limit) => {
        asked.push(before)
        const removed = Math.min(limit, due)
        due -= removed
        return removed
      }
      const store = { ...rig.store, expireSnapshots }
      const retention = startRetention({ ...rig.dependencies, node: 'a', store, retentionMs: hour, fileTtlMs: hour })
      const before = rig.clock.now() - hour

      assert.equal(await retention.sweep(), 201)

      assert.deepEqual(asked, [before, before])
      retention.stop()
    })
  })

  it('removes files that nothing refers to after their own time, also if runs are kept for ever', async () => {
    await withRig({ limits }, async (rig) => {
      const { files } = rig.dependencies
      const put = (text: string) => files.put('ada', { bytes: Buffer.from(text) })
      const ids = await Promise.all(Array.from({ length: 12 }, async (_, index) => (await put(`file ${index}`)).id))
      const retention = startRetention({ ...rig.dependencies, node: 'a', retentionMs: null, fileTtlMs: hour })
      try {
        await rig.clock.advance(hour)
        await put('file 3')
        assert.equal(await retention.sweep(), 0)
        await rig.clock.advance(1)

        assert.equal(await retention.sweep(), 11)
        const { rows } = await rig.store.listFiles('ada', { limit: 20 })
        assert.deepEqual(
          rows.map(({ id }) => id),
          [ids[3]],
        )
      } finally {
        retention.stop()
      }
    })
  })

  it('keeps everything if it is not configured, and stops when stop is called', async () => {
    await withRig({ limits }, async (rig) => {
      const id = await endedRun(rig, 'one')
      const none = startRetention({ ...rig.dependencies, node: 'a', retentionMs: null, fileTtlMs: hour })
      assert.equal(await none.sweep(), 0)
      const stopped = startRetention({ ...rig.dependencies, node: 'a', retentionMs: hour, fileTtlMs: hour })
      stopped.stop()
      await rig.clock.advance(3 * hour)
      await quiet()

      assert.ok(await isThere(rig, id))
    })
  })

  it('goes on after a sweep that failed, and removes in bounded portions until nothing is due', async () => {
    const asked: number[] = []
    let due = 450
    let fails = true
    const expireRuns: RunStore['expireRuns'] = async (_before, limit) => {
      if (fails) throw new Error('the disk is full')
      asked.push(limit)
      const removed = Math.min(limit, due)
      due -= removed
      return removed
    }
    await withRig({}, async (rig) => {
      const retention = startRetention({
        ...rig.dependencies,
        node: 'a',
        store: { ...rig.store, expireRuns },
        retentionMs: hour,
        fileTtlMs: hour,
      })
      await rig.clock.advance(minute)
      await reached(() => rig.complaints.length === 1)
      fails = false
      await rig.clock.advance(minute)
      await reached(() => due === 0)
      retention.stop()

      assert.deepEqual(asked, [200, 200, 200])
    })
  })

  it('is done by one of several nodes, and by another one when that node is gone', async () => {
    await withRig({ limits }, async (rig) => {
      await endedRun(rig, 'one')
      await rig.clock.advance(hour + 1)
      const removed: [string, number][] = []
      const startOn = (node: string) =>
        startRetention({
          ...rig.dependencies,
          node,
          retentionMs: hour,
          fileTtlMs: hour,
          removed: (kind, count) => {
            // PostgreSQL also removes rows of the journal; on SQLite they leave with their run.
            if (kind === 'runs') removed.push([node, count])
          },
        })
      const [a, b] = [startOn('a'), startOn('b')]
      assert.ok(await rig.store.takeDuty('retention', 'a', minute))

      assert.equal(await b.sweep(), 0)
      assert.equal(await a.sweep(), 1)
      assert.deepEqual(removed, [['a', 1]])

      a.stop()
      await endedRun(rig, 'two')
      for (let sweeps = 0; sweeps < 64; sweeps += 1) {
        await rig.clock.advance(minute)
        await quiet()
      }
      await reached(() => removed.length === 2)
      assert.deepEqual(removed[1], ['b', 1])
      b.stop()
    })
  })
})
