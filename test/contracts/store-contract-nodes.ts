// Contract: the nodes that use the database, and their heartbeats.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { deadNodesKeptMs, type NodeBeat, type NodeStore } from '../../src/stores/node-store.ts'
import type { OpenStore } from './open-store.ts'
import { start, withStore } from './store-fixtures.ts'

const beat: NodeBeat = {
  id: 'n1',
  name: 'alpha',
  version: '1.0.0',
  startedAt: start - 5,
  leaseMs: 6000,
  offers: ['mcp:files', 'dir:alpha'],
  draining: false,
  capacity: 8,
  running: 3,
}

export function nodeContract(open: OpenStore<NodeStore>): void {
  const opened = withStore(open)

  describe('nodes', () => {
    test(
      'are listed with their last heartbeat, live until their lease has passed by the clock of the store',
      opened(async ({ store, time }) => {
        await store.beatNode({ ...beat, id: 'n2', name: 'beta', offers: [], leaseMs: 1000 })
        await store.beatNode(beat)

        const { leaseMs: _lease, ...row } = beat
        const [first, second] = await store.listNodes()
        assert.deepEqual(first, { ...row, seenAt: start, live: true })
        assert.deepEqual([second?.id, second?.live, second?.offers], ['n2', true, []])

        await time.set(start + 999)
        assert.deepEqual(await alive(store), ['n1', 'n2'])
        await time.set(start + 1000)
        assert.deepEqual(await alive(store), ['n1'])
        assert.equal((await store.listNodes()).length, 2)
      }),
    )

    test(
      'replace their row at the next heartbeat, and remove it when they stop',
      opened(async ({ store, time }) => {
        await store.beatNode(beat)
        await time.set(start + 50)
        await store.beatNode({ ...beat, draining: true, running: 0, capacity: 4, offers: [] })

        const [node, ...others] = await store.listNodes()
        assert.deepEqual(others, [])
        assert.deepEqual(
          [node?.seenAt, node?.draining, node?.running, node?.capacity, node?.offers],
          [start + 50, true, 0, 4, []],
        )
        await store.removeNode('n1')
        await store.removeNode('no such node')
        assert.deepEqual(await store.listNodes(), [])
      }),
    )

    test(
      'that have been dead for a day are removed by the heartbeat of another',
      opened(async ({ store, time }) => {
        await store.beatNode(beat)
        await time.set(start + deadNodesKeptMs)
        await store.beatNode({ ...beat, id: 'n2' })
        assert.equal((await store.listNodes()).length, 2)

        await time.set(start + deadNodesKeptMs + 1)
        await store.beatNode({ ...beat, id: 'n2' })
        assert.deepEqual(await alive(store), ['n2'])
        assert.equal((await store.listNodes()).length, 1)
      }),
    )
  })
}

async function alive(store: NodeStore): Promise<string[]> {
  return (await store.listNodes()).filter(({ live }) => live).map(({ id }) => id)
}
