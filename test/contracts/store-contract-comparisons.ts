// Contract: comparisons come with their runs, are settled once, and take a vote only
// from a caller who saw the votes before it.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ComparisonFilter, ComparisonRow, ComparisonStore } from '../../src/stores/comparison-store.ts'
import type { ConversationStore } from '../../src/stores/conversation-store.ts'
import type { MessageStore } from '../../src/stores/message-store.ts'
import type { RunStore } from '../../src/stores/run-store.ts'
import type { OpenStore } from './open-store.ts'
import { beforeAndAfter, claimNow, endRun, inConversation, message, owner, start, withStore } from './store-fixtures.ts'

function comparison(id: string, changes: Partial<ComparisonRow> = {}): ComparisonRow {
  return {
    id,
    conversationId: 'c',
    owner,
    userMessageId: 'question',
    runA: 'ra',
    runB: 'rb',
    messageA: null,
    messageB: null,
    configA: 'calm',
    configB: 'wild',
    firstSideIsConfigA: true,
    offered: true,
    state: 'pending',
    preference: null,
    preferenceAt: null,
    revisions: [],
    createdAt: start,
    ...changes,
  }
}

export function comparisonContract(
  open: OpenStore<ComparisonStore & RunStore & ConversationStore & MessageStore>,
): void {
  const opened = withStore(open)

  const arms = () => [
    inConversation('ra', 'c', 'absent', { messages: [message('question', 'c')], claim: claimNow }),
    inConversation('rb', 'c', 'present', { joinTurnOf: 'ra', claim: claimNow }),
  ]

  /** A conversation with two answers, the first of them in force. */
  async function answered(
    store: ComparisonStore & ConversationStore & RunStore,
    changes: Partial<ComparisonRow> = {},
  ): Promise<void> {
    await store.createConversation({ id: 'c', owner, title: null, createdAt: start, updatedAt: start })
    const messages = [
      message('question', 'c'),
      message('ma', 'c', { role: 'assistant' }),
      message('mb', 'c', { role: 'assistant', state: 'superseded' }),
    ]
    const { run } = await store.accept(inConversation('r', 'c', 'present', { messages, claim: claimNow }))
    await endRun(store, run, 1)
    await store.createComparison(comparison('x', { state: 'ready', messageA: 'ma', messageB: 'mb', ...changes }), [])
  }

  const active = async (store: MessageStore) =>
    (await store.listMessages('c', { limit: 10 })).rows.map((row) => row.id).toSorted()

  describe('comparisons', () => {
    test(
      'that were only noticed are settled but not listed, and go when the same runs are really compared',
      opened(async ({ store, reopen }) => {
        await store.acceptAll(arms(), { comparison: comparison('noticed', { offered: false }) })
        assert.deepEqual(await store.listComparisons({ owner, limit: 9 }), [])
        assert.equal((await store.findComparisonByRun('rb'))?.offered, false)
        assert.deepEqual(
          (await store.pendingComparisons(9)).map(({ id }) => id),
          ['noticed'],
        )
        assert.equal(
          await store.settleComparison('noticed', {
            state: 'ready',
            messageA: 'ma',
            messageB: 'mb',
            messageStates: [],
          }),
          true,
        )

        // The client may call the sides the other way round.
        const real = comparison('real', { runA: 'rb', runB: 'ra', messageA: 'mb', messageB: 'ma', state: 'ready' })
        assert.equal((await store.createComparison(real, [])).id, 'real')

        for await (const from of beforeAndAfter(store, reopen)) {
          assert.equal(await from.readComparison('noticed'), undefined)
          assert.equal((await from.findComparisonByRun('ra'))?.id, 'real')
          assert.deepEqual(
            (await from.listComparisons({ owner, limit: 9 })).map(({ id }) => id),
            ['real'],
          )
        }
      }),
    )

    test(
      'come with their two runs, and are there after a restart',
      opened(async ({ store, reopen }) => {
        const results = await store.acceptAll(arms(), { comparison: comparison('x') })

        assert.deepEqual(
          results.map((result) => [result.outcome, result.run.id]),
          [
            ['accepted', 'ra'],
            ['accepted', 'rb'],
          ],
        )
        for await (const now of beforeAndAfter(store, reopen)) {
          assert.deepEqual(await now.readComparison('x'), comparison('x'))
          assert.equal((await now.findComparisonByRun('ra'))?.id, 'x')
          assert.equal((await now.findComparisonByRun('rb'))?.id, 'x')
          assert.equal(await now.findComparisonByRun('other'), undefined)
          assert.equal(await now.readComparison('other'), undefined)
          assert.deepEqual(
            (await now.pendingComparisons(10)).map((row) => row.id),
            ['x'],
          )
        }
      }),
    )

    test(
      'do not come into being when one of the runs is refused',
      opened(async ({ store }) => {
        const [first, second] = arms()
        const refused = { ...second, expectBehind: 'somebody' } as typeof first & {}

        await assert.rejects(store.acceptAll([first as typeof refused, refused], { comparison: comparison('x') }), {
          code: 'accept_stale',
        })

        assert.equal(await store.readComparison('x'), undefined)
        assert.equal(await store.readRun('ra'), undefined)
        assert.equal(await store.readConversation('c'), undefined)
      }),
    )

    test(
      'of a repeated request are those of the first',
      opened(async ({ store }) => {
        const keyed = () =>
          arms().map((input, index) => ({
            ...input,
            idempotency: { key: 'k', route: `arm ${index}`, fingerprint: 'f' },
          }))
        await store.acceptAll(keyed(), { comparison: comparison('x') })

        const again = await store.acceptAll(keyed(), { comparison: comparison('y') })

        assert.deepEqual(
          again.map((result) => result.outcome),
          ['existing', 'existing'],
        )
        assert.equal(await store.readComparison('y'), undefined)
      }),
    )

    test(
      'are settled once, together with what becomes the history',
      opened(async ({ store, reopen }) => {
        await answered(store, { state: 'pending', messageA: null, messageB: null })
        const messageStates = [
          { id: 'ma', state: 'superseded' as const },
          { id: 'mb', state: 'active' as const },
        ]

        assert.equal(
          await store.settleComparison('x', { state: 'failed', messageA: null, messageB: 'mb', messageStates }),
          true,
        )
        assert.equal(
          await store.settleComparison('x', {
            state: 'ready',
            messageA: 'ma',
            messageB: 'mb',
            messageStates: [{ id: 'ma', state: 'active' }],
          }),
          false,
        )
        assert.equal(
          await store.settleComparison('other', { state: 'ready', messageA: null, messageB: null, messageStates: [] }),
          false,
        )

        for await (const now of beforeAndAfter(store, reopen)) {
          const row = await now.readComparison('x')
          assert.deepEqual([row?.state, row?.messageA, row?.messageB], ['failed', null, 'mb'])
          assert.deepEqual(await active(now), ['mb', 'question'])
          assert.deepEqual(await now.pendingComparisons(10), [])
        }
      }),
    )

    test(
      'take one vote, and another only from whoever saw the first',
      opened(async ({ store, reopen }) => {
        await answered(store)
        const vote = (preference: 'a' | 'b', expectVotes: number, at: number) =>
          store.voteComparison('x', {
            preference,
            at,
            expectVotes,
            messageStates: [
              { id: 'ma', state: preference === 'a' ? 'active' : 'superseded' },
              { id: 'mb', state: preference === 'b' ? 'active' : 'superseded' },
            ],
          })

        // Either may come first: on PostgreSQL they use two connections.
        const votes = await Promise.all([vote('a', 0, start + 1), vote('b', 0, start + 1)])
        const [first, second] = votes[0]?.voted === true ? (['a', 'b'] as const) : (['b', 'a'] as const)
        assert.deepEqual(
          votes.map((result) => [result?.voted, result?.row.preference]),
          [
            [first === 'a', first],
            [first === 'b', first],
          ],
        )
        assert.deepEqual(await active(store), [`m${first}`, 'question'])

        const revised = await vote(second, 1, start + 3)
        assert.equal(revised?.voted, true)
        assert.equal((await vote(first, 1, start + 4))?.voted, false)
        for await (const now of beforeAndAfter(store, reopen)) {
          const row = await now.readComparison('x')
          assert.deepEqual(
            [row?.preference, row?.preferenceAt, row?.revisions],
            [second, start + 3, [{ preference: first, at: start + 1 }]],
          )
          assert.deepEqual(await active(now), [`m${second}`, 'question'])
        }
      }),
    )

    test(
      'take no vote unless they are ready',
      opened(async ({ store }) => {
        await answered(store, { state: 'failed' })

        const result = await store.voteComparison('x', {
          preference: 'b',
          at: start,
          expectVotes: 0,
          messageStates: [{ id: 'ma', state: 'superseded' }],
        })

        assert.equal(result?.voted, false)
        assert.deepEqual(await active(store), ['ma', 'question'])
        assert.equal(
          await store.voteComparison('other', { preference: 'a', at: start, expectVotes: 0, messageStates: [] }),
          undefined,
        )
      }),
    )

    test(
      'on the same two answers are one, whichever is called a',
      opened(async ({ store }) => {
        await answered(store)

        const again = await store.createComparison(comparison('y', { messageA: 'mb', messageB: 'ma' }), [
          { id: 'ma', state: 'superseded' },
        ])

        assert.equal(again.id, 'x')
        assert.equal(await store.readComparison('y'), undefined)
        assert.deepEqual(await active(store), ['ma', 'question'])
      }),
    )

    test(
      'are listed newest first, for their owner, by conversation, state and whether somebody voted',
      opened(async ({ store }) => {
        await answered(store)
        await store.createComparison(comparison('y', { messageA: 'q', messageB: 'r', state: 'failed' }), [])
        await store.createComparison(
          comparison('z', { messageA: 's', messageB: 't', state: 'ready', preference: 'tie', preferenceAt: start }),
          [],
        )

        const ids = async (filter: Partial<ComparisonFilter>) =>
          (await store.listComparisons({ owner, limit: 10, ...filter })).map((row) => row.id)
        assert.deepEqual(await ids({}), ['z', 'y', 'x'])
        assert.deepEqual(await ids({ limit: 1 }), ['z'])
        assert.deepEqual(await ids({ before: 'z' }), ['y', 'x'])
        assert.deepEqual(await ids({ before: 'unknown' }), [])
        assert.deepEqual(await ids({ state: ['ready'], unvoted: true }), ['x'])
        assert.deepEqual(await ids({ conversationId: 'c', unvoted: true }), ['y', 'x'])
        assert.deepEqual(await ids({ conversationId: 'other' }), [])
        assert.deepEqual(await ids({ owner: 'bob' }), [])
      }),
    )

    test(
      'are counted by configurations, sides and preference, for one owner or for all',
      opened(async ({ store }) => {
        await answered(store, { preference: 'a', preferenceAt: start })
        const more: Partial<ComparisonRow>[] = [
          { preference: 'a' },
          { preference: 'a', firstSideIsConfigA: false },
          { preference: 'both_bad', owner: 'bob' },
          { preference: null },
        ]
        for (const [index, changes] of more.entries()) {
          await store.createComparison(
            comparison(`m${index}`, { messageA: `a${index}`, messageB: `b${index}`, state: 'ready', ...changes }),
            [],
          )
        }

        const counts = async (of: string | null) =>
          (await store.countVotes(of)).map((row) => [
            row.configA,
            row.configB,
            row.firstSideIsConfigA,
            row.preference,
            row.count,
          ])
        assert.deepEqual(await counts(owner), [
          ['calm', 'wild', false, 'a', 1],
          ['calm', 'wild', true, 'a', 2],
        ])
        assert.deepEqual(await counts(null), [
          ['calm', 'wild', false, 'a', 1],
          ['calm', 'wild', true, 'a', 2],
          ['calm', 'wild', true, 'both_bad', 1],
        ])
        assert.deepEqual(await counts('nobody'), [])
      }),
    )

    test(
      'go with their conversation, and outlive their runs',
      opened(async ({ store }) => {
        await answered(store)
        await store.expireRuns(start + 1_000_000, 10)
        assert.equal(await store.readRun('r'), undefined)
        assert.equal((await store.readComparison('x'))?.id, 'x')

        await store.deleteConversation('c')

        assert.equal(await store.readComparison('x'), undefined)
        assert.deepEqual(await store.listComparisons({ owner, limit: 10 }), [])
      }),
    )
  })
}
