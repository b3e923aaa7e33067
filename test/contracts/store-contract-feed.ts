// Contract: a reader of the feed gets the last state of everything that changed after its
// position, whatever happens at the same time, and learns it if its position is of no use.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { ComparisonRow } from '../../src/stores/comparison-store.ts'
import { feedInputCharsMax, type FeedEntry, type FeedPosition } from '../../src/stores/feed-store.ts'
import type { Store } from '../../src/stores/store.ts'
import type { OpenStore } from './open-store.ts'
import {
  acceptInput,
  beforeAndAfter,
  claimNow,
  delta,
  endRun,
  inConversation,
  interaction,
  message,
  owner,
  start,
  withStore,
  write,
} from './store-fixtures.ts'

const conversation = { id: 'c', owner, title: null, createdAt: start, updatedAt: start }

async function head(store: Store): Promise<FeedPosition> {
  return (await store.feedState()).head
}

/** Everything after a position, and where to read on. */
async function readOn(
  store: Store,
  after: FeedPosition,
  { reader = owner, limit = 100, sent = new Set<number>() } = {},
): Promise<{ entries: FeedEntry[]; next: FeedPosition }> {
  const entries: FeedEntry[] = []
  for (let next = after; ;) {
    const page = await store.readFeed(reader, { after: next, limit, sent })
    assert.ok(page !== null, 'the feed has been read before')
    assert.ok(page.entries.length <= limit + 500)
    entries.push(...page.entries)
    next = page.next
    if (!page.more) return { entries, next }
  }
}

async function changedAfter(store: Store, after: FeedPosition): Promise<string[]> {
  return (await readOn(store, after)).entries.map(({ kind, id, row }) => `${kind} ${id}${row === null ? ' gone' : ''}`)
}

