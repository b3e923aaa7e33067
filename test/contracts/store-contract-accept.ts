// Contract: accepting a run, every refusal, and that a refusal changes nothing.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { AcceptInput, RunStore } from '../../src/stores/run-store.ts'
import type { ConversationStore } from '../../src/stores/conversation-store.ts'
import type { MessageStore } from '../../src/stores/message-store.ts'
import type { OpenStore } from './open-store.ts'
import {
  acceptInput,
  beforeAndAfter,
  claimedRun,
  claimNow,
  farAway,
  delta,
  endRun,
  inConversation,
  message,
  owner,
  seqs,
  start,
  withStore,
  write,
} from './store-fixtures.ts'

export function acceptContract(open: OpenStore<RunStore & ConversationStore & MessageStore>): void {
  const opened = withStore(open)

  async function refused(store: RunStore & MessageStore, input: AcceptInput, code: string): Promise<void> {
    const counts = await store.countRuns()
    await assert.rejects(store.accept(input), { code })
    assert.deepEqual(await store.countRuns(), counts)
    assert.equal(await store.readRun(input.run.id), undefined)
    assert.deepEqual((await store.readEvents(input.run.id, 0, 10)).events, [])
    for (const row of input.messages) assert.equal(await store.readMessage(row.id), undefined)
  }

  describe('accept', () => {
    test(
      'that claims the run stores it as running, with the events of its start, which appends and readers continue',
      opened(async ({ store, reopen }) => {
        const at = start + 7
        const begin = { events: [delta(2), delta(3)], at, engine: 'local' }

        const { run } = await store.accept(acceptInput('r', { claim: claimNow, start: begin }))

        assert.deepEqual(
          [run.status, run.startedAt, run.engine, run.lastSeq, run.epoch, run.leaseOwner],
          ['running', at, 'local', 3, 1, claimNow.node],
        )
        assert.deepEqual(await store.readRun('r'), run)
        assert.deepEqual(await seqs(store, 'r'), [1, 2, 3])
        assert.equal((await store.countRuns()).running, 1)
        await store.append(write(run, 3, { events: [delta(4)] }))
        assert.deepEqual(await seqs(store, 'r'), [1, 2, 3, 4])
        const again = await reopen()
        assert.deepEqual([await seqs(again, 'r'), (await again.readRun('r'))?.status], [[1, 2, 3, 4], 'running'])
      }),
    )

    test(
      'that cannot claim the run stores it as queued, without the events of its start',
      opened(async ({ store }) => {
        const begin = { events: [delta(2), delta(3)], at: start, engine: 'local' }
        const first = inConversation('r1', 'c', 'absent', { claim: claimNow, start: begin })
        await store.accept(first)

        const { run } = await store.accept(
          inConversation('r2', 'c', 'present', { expectBehind: 'r1', claim: claimNow, start: begin }),
        )

        assert.deepEqual([run.status, run.startedAt, run.engine, run.lastSeq, run.epoch], ['queued', null, null, 1, 0])
        assert.deepEqual(await seqs(store, 'r2'), [1])
        assert.deepEqual(await store.countRuns(), { queued: 1, running: 1 })
      }),
    )

    test(
      'stores the run, its conversation, its messages and its first events',
      opened(async ({ store, reopen }) => {
        const input = inConversation('r', 'c', 'absent', {
          title: 'Hello',
          name: 's',
          messages: [message('m1', 'c', { runId: 'r' }), message('m2', 'c')],
          events: [delta(1), delta(2)],
        })

        const { outcome, run } = await store.accept(input)

        assert.equal(outcome, 'accepted')
        assert.deepEqual(run, {
          ...input.run,
          skillId: null,
          status: 'queued',
          attempt: 1,
          epoch: 0,
          leaseOwner: null,
          leaseUntil: null,
          wakeAt: null,
          lastSeq: 2,
          engine: null,
          needs: [],
          usage: null,
          cancel: null,
          startedAt: null,
          endedAt: null,
          error: null,
        })
        for await (const from of beforeAndAfter(store, reopen)) {
          assert.deepEqual(await from.readRun('r'), run)
          assert.deepEqual(await seqs(from, 'r'), [1, 2])
          assert.deepEqual(await from.readConversation('c'), {
            id: 'c',
            owner,
            title: 'Hello',
            summary: null,
            contactId: null,
            createdAt: start,
            updatedAt: start,
            lastMessageAt: start,
            archivedAt: null,
          })
          assert.equal((await from.findConversationByName(owner, 's'))?.id, 'c')
          assert.deepEqual(await from.readMessage('m1'), message('m1', 'c', { runId: 'r' }))
        }
      }),
    )

    test(
      'claims the run at once when nothing stands before it, and only then',
      opened(async ({ store }) => {
        const first = await store.accept(inConversation('r1', 'c', 'absent', { claim: claimNow }))
        const second = await store.accept(inConversation('r2', 'c', 'present', { claim: claimNow, expectBehind: 'r1' }))
        const alone = await store.accept(acceptInput('r3', { claim: claimNow }))

        assert.deepEqual([first.run.leaseOwner, first.run.leaseUntil, first.run.epoch], ['node-a', farAway, 1])
        assert.deepEqual([second.run.leaseOwner, second.run.epoch], [null, 0])
        assert.equal(alone.run.epoch, 1)
      }),
    )

    test(
      'with a known idempotency key gives the run that has it, also when everything else would be refused',
      opened(async ({ store, reopen }) => {
        const idempotency = { key: 'k', route: 'post', fingerprint: 'f' }
        const { run } = await store.accept(inConversation('r1', 'c', 'absent', { idempotency }))

        const again = await store.accept(
          inConversation('r2', 'c', 'absent', {
            idempotency,
            queueMax: 0,
            expectBehind: 'nobody',
            messages: [message('m', 'c')],
          }),
        )

        assert.deepEqual(again, { outcome: 'existing', run })
        assert.equal(await store.readRun('r2'), undefined)
        assert.equal(await store.readMessage('m'), undefined)
        assert.deepEqual(await store.findIdempotent(owner, 'post', 'k'), { runId: 'r1', fingerprint: 'f' })
        const later = await (await reopen()).accept(acceptInput('r3', { idempotency }))
        assert.equal(later.run.id, 'r1')
      }),
    )

    test(
      'with a known key of another fingerprint is refused',
      opened(async ({ store }) => {
        await store.accept(acceptInput('r1', { idempotency: { key: 'k', route: 'post', fingerprint: 'f' } }))

        await refused(
          store,
          acceptInput('r2', { idempotency: { key: 'k', route: 'post', fingerprint: 'other' } }),
          'idempotency_key_reused',
        )
      }),
    )

    test(
      'keeps idempotency keys apart by owner and by route',
      opened(async ({ store }) => {
        const key = (route: string) => ({ idempotency: { key: 'k', route, fingerprint: 'f' } })

        const outcomes = [
          await store.accept(acceptInput('r1', key('a'))),
          await store.accept(acceptInput('r2', key('b'))),
          await store.accept(acceptInput('r3', { ...key('a'), runOwner: 'bob' })),
        ]

        assert.deepEqual(
          outcomes.map(({ outcome }) => outcome),
          ['accepted', 'accepted', 'accepted'],
        )
      }),
    )

    test(
      'twenty times at once with one key gives one run',
      opened(async ({ store }) => {
        const idempotency = { key: 'k', route: 'post', fingerprint: 'f' }

        const results = await Promise.all(
          Array.from({ length: 20 }, (_, index) => store.accept(acceptInput(`r${index}`, { idempotency }))),
        )

        assert.equal(new Set(results.map(({ run }) => run.id)).size, 1)
        assert.equal(results.filter(({ outcome }) => outcome === 'accepted').length, 1)
        assert.deepEqual(await store.countRuns(), { queued: 1 })
      }),
    )

    test(
      'is stale when the conversation is not as expected',
      opened(async ({ store }) => {
        await store.createConversation({ id: 'mine', owner, title: null, createdAt: start, updatedAt: start })
        await store.createConversation({ id: 'theirs', owner: 'bob', title: null, createdAt: start, updatedAt: start })

        await refused(
          store,
          inConversation('r', 'mine', 'absent', { messages: [message('m', 'mine')] }),
          'accept_stale',
        )
        await refused(store, inConversation('r', 'theirs', 'absent'), 'accept_stale')
        await refused(store, inConversation('r', 'theirs', 'present'), 'accept_stale')
        await refused(store, inConversation('r', 'nowhere', 'present'), 'accept_stale')

        assert.equal(await store.readConversation('nowhere'), undefined)
      }),
    )

    test(
      'is stale when another run has come or the one before has ended',
      opened(async ({ store }) => {
        const { run } = await store.accept(inConversation('r1', 'c', 'absent', { claim: claimNow }))

        await refused(store, inConversation('r2', 'c', 'present', { expectBehind: null }), 'accept_stale')
        await refused(store, inConversation('r2', 'c', 'present', { expectBehind: 'other' }), 'accept_stale')
        await store.accept(inConversation('r2', 'c', 'present', { expectBehind: 'r1' }))
        await refused(store, inConversation('r3', 'c', 'present', { expectBehind: 'r1' }), 'accept_stale')
        await endRun(store, run, 1)
        await store.accept(inConversation('r3', 'c', 'present', { expectBehind: 'r2' }))
      }),
    )

    test(
      'of two runs at once that both saw an idle conversation lets one in',
      opened(async ({ store }) => {
        await store.createConversation({ id: 'c', owner, title: null, createdAt: start, updatedAt: start })

        const outcomes = await Promise.allSettled(
          ['a', 'b', 'c', 'd'].map((id) => store.accept(inConversation(id, 'c', 'present', { claim: claimNow }))),
        )

        assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1)
        assert.equal((await store.openRuns('c')).length, 1)
      }),
    )

    test(
      'of two first runs under one name at once creates one conversation',
      opened(async ({ store }) => {
        const outcomes = await Promise.allSettled(
          ['c1', 'c2', 'c3'].map((id) => store.accept(inConversation(`r-${id}`, id, 'absent', { name: 's' }))),
        )

        assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1)
        assert.equal((await store.listConversations(owner, { limit: 10 })).rows.length, 1)
      }),
    )

    test(
      'keeps names apart by owner',
      opened(async ({ store }) => {
        await store.accept(inConversation('r1', 'c1', 'absent', { name: 's' }))
        await store.accept(inConversation('r2', 'c2', 'absent', { name: 's', runOwner: 'bob' }))

        assert.equal((await store.findConversationByName(owner, 's'))?.id, 'c1')
        assert.equal((await store.findConversationByName('bob', 's'))?.id, 'c2')
        assert.equal(await store.findConversationByName('carol', 's'), undefined)
      }),
    )

    test(
      'binds a second name only if it means no other conversation of the owner',
      opened(async ({ store }) => {
        await store.accept(inConversation('r1', 'c1', 'absent', { name: 'one', alias: 'both' }))
        await store.accept(inConversation('r2', 'c2', 'absent', { name: 'two', alias: 'both' }))

        const named = async (name: string) => (await store.findConversationByName(owner, name))?.id
        assert.deepEqual([await named('one'), await named('two'), await named('both')], ['c1', 'c2', 'c1'])
      }),
    )

    test(
      'requests the cancel of earlier runs of the conversation with the accept, or not at all',
      opened(async ({ store }) => {
        const cancelEarlier = { by: owner, reason: 'newer', at: start }
        await store.accept(inConversation('r1', 'c', 'absent', { claim: claimNow }))
        await store.accept(inConversation('r2', 'c', 'present', { expectBehind: 'r1' }))
        await store.accept(inConversation('other', 'd', 'absent'))
        const cancelOf = async (id: string) => (await store.readRun(id))?.cancel

        const refused = inConversation('r3', 'c', 'present', { expectBehind: 'r2', queueMax: 0, cancelEarlier })
        await assert.rejects(store.accept(refused), { code: 'queue_full' })
        assert.deepEqual([await cancelOf('r1'), await cancelOf('r2')], [null, null])
        await store.accept(inConversation('r3', 'c', 'present', { expectBehind: 'r2', cancelEarlier }))

        assert.deepEqual(await cancelOf('r1'), cancelEarlier)
        assert.deepEqual(await cancelOf('r2'), cancelEarlier)
        assert.deepEqual([await cancelOf('r3'), await cancelOf('other')], [null, null])
      }),
    )

    test(
      'remembers the newest conversation of an owner that was started without a name',
      opened(async ({ store }) => {
        assert.equal(await store.newestUnnamedConversation(owner), undefined)
        await store.accept(inConversation('r1', 'c1', 'absent', { unnamed: true, createdAt: start + 1 }))
        await store.accept(inConversation('r2', 'c2', 'absent', { unnamed: true, createdAt: start + 2 }))
        await store.accept(inConversation('r3', 'c3', 'absent', { name: 'n', createdAt: start + 3 }))
        await store.accept(
          inConversation('r4', 'c4', 'absent', { unnamed: true, runOwner: 'bob', createdAt: start + 4 }),
        )
        await store.createConversation({ id: 'c5', owner, title: null, createdAt: start + 5, updatedAt: start + 5 })

        assert.equal((await store.newestUnnamedConversation(owner))?.id, 'c2')
        assert.equal((await store.newestUnnamedConversation('bob'))?.id, 'c4')
      }),
    )

    test(
      'gives a title only to a conversation without one, and moves it to the front',
      opened(async ({ store }) => {
        await store.createConversation({ id: 'c', owner, title: null, createdAt: start, updatedAt: start })
        await store.accept(inConversation('r1', 'c', 'present', { title: 'First', createdAt: start + 5 }))
        await store.accept(
          inConversation('r2', 'c', 'present', { title: 'Second', createdAt: start + 9, expectBehind: 'r1' }),
        )

        assert.deepEqual(await store.readConversation('c'), {
          id: 'c',
          owner,
          title: 'First',
          summary: null,
          contactId: null,
          createdAt: start,
          updatedAt: start + 9,
          lastMessageAt: null,
          archivedAt: null,
        })
      }),
    )

    test(
      'is refused when the queue is full; runs at work or waiting for a person do not count',
      opened(async ({ store }) => {
        const working = await claimedRun(store, 'working')
        const parked = await claimedRun(store, 'parked')
        await store.append(write(working, 1, { run: { status: 'running' } }))
        await store.append(write(parked, 1, { run: { status: 'waiting_user', release: true } }))
        await store.accept(acceptInput('q1', { queueMax: 2 }))
        await store.accept(acceptInput('q2', { queueMax: 2 }))

        await refused(store, acceptInput('q3', { queueMax: 2, messages: [] }), 'queue_full')
        await refused(
          store,
          inConversation('q3', 'c', 'absent', { queueMax: 2, messages: [message('m', 'c')] }),
          'queue_full',
        )

        assert.equal(await store.readConversation('c'), undefined)
        await store.claim({ ...claimNow, limit: 1 })
        await store.accept(acceptInput('q3', { queueMax: 2 }))
      }),
    )

    test(
      'of many at once never lets the queue grow beyond its bound',
      opened(async ({ store }) => {
        const outcomes = await Promise.allSettled(
          Array.from({ length: 30 }, (_, index) => store.accept(acceptInput(`r${index}`, { queueMax: 7 }))),
        )

        assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 7)
        assert.deepEqual(await store.countRuns(), { queued: 7 })
      }),
    )

    test(
      'that fails half way leaves nothing',
      opened(async ({ store }) => {
        await store.accept(inConversation('r1', 'c1', 'absent', { messages: [message('taken', 'c1')] }))

        await assert.rejects(
          store.accept(
            inConversation('r2', 'c2', 'absent', {
              name: 's',
              messages: [message('m', 'c2'), message('taken', 'c2')],
              idempotency: { key: 'k', route: 'r', fingerprint: 'f' },
            }),
          ),
          { code: 'store_unavailable' },
        )

        assert.equal(await store.readRun('r2'), undefined)
        assert.equal(await store.readConversation('c2'), undefined)
        assert.equal(await store.readMessage('m'), undefined)
        assert.equal(await store.findIdempotent(owner, 'r', 'k'), undefined)
        assert.equal(await store.findConversationByName(owner, 's'), undefined)
        assert.deepEqual((await store.readEvents('r2', 0, 10)).events, [])
      }),
    )
  })
}
