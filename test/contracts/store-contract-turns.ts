// Contract: turns that several runs share, and accepts that belong together.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ConversationStore } from '../../src/stores/conversation-store.ts'
import type { MessageStore } from '../../src/stores/message-store.ts'
import type { RunStore } from '../../src/stores/run-store.ts'
import type { OpenStore } from './open-store.ts'
import {
  beforeAndAfter,
  claimNow,
  delta,
  endRun,
  inConversation,
  message,
  seqs,
  withStore,
  write,
} from './store-fixtures.ts'

const ids = (rows: { id: string }[]) => rows.map((row) => row.id)

/** Two runs in one turn of a new conversation, both at work. */
const bothArms = (store: RunStore) =>
  store.acceptAll([
    inConversation('a', 'c', 'absent', { claim: claimNow, messages: [message('question', 'c', { runId: 'a' })] }),
    inConversation('b', 'c', 'present', { claim: claimNow, joinTurnOf: 'a' }),
  ])

const claim = (store: RunStore) => store.claim({ ...claimNow, limit: 10 })

export function turnContract(open: OpenStore<RunStore & ConversationStore & MessageStore>): void {
  const opened = withStore(open)

  describe('a turn of two runs', () => {
    test(
      'begins for both at once: the second does not wait for the first',
      opened(async ({ store }) => {
        const [a, b] = await bothArms(store)

        assert.deepEqual([a?.outcome, b?.outcome], ['accepted', 'accepted'])
        assert.deepEqual([a?.run.leaseOwner, b?.run.leaseOwner], ['node-a', 'node-a'])
        assert.deepEqual(ids(await store.openRuns('c')), ['a', 'b'])
      }),
    )

    test(
      'is claimed for both where they were not taken at once, also after reopening',
      opened(async ({ store, reopen }) => {
        await store.acceptAll([
          inConversation('a', 'c', 'absent'),
          inConversation('b', 'c', 'present', { joinTurnOf: 'a' }),
        ])

        assert.deepEqual(ids(await claim(await reopen())), ['a', 'b'])
      }),
    )

    test(
      'holds the conversation until both have ended',
      opened(async ({ store }) => {
        const [a, b] = await bothArms(store)
        await store.accept(inConversation('later', 'c', 'present', { expectBehind: 'b' }))

        assert.deepEqual(await claim(store), [])
        await endRun(store, b!.run, 1)
        assert.deepEqual(await claim(store), [])
        await endRun(store, a!.run, 1)
        assert.deepEqual(ids(await claim(store)), ['later'])
      }),
    )

    test(
      'goes before runs that were accepted between its two',
      opened(async ({ store }) => {
        const { run: a } = await store.accept(inConversation('a', 'c', 'absent', { claim: claimNow }))
        await store.accept(inConversation('later', 'c', 'present', { expectBehind: 'a' }))

        const b = await store.accept(inConversation('b', 'c', 'present', { claim: claimNow, joinTurnOf: 'a' }))

        assert.equal(b.run.leaseOwner, 'node-a')
        await endRun(store, a, 1)
        assert.deepEqual(await claim(store), [])
      }),
    )

    test(
      'waits as a whole for what stands before it',
      opened(async ({ store }) => {
        const { run } = await store.accept(inConversation('first', 'c', 'absent', { claim: claimNow }))
        await store.acceptAll([
          inConversation('a', 'c', 'present', { claim: claimNow, expectBehind: 'first' }),
          inConversation('b', 'c', 'present', { claim: claimNow, expectBehind: 'first', joinTurnOf: 'a' }),
        ])

        assert.deepEqual(await claim(store), [])
        await endRun(store, run, 1)
        assert.deepEqual(ids(await claim(store)), ['a', 'b'])
      }),
    )

    test(
      'is told the same history in both runs, and nothing of each other',
      opened(async ({ store, reopen }) => {
        const { run } = await store.accept(
          inConversation('first', 'c', 'absent', {
            claim: claimNow,
            messages: [message('old', 'c', { runId: 'first' })],
          }),
        )
        await endRun(store, run, 1)
        const [a, b] = await store.acceptAll([
          inConversation('a', 'c', 'present', {
            claim: claimNow,
            messages: [message('question', 'c', { runId: 'a' })],
          }),
          inConversation('b', 'c', 'present', { claim: claimNow, joinTurnOf: 'a' }),
        ])
        for (const arm of [a!.run, b!.run]) {
          const answer = message(`answer of ${arm.id}`, 'c', {
            runId: arm.id,
            role: 'assistant',
            state: arm.id === 'b' ? 'superseded' : 'active',
          })
          await store.append(write(arm, 1, { messages: [answer] }))
          await endRun(store, arm, 1)
        }
        await store.accept(inConversation('later', 'c', 'present'))

        for await (const found of beforeAndAfter(store, reopen)) {
          for (const arm of ['a', 'b']) assert.deepEqual(ids(await found.historyBefore('c', arm, 100)), ['old'])
          assert.deepEqual(ids(await found.historyBefore('c', 'later', 100)), ['old', 'question', 'answer of a'])
        }
      }),
    )

    test(
      'cannot be joined when its run has ended, is another user’s, or is in another conversation',
      opened(async ({ store }) => {
        const { run } = await store.accept(inConversation('ended', 'c', 'absent', { claim: claimNow }))
        await endRun(store, run, 1)
        await store.accept(inConversation('elsewhere', 'd', 'absent', { claim: claimNow }))

        for (const joinTurnOf of ['ended', 'elsewhere', 'nobody']) {
          await assert.rejects(
            store.accept(inConversation('b', 'c', 'present', { joinTurnOf })),
            { code: 'accept_stale' },
            joinTurnOf,
          )
        }
      }),
    )
  })

  describe('accepts that belong together', () => {
    test(
      'leave nothing when one of them is refused',
      opened(async ({ store, reopen }) => {
        const refused = store.acceptAll([
          inConversation('a', 'c', 'absent', {
            claim: claimNow,
            messages: [message('question', 'c')],
            events: [delta(1), delta(2)],
          }),
          inConversation('b', 'c', 'present', { claim: claimNow, joinTurnOf: 'a', expectBehind: 'somebody' }),
        ])

        await assert.rejects(refused, { code: 'accept_stale' })
        for await (const found of beforeAndAfter(store, reopen)) {
          assert.equal(await found.readRun('a'), undefined)
          assert.equal(await found.readConversation('c'), undefined)
          assert.equal(await found.readMessage('question'), undefined)
          assert.deepEqual(await seqs(found, 'a'), [])
        }
      }),
    )

    test(
      'have their events, each in its own journal',
      opened(async ({ store, reopen }) => {
        await store.acceptAll([
          inConversation('a', 'c', 'absent', { claim: claimNow, events: [delta(1), delta(2)] }),
          inConversation('b', 'c', 'present', { claim: claimNow, joinTurnOf: 'a', events: [delta(1)] }),
        ])

        for await (const found of beforeAndAfter(store, reopen)) {
          assert.deepEqual([await seqs(found, 'a'), await seqs(found, 'b')], [[1, 2], [1]])
        }
      }),
    )

    test(
      'find both runs again under their keys',
      opened(async ({ store }) => {
        const keyed = (id: string, route: string) => ({ idempotency: { key: 'k', route, fingerprint: 'f' }, run: id })
        const inputs = (suffix: string) => [
          inConversation(`a${suffix}`, `c${suffix}`, 'absent', { idempotency: keyed('a', '#a').idempotency }),
          inConversation(`b${suffix}`, `c${suffix}`, 'present', {
            joinTurnOf: `a${suffix}`,
            idempotency: keyed('b', '#b').idempotency,
          }),
        ]
        await store.acceptAll(inputs(''))

        const again = await store.acceptAll(inputs('2'))

        assert.deepEqual(
          again.map(({ outcome, run }) => [outcome, run.id]),
          [
            ['existing', 'a'],
            ['existing', 'b'],
          ],
        )
      }),
    )
  })
}
