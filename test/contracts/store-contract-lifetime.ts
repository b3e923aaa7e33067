// Contract: opening and closing a store as a whole.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { RunStore } from '../../src/stores/run-store.ts'
import type { StoreLifetime } from '../../src/stores/store.ts'
import type { OpenStore } from './open-store.ts'
import { claimedRun, delta, deltas, seqs, withStore, write } from './store-fixtures.ts'

export function lifetimeContract(open: OpenStore<StoreLifetime & RunStore>): void {
  const opened = withStore(open)

  describe('a store', () => {
    test(
      'that is open and writable says so; a closed one refuses everything',
      opened(async ({ store }) => {
        await store.check()
        const run = await claimedRun(store, 'r')
        const last = store.append(write(run, 1, { events: [delta(2)] }))
        await store.close()
        await store.close()

        await last
        await assert.rejects(store.check(), { code: 'store_unavailable' })
        await assert.rejects(store.readRun('r'), { code: 'store_unavailable' })
        await assert.rejects(store.append(write(run, 2, { events: [delta(3)] })), { code: 'store_unavailable' })
      }),
    )

    test(
      'writes what was asked for before it was closed',
      opened(async ({ store, reopen }) => {
        const run = await claimedRun(store, 'r')
        const appends = Array.from({ length: 50 }, (_, index) =>
          store.append(write(run, index + 1, { events: [delta(index + 2)] })),
        )

        const again = await reopen()

        await Promise.all(appends)
        assert.deepEqual(
          await seqs(again, 'r'),
          deltas(1, 51).map((event) => event.seq),
        )
      }),
    )
  })
}
