// Contract: the sums of token counts and cost.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { addUsage, noUsage, usageOfStep, type UsageTotals } from '../../src/journal/usage.ts'
import type { ConversationStore } from '../../src/stores/conversation-store.ts'
import type { RunRow, RunStore } from '../../src/stores/run-store.ts'
import { otherModels, type StepUsage, usagePairsMax, type UsageStore } from '../../src/stores/usage-store.ts'
import type { OpenStore } from './open-store.ts'
import {
  beforeAndAfter,
  claimedRun,
  claimNow,
  delta,
  deltas,
  endRun,
  farAway,
  inConversation,
  owner,
  withStore,
  write,
} from './store-fixtures.ts'

type Opened = RunStore & ConversationStore & UsageStore

const priced = usageOfStep({
  usage: { inputTokens: 100, cachedTokens: 60, cacheWriteTokens: 7, outputTokens: 20, reasoningTokens: 5 },
  costMicroUsd: 31,
})
const unpriced = usageOfStep({ usage: { inputTokens: 10, outputTokens: 2 } })
const free = usageOfStep({ usage: { inputTokens: 1, outputTokens: 1 }, costMicroUsd: 0 })

function step(changes: Partial<StepUsage> = {}): StepUsage {
  return {
    owner,
    day: '2026-11-16',
    agentId: 'helper',
    model: 'a/x',
    conversationId: null,
    totals: priced,
    ...changes,
  }
}

const sumOf = (...all: UsageTotals[]) => all.reduce(addUsage, noUsage)

export function usageContract(open: OpenStore<Opened>): void {
  const opened = withStore(open)
  const period = { owner, from: '2026-11-01', to: '2026-11-30' }
  const keys = (rows: { key: string }[]) => rows.map(({ key }) => key)

  /** Appends the steps to a run of their own, one event for each. */
  async function use(store: RunStore, id: string, ...usage: StepUsage[]): Promise<RunRow> {
    const run = await claimedRun(store, id)
    await store.append(write(run, 1, { events: deltas(2, usage.length), usage, durable: true }))
    return run
  }

  describe('usage', () => {
    test(
      'is written with its events or not at all, and added up for each user, agent, model and day',
      opened(async ({ store, reopen }) => {
        const run = await claimedRun(store, 'r')
        await assert.rejects(store.append(write(run, 9, { usage: [step()] })), { code: 'run_fenced' })
        assert.deepEqual(await store.sumUsage(period), noUsage)
        await use(
          store,
          's',
          step(),
          step({ totals: unpriced }),
          step({ model: 'b/y', totals: unpriced }),
          step({ agentId: 'other', day: '2026-11-17', totals: free }),
          step({ owner: 'bob' }),
        )

        for await (const from of beforeAndAfter(store, reopen)) {
          const groups = async (groupBy: 'user' | 'agent' | 'model' | 'day') =>
            (await from.listUsage({ ...period, groupBy, limit: 9 })).rows.map(({ key, totals }) => [key, totals])
          assert.deepEqual(await groups('user'), [[owner, sumOf(priced, unpriced, unpriced, free)]])
          assert.deepEqual(await groups('agent'), [
            ['helper', sumOf(priced, unpriced, unpriced)],
            ['other', free],
          ])
          assert.deepEqual(await groups('model'), [
            ['a/x', sumOf(priced, unpriced, free)],
            ['b/y', unpriced],
          ])
          assert.deepEqual(await groups('day'), [
            ['2026-11-16', sumOf(priced, unpriced, unpriced)],
            ['2026-11-17', free],
          ])
          assert.deepEqual(await from.sumUsage(period), sumOf(priced, unpriced, unpriced, free))
          assert.deepEqual(await from.sumUsageOfDay('2026-11-16'), sumOf(priced, unpriced, unpriced, priced))
          assert.deepEqual(await from.sumUsageOfDay('2026-11-15'), noUsage)
        }
      }),
    )

    test(
      'with an unknown cost is null and not 0; a known cost of 0 is 0',
      opened(async ({ store }) => {
        await use(store, 'r', step({ totals: unpriced }), step({ model: 'b/y', totals: free }))

        const { rows } = await store.listUsage({ ...period, groupBy: 'model', limit: 9 })

        assert.deepEqual(
          rows.map(({ totals }) => [totals.costMicroUsd, totals.unpricedSteps]),
          [
            [null, 1],
            [0, 0],
          ],
        )
      }),
    )

    test(
      'is listed in pages, within its days',
      opened(async ({ store }) => {
        const days = ['2026-10-31', '2026-11-01', '2026-11-02', '2026-11-30', '2026-12-01']
        await use(store, 'r', ...days.map((day) => step({ day })))
        const page = (after?: string) =>
          store.listUsage({ ...period, groupBy: 'day', limit: 2, ...(after === undefined ? {} : { after }) })

        const first = await page()
        const second = await page('2026-11-02')

        assert.deepEqual([keys(first.rows), first.more], [['2026-11-01', '2026-11-02'], true])
        assert.deepEqual([keys(second.rows), second.more], [['2026-11-30'], false])
      }),
    )

    test(
      'of a user stays when runs and conversations are removed; that of a conversation goes with it',
      opened(async ({ store }) => {
        const { run } = await store.accept(inConversation('r', 'c', 'absent', { claim: claimNow }))
        const usage = [step({ conversationId: 'c' }), step({ conversationId: 'c', totals: unpriced })]
        await store.append(write(run, 1, { events: deltas(2, 2), usage, run: { usage: sumOf(priced, unpriced) } }))
        assert.deepEqual(await store.usageOfConversation('c'), sumOf(priced, unpriced))
        assert.deepEqual((await store.readRun('r'))?.usage, sumOf(priced, unpriced))
        assert.equal(await store.usageOfConversation('d'), undefined)
        await endRun(store, run, 3)

        await store.expireRuns(farAway, 9)
        assert.deepEqual(await store.usageOfConversation('c'), sumOf(priced, unpriced))
        await store.deleteConversation('c')

        assert.equal(await store.usageOfConversation('c'), undefined)
        assert.deepEqual(await store.sumUsage(period), sumOf(priced, unpriced))
      }),
    )

    test(
      'of too many models on one day is counted together, so that the rows of a user are bounded',
      opened(async ({ store }) => {
        const run = await claimedRun(store, 'r')
        const models = Array.from({ length: usagePairsMax + 5 }, (_, index) => `a/m${String(index).padStart(4, '0')}`)
        for (const [index, model] of models.entries()) {
          await store.append(write(run, index + 1, { events: [delta(index + 2)], usage: [step({ model })] }))
        }
        const last = models.length + 1
        await store.append(write(run, last, { events: [delta(last + 1)], usage: [step({ model: 'a/m0000' })] }))

        const { rows } = await store.listUsage({ ...period, groupBy: 'model', limit: 500 })

        assert.equal(rows.length, usagePairsMax + 1)
        assert.equal(rows.find(({ key }) => key === otherModels)?.totals.steps, 5)
        assert.equal(rows.find(({ key }) => key === 'a/m0000')?.totals.steps, 2)
      }),
    )
  })
}