export function feedContract(open: OpenStore): void {
  const opened = withStore(open)

  describe('the feed', () => {
    test(
      'tells of conversations: created, renamed, used, deleted',
      opened(async ({ store }) => {
        let at = await head(store)
        const next = async () => {
          const { entries, next: position } = await readOn(store, at)
          at = position
          return entries.map(({ kind, id, row }) => ({ kind, id, row }))
        }
        assert.deepEqual(await next(), [])
        await store.createConversation(conversation)
        assert.deepEqual(await next(), [{ kind: 'conversation', id: 'c', row: await store.readConversation('c') }])
        await store.updateConversation('c', { title: 'Tea' }, start + 1)
        const [renamed] = await next()
        assert.deepEqual(renamed?.row, await store.readConversation('c'))
        const { run } = await store.accept(
          inConversation('r', 'c', 'present', { messages: [message('m', 'c')], claim: claimNow }),
        )
        assert.deepEqual(
          (await next()).map(({ kind, id }) => `${kind} ${id}`),
          ['conversation c', 'run r'],
        )
        await endRun(store, run, 1)
        await next()
        await store.deleteConversation('c')
        assert.deepEqual(await next(), [{ kind: 'conversation', id: 'c', row: null }])
      }),
    )

    test(
      'tells of runs when their state changes, and not of their deltas',
      opened(async ({ store }) => {
        const before = await head(store)
        const { run } = await store.accept(acceptInput('r', { claim: claimNow }))
        const accepted = await readOn(store, before)
        assert.deepEqual(
          accepted.entries.map(({ row }) => (row as { status: string }).status),
          ['queued'],
        )
        await store.append(write(run, 1, { events: [delta(2)] }))
        assert.deepEqual(await changedAfter(store, accepted.next), [])
        await store.append(
          write(run, 2, { events: [delta(3)], durable: true, run: { status: 'running', startedAt: start } }),
        )
        const running = await readOn(store, accepted.next)
        assert.deepEqual(
          running.entries.map(({ row }) => row),
          [await store.readRun('r')],
        )
        await store.requestCancel('r', { by: owner, reason: null, at: start })
        const cancelled = await readOn(store, running.next)
        assert.deepEqual(
          cancelled.entries.map(({ id }) => id),
          ['r'],
        )
        await store.append(
          write(run, 3, { durable: true, run: { status: 'canceled', endedAt: start + 5, release: true } }),
        )
        const ended = await readOn(store, cancelled.next)
        assert.deepEqual(
          ended.entries.map(({ row }) => (row as { status: string }).status),
          ['canceled'],
        )
        await store.removeRun('r')
        assert.deepEqual(await changedAfter(store, ended.next), ['run r gone'])
        // An import may bring a run back.
        await store.accept(acceptInput('r'))
        assert.deepEqual(await changedAfter(store, ended.next), ['run r'])
      }),
    )

    test(
      'tells of interactions, without their long texts',
      opened(async ({ store }) => {
        const { run } = await store.accept(acceptInput('r', { claim: claimNow }))
        const before = await head(store)
        const long = { text: 'x'.repeat(feedInputCharsMax) }
        await store.append(
          write(run, 1, {
            durable: true,
            run: { status: 'waiting_user', release: true },
            newInteractions: [
              interaction('i', 'r'),
              interaction('long', 'r', { number: 2, input: long, prompt: 'p'.repeat(50_000) }),
            ],
          }),
        )
        const asked = await readOn(store, before)
        assert.deepEqual(asked.entries.map(({ kind, id }) => `${kind} ${id}`).toSorted(), [
          'interaction i',
          'interaction long',
          'run r',
        ])
        const [shown, cut] = ['i', 'long'].map((id) => asked.entries.find((entry) => entry.id === id)?.row)
        assert.deepEqual(shown, await store.readInteraction('i'))
        assert.equal((cut as { input: unknown }).input, null)
        assert.ok((cut as { prompt: string }).prompt.length < 5000)
        await store.decide('i', { status: 'confirmed', by: owner, at: start + 1 })
        // While a transaction of another database on the same server is open, what was read before comes again.
        const sent = new Set(asked.entries.map(({ position }) => position.number))
        const decided = await readOn(store, asked.next, { sent })
        assert.deepEqual(
          decided.entries.map(({ id, row }) => [id, (row as { status: string }).status]),
          [['i', 'confirmed']],
        )
      }),
    )

    test(
      'tells of comparisons that ask for a vote, and of their runs when the vote reveals them',
      opened(async ({ store }) => {
        const row: ComparisonRow = {
          id: 'x',
          conversationId: 'c',
          owner,
          userMessageId: 'q',
          runA: 'ra',
          runB: 'rb',
          messageA: 'ma',
          messageB: 'mb',
          configA: 'calm',
          configB: 'wild',
          firstSideIsConfigA: true,
          offered: true,
          state: 'pending',
          preference: null,
          preferenceAt: null,
          revisions: [],
          createdAt: start,
        }
        await store.acceptAll([
          inConversation('ra', 'c', 'absent', { claim: claimNow }),
          inConversation('rb', 'c', 'present', { joinTurnOf: 'ra', claim: claimNow }),
        ])
        let at = await head(store)
        const seen = new Set<string>()
        const next = async () => {
          const { entries, next: position } = await readOn(store, at)
          at = position
          // While other transactions of the server are open, entries may be repeated.
          const fresh = entries.filter(({ position: entry }) => !seen.has(JSON.stringify(entry)))
          for (const { position: entry } of fresh) seen.add(JSON.stringify(entry))
          return fresh.map(({ kind, id }) => `${kind} ${id}`).toSorted()
        }
        await store.createComparison({ ...row, id: 'quiet', messageA: 'mc', offered: false }, [])
        assert.deepEqual(await next(), [])
        await store.createComparison(row, [])
        assert.deepEqual(await next(), ['comparison x'])
        await store.settleComparison('x', { state: 'ready', messageA: 'ma', messageB: 'mb', messageStates: [] })
        assert.deepEqual(await next(), ['comparison x'])
        await store.voteComparison('x', { preference: 'a', at: start, expectVotes: 0, messageStates: [] })
        assert.deepEqual(await next(), ['comparison x', 'run ra', 'run rb'])
        await store.voteComparison('x', { preference: 'b', at: start, expectVotes: 1, messageStates: [] })
        assert.deepEqual(await next(), ['comparison x'])
      }),
    )

    test(
      'is of one user only',
      opened(async ({ store }) => {
        const before = await head(store)
        await store.createConversation({ ...conversation, owner: 'bob' })
        assert.deepEqual(await changedAfter(store, before), [])
        assert.equal((await readOn(store, before, { reader: 'bob' })).entries.length, 1)
      }),
    )

    test(
      'is read in pages, and has each thing once',
      opened(async ({ store }) => {
        const before = await head(store)
        for (let number = 0; number < 7; number += 1) {
          await store.createConversation({ ...conversation, id: `c${number}` })
        }
        await store.updateConversation('c0', { title: 'again' }, start)
        const { entries } = await readOn(store, before, { limit: 3 })
        assert.deepEqual(
          entries.map(({ id }) => id),
          ['c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c0'],
        )
        // A reader that stopped at any entry reads on after it.
        for (const [index, { position, settled }] of entries.entries()) {
          assert.ok(settled)
          const rest = await readOn(store, position)
          assert.deepEqual(
            rest.entries.map(({ id }) => id),
            entries.slice(index + 1).map(({ id }) => id),
          )
        }
      }),
    )

    test(
      'goes on where it was after a restart',
      opened(async ({ store, reopen }) => {
        const before = await store.feedState()
        await store.createConversation(conversation)
        for await (const each of beforeAndAfter(store, reopen)) {
          assert.deepEqual(await changedAfter(each, before.head), ['conversation c'])
          assert.equal((await each.feedState()).epoch, before.epoch)
        }
      }),
    )

    test(
      'forgets the oldest changes, and says so to readers that stand before them',
      opened(async ({ store }) => {
        const before = await head(store)
        for (let number = 0; number < 6; number += 1) {
          await store.createConversation({ ...conversation, id: `c${number}` })
        }
        assert.equal(await store.expireFeed(100, 10), 0)
        assert.deepEqual(
          (await readOn(store, before)).entries.map(({ id }) => id),
          ['c0', 'c1', 'c2', 'c3', 'c4', 'c5'],
        )
        assert.equal(await store.expireFeed(2, 3), 3)
        assert.equal(await store.expireFeed(2, 3), 1)
        assert.equal(await store.expireFeed(2, 3), 0)
        assert.equal(await store.readFeed(owner, { after: before, limit: 10 }), null)
        const now = await head(store)
        await store.createConversation({ ...conversation, id: 'c6' })
        assert.deepEqual(await changedAfter(store, now), ['conversation c6'])
      }),
    )

    test(
      'does not know positions that it has not reached',
      opened(async ({ store }) => {
        const { commit, number } = await head(store)
        assert.equal(await store.readFeed(owner, { after: { commit: commit + 1_000_000, number }, limit: 10 }), null)
      }),
    )

    test(
      'loses nothing, whatever is written while it is read',
      opened(async ({ store }) => {
        const things = fc.integer({ min: 0, max: 4 })
        const action = fc.oneof(
          fc.record({ kind: fc.constant('create' as const), thing: things }),
          fc.record({ kind: fc.constant('rename' as const), thing: things }),
          fc.record({ kind: fc.constant('delete' as const), thing: things }),
          fc.record({ kind: fc.constant('read' as const), thing: fc.integer({ min: 1, max: 3 }) }),
        )
        let round = 0
        await fc.assert(
          fc.asyncProperty(fc.array(action, { minLength: 1, maxLength: 30 }), async (actions) => {
            round += 1
            const reader = `reader-${round}`
            const known = new Map<string, unknown>()
            let at = await head(store)
            const read = async (limit: number) => {
              const page = await store.readFeed(reader, { after: at, limit })
              assert.ok(page !== null)
              for (const entry of page.entries) known.set(entry.id, entry.row)
              at = page.next
              return page.more
            }
            const writes: Promise<unknown>[] = []
            let names = 0
            for (const { kind, thing } of actions) {
              const id = `${round}-${thing}`
              if (kind === 'read') await read(thing)
              else if (kind === 'create') {
                writes.push(store.createConversation({ ...conversation, id, owner: reader }).catch(() => undefined))
              } else if (kind === 'rename') {
                names += 1
                writes.push(store.updateConversation(id, { title: `name ${names}` }, start))
              } else writes.push(store.deleteConversation(id))
            }
            await Promise.all(writes)
            while (await read(2));
            await read(100)
            for (let thing = 0; thing <= 4; thing += 1) {
              const id = `${round}-${thing}`
              assert.deepEqual(known.get(id) ?? null, (await store.readConversation(id)) ?? null)
            }
          }),
          { numRuns: 40 },
        )
      }),
    )
  })
}
