// Contract: interactions are decided once, and found again.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Decision, InteractionFilter, InteractionStore } from '../../src/stores/interaction-store.ts'
import type { RunStore } from '../../src/stores/run-store.ts'
import type { OpenStore } from './open-store.ts'
import { claimedRun, claimNow, interaction, owner, start, withStore, write } from './store-fixtures.ts'

export function interactionContract(open: OpenStore<InteractionStore & RunStore>): void {
  const opened = withStore(open)
  const confirm = (changes: Partial<Decision> = {}): Decision => ({
    status: 'confirmed',
    by: owner,
    at: start + 10,
    ...changes,
  })

  async function parked(store: RunStore, ...rows: Parameters<typeof interaction>[2][]): Promise<void> {
    const run = await claimedRun(store, 'r')
    const newInteractions = rows.map((changes, index) =>
      interaction(`i${index + 1}`, 'r', { number: index + 1, ...changes }),
    )
    await store.append(write(run, 1, { newInteractions, run: { status: 'waiting_user', release: true } }))
  }

  describe('decide', () => {
    test(
      'decides a pending interaction, keeps what came with it, and wakes its run',
      opened(async ({ store, time, reopen }) => {
        await parked(store, {})

        const outcome = await store.decide('i1', confirm({ response: { to: 'carol' }, reason: 'typo' }))

        const expected = interaction('i1', 'r', {
          status: 'confirmed',
          response: { to: 'carol' },
          reason: 'typo',
          decidedBy: owner,
          decidedAt: start + 10,
          updatedAt: start + 10,
        })
        assert.deepEqual(outcome, { decided: true, row: expected })
        // At once, also by a clock that is set back afterwards.
        await time.set(start - 10)
        assert.equal(await store.msUntilWake('node-b'), 0)
        const again = await reopen()
        assert.deepEqual(await again.readInteraction('i1'), expected)
        const [claimed] = await again.claim({ ...claimNow, limit: 1 })
        assert.equal(claimed?.id, 'r')
      }),
    )

    test(
      'by two people at once lets one win, and both see the same row',
      opened(async ({ store }) => {
        await parked(store, {})

        const outcomes = await Promise.all([
          store.decide('i1', confirm({ by: 'alice' })),
          store.decide('i1', confirm({ status: 'rejected', by: 'bob' })),
          store.decide('i1', confirm({ by: 'carol' })),
        ])

        assert.equal(outcomes.filter((outcome) => outcome?.decided).length, 1)
        assert.equal(new Set(outcomes.map((outcome) => outcome?.row.decidedBy)).size, 1)
      }),
    )

    test(
      'after the deadline is refused for people and open to the deadline itself',
      opened(async ({ store }) => {
        await parked(
          store,
          { deadlineAt: start + 10, atDeadline: 'expire' },
          { deadlineAt: start + 10 },
          { deadlineAt: start + 11 },
        )

        const late = await store.decide('i1', confirm())
        const expired = await store.decide('i1', confirm({ status: 'expired', by: 'system' }))
        const automatic = await store.decide('i2', confirm({ status: 'auto_decided', by: 'system' }))
        const inTime = await store.decide('i3', confirm({ status: 'replied', response: 'yes' }))

        assert.deepEqual([late?.decided, late?.row.status], [false, 'pending'])
        assert.deepEqual([expired?.decided, expired?.row.status], [true, 'expired'])
        assert.deepEqual([automatic?.decided, automatic?.row.status], [true, 'auto_decided'])
        assert.deepEqual([inTime?.decided, inTime?.row.response], [true, 'yes'])
      }),
    )

    test(
      'of a closed interaction or after a late try wakes nobody',
      opened(async ({ store }) => {
        await parked(store, { status: 'closed' }, { deadlineAt: start })

        assert.equal((await store.decide('i1', confirm()))?.decided, false)
        assert.equal((await store.decide('i2', confirm()))?.decided, false)
        assert.equal(await store.decide('nobody', confirm()), undefined)
        assert.equal(await store.msUntilWake('node-b'), null)
      }),
    )
  })

  describe('interactions', () => {
    test(
      'are read back whole, also those with null and nested input',
      opened(async ({ store }) => {
        const rows = [
          { input: null, outcome: 'unknown' as const },
          {
            kind: 'question' as const,
            callId: null,
            toolName: null,
            input: { deep: [1, { x: null }] },
            deadlineAt: start + 1,
            atDeadline: 'auto_decide' as const,
          },
        ]
        await parked(store, ...rows)

        assert.deepEqual(
          await store.interactionsOf('r'),
          rows.map((row, index) => interaction(`i${index + 1}`, 'r', { number: index + 1, ...row })),
        )
      }),
    )

    test(
      'are listed newest first, for their owner only, and filtered',
      opened(async ({ store }) => {
        await parked(store, {}, { kind: 'question' }, { owner: 'bob' }, { status: 'rejected', conversationId: 'c' })
        const list = async (filter: Partial<InteractionFilter> = {}) =>
          (await store.listInteractions({ owner, limit: 10, ...filter })).rows.map((row) => row.id)

        assert.deepEqual(await list(), ['i4', 'i2', 'i1'])
        assert.deepEqual(await list({ limit: 1 }), ['i4'])
        assert.deepEqual(await list({ before: 'i4' }), ['i2', 'i1'])
        assert.deepEqual(await list({ status: ['pending'] }), ['i2', 'i1'])
        assert.deepEqual(await list({ kind: 'question' }), ['i2'])
        assert.deepEqual(await list({ conversationId: 'c' }), ['i4'])
        assert.deepEqual(await list({ runId: 'nobody' }), [])
        assert.deepEqual(await list({ owner: 'bob' }), ['i3'])
      }),
    )

    test(
      'are filtered before they are counted, so that pages hold what was asked for and reach everything',
      opened(async ({ store }) => {
        const error = { code: 'tool_failed', message: 'no' }
        const rows = Array.from({ length: 12 }, (_, index) => ({
          status: 'confirmed' as const,
          ...(index % 3 === 0 ? { error } : {}),
        }))
        await parked(store, ...rows)
        const pages = async (failed: boolean) => {
          const found: string[][] = []
          for (let before: string | undefined; ;) {
            const { rows: page } = await store.listInteractions({
              owner,
              status: ['confirmed'],
              failed,
              limit: 2,
              ...(before === undefined ? {} : { before }),
            })
            if (page.length === 0) return found
            found.push(page.map((row) => row.id))
            before = page.at(-1)?.id
          }
        }

        assert.deepEqual(await pages(true), [
          ['i10', 'i7'],
          ['i4', 'i1'],
        ])
        assert.deepEqual(await pages(false), [
          ['i12', 'i11'],
          ['i9', 'i8'],
          ['i6', 'i5'],
          ['i3', 'i2'],
        ])
      }),
    )
  })

  describe('the key of a reply', () => {
    test(
      'is stored with the decision that it came with, and with no other',
      opened(async ({ store, reopen }) => {
        const run = await claimedRun(store, 'r')
        await store.append(
          write(run, 1, { newInteractions: [interaction('i1', 'r')], run: { status: 'waiting_user', release: true } }),
        )
        const decide = (key: string) =>
          store.decide('i1', {
            status: 'replied',
            by: owner,
            at: start,
            response: key,
            reply: { key, fingerprint: `print of ${key}` },
          })

        await decide('first')
        const second = await decide('second')

        assert.equal(second?.decided, false)
        const row = await (await reopen()).readInteraction('i1')
        assert.deepEqual([row?.response, row?.reply], ['first', { key: 'first', fingerprint: 'print of first' }])
      }),
    )
  })
}
