// Contract: duties, which one node at a time holds, and what the retention asks of a store.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { RunStore } from '../../src/stores/run-store.ts'
import type { UpkeepStore } from '../../src/stores/upkeep-store.ts'
import type { OpenStore } from './open-store.ts'
import { claimedRun, endRun, seqs, start, withStore } from './store-fixtures.ts'

export function retentionContract(open: OpenStore<UpkeepStore & RunStore>): void {
  const opened = withStore(open)

  describe('a duty', () => {
    test(
      'is held by one node until its time has passed; the holder may extend it',
      opened(async ({ store, time }) => {
        assert.equal(await store.takeDuty('sweep', 'a', 1000), true)
        assert.equal(await store.takeDuty('sweep', 'b', 1000), false)
        assert.equal(await store.takeDuty('other', 'b', 1000), true)
        await time.set(start + 600)
        assert.equal(await store.takeDuty('sweep', 'a', 1000), true)
        await time.set(start + 1599)
        assert.equal(await store.takeDuty('sweep', 'b', 1000), false)
        await time.set(start + 1600)
        assert.equal(await store.takeDuty('sweep', 'b', 1000), true)
        assert.equal(await store.takeDuty('sweep', 'a', 1000), false)
      }),
    )

    test(
      'goes to exactly one of many nodes that ask at the same time',
      opened(async ({ store }) => {
        const nodes = ['a', 'b', 'c', 'd', 'e', 'f']
        const answers = await Promise.all(nodes.map((node) => store.takeDuty('sweep', node, 1000)))
        assert.equal(answers.filter(Boolean).length, 1)
      }),
    )
  })

  describe('tidying the journal', () => {
    test(
      'changes nothing that can be read, also for runs that are removed and those that are kept',
      opened(async ({ store }) => {
        assert.equal(await store.oldestEnd(), null)
        for (const [index, id] of ['old', 'young'].entries())
          await endRun(store, await claimedRun(store, id), 1, start + index)
        assert.equal(await store.oldestEnd(), start)
        assert.equal(await store.expireRuns(start + 1, 10), 1)

        for (let call = 0; call < 2; call += 1) await store.tidyJournal(start + 1)

        assert.deepEqual([await seqs(store, 'old'), await seqs(store, 'young')], [[], [1]])
        assert.equal(await store.oldestEnd(), start + 1)
        // The same id again begins with an empty journal.
        await claimedRun(store, 'old')
        assert.deepEqual(await seqs(store, 'old'), [1])
      }),
    )
  })
}
