// The first run of a conversation with a name is acknowledged from the log, if the name is certain to be free, and a later
// one, if no run of the conversation is open. Reads wait for the log only if it changes what they are about.

import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import fc from 'fast-check'
import {
  acceptInput,
  claimNow,
  deltas,
  inConversation,
  message,
  owner,
  write,
} from '../../../test/contracts/store-fixtures.ts'
import { manualClock } from '../../../test/support/manual-clock.ts'
import { crashImage, unappliedRecords } from '../../../test/support/test-database.ts'
import { until } from '../../../test/support/until.ts'
import { AppError } from '../../errors/app-error.ts'
import { systemClock } from '../../kit/clock.ts'
import type { Store } from '../store.ts'
import { KnownFacts } from './known-facts.ts'
import { openSqliteStore } from './sqlite-store.ts'

let folder: string
let file: string
let store: Store
let errors: unknown[]
const opened: Store[] = []

async function open(path: string): Promise<Store> {
  // The clock stands still, so the log is applied only for a read or with a command that needs the database.
  const store = await openSqliteStore({
    file: path,
    clock: manualClock(),
    time: systemClock,
    commitGatherMs: 0,
    onError: (error) => errors.push(error),
  })
  opened.push(store)
  return store
}

/** Ends the run, from the log if its accept was. */
const end = (runId: string, epoch: number, conversationId: string) =>
  store.append(
    write({ id: runId, epoch } as never, 1, {
      events: deltas(2, 1),
      durable: true,
      messages: [{ ...message(`m-${runId}`, conversationId), role: 'assistant', runId }],
      touchConversationAt: 2,
      run: { status: 'succeeded', endedAt: 2, release: true },
    }),
  )

/** A later turn of a conversation: its run, with the question. */
const acceptTurn = (runId: string, conversationId: string, changes: Parameters<typeof inConversation>[3] = {}) =>
  store.accept(
    inConversation(runId, conversationId, 'present', {
      claim: claimNow,
      messages: [message(`q-${runId}`, conversationId, { runId })],
      ...changes,
    }),
  )

/** A conversation with one turn, which has ended. The database has all of it. */
async function conversationOf(conversationId: string): Promise<void> {
  const runId = `first-of-${conversationId}`
  const { run } = await acceptNamed(runId, conversationId, null)
  await end(runId, run.epoch, conversationId)
  await store.check()
}

const idsOf = (rows: readonly { id: string }[]) => rows.map(({ id }) => id)

const acceptNamed = (
  runId: string,
  conversationId: string,
  name: string | null,
  expect: 'absent' | 'present' = 'absent',
) => store.accept(inConversation(runId, conversationId, expect, { name, claim: claimNow }))

beforeEach(async () => {
  errors = []
  folder = mkdtempSync(join(tmpdir(), 'polylog-known-facts-'))
  file = join(folder, 'live', 'polylog.db')
  store = await open(file)
  // The log is used when the space on the disk is known.
  await until('the log is used', async () => {
    const { run } = await store.accept(acceptInput(`probe-${Math.random()}`, { claim: claimNow }))
    await store.append(write(run, 1, { events: deltas(2, 1), run: { status: 'succeeded', endedAt: 1, release: true } }))
    return unappliedRecords(file) > 0
  })
  await store.check()
})
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close()
  rmSync(folder, { recursive: true, force: true })
})

describe('the first run of a conversation with a name', () => {
  test('is acknowledged from the log after the name was looked up, and can be found by it', async () => {
    assert.equal(await store.findConversationByName(owner, 'mine'), undefined)
    await acceptNamed('r1', 'c1', 'mine')
    assert.equal(unappliedRecords(file), 1)
    assert.equal((await store.findConversationByName(owner, 'mine'))?.id, 'c1')
    assert.equal(unappliedRecords(file), 0, 'the read has waited for it')
  })

  test('needs the database if the name was not looked up, or not since another command may have used it', async () => {
    await acceptNamed('r1', 'c1', 'mine')
    assert.equal(unappliedRecords(file), 0)

    await store.findConversationByName(owner, 'other')
    const created = store.createConversation({
      id: 'c2',
      owner,
      name: 'other',
      title: null,
      createdAt: 1,
      updatedAt: 1,
    })
    await assert.rejects(acceptNamed('r3', 'c3', 'other'), { code: 'accept_stale' })
    await created

    await store.findConversationByName(owner, 'twice')
    const [first, second] = await Promise.allSettled([
      acceptNamed('r4', 'c4', 'twice'),
      acceptNamed('r5', 'c5', 'twice'),
    ])
    assert.equal(first.status, 'fulfilled')
    assert.equal(second.status === 'rejected' && (second.reason as AppError).code, 'accept_stale')
  })

  test('of another owner is another name', async () => {
    await store.findConversationByName('bob', 'mine')
    await acceptNamed('r1', 'c1', 'mine')
    assert.equal(unappliedRecords(file), 0)
  })
})

describe('a later run of a conversation', () => {
  beforeEach(() => conversationOf('c1'))

  test('is acknowledged from the log after it was seen that no run is open', async () => {
    assert.deepEqual(await store.openRuns('c1'), [])
    await acceptTurn('r1', 'c1')
    assert.equal(unappliedRecords(file), 1)
    assert.deepEqual(idsOf(await store.openRuns('c1')), ['r1'])
    assert.equal(unappliedRecords(file), 0, 'the read has waited for it')
  })

  test('may ask to cancel earlier runs, of which there are none', async () => {
    await store.openRuns('c1')
    await acceptTurn('r1', 'c1', { cancelEarlier: { by: owner, reason: null, at: 1 } })
    assert.equal(unappliedRecords(file), 1)
    assert.equal((await store.readRun('r1'))?.cancel, null)
  })

  test('needs the database if that was not seen, or not since another command may have changed it', async () => {
    await acceptTurn('r1', 'c1')
    assert.equal(unappliedRecords(file), 0)

    await conversationOf('c2')
    await store.openRuns('c2')
    const [first, second] = await Promise.allSettled([acceptTurn('r2', 'c2'), acceptTurn('r3', 'c2')])
    assert.equal(first.status, 'fulfilled')
    assert.equal(second.status === 'rejected' && (second.reason as AppError).code, 'accept_stale')

    await conversationOf('c3')
    await store.openRuns('c3')
    const deleted = store.deleteConversation('c3')
    await assert.rejects(acceptTurn('r4', 'c3'), { code: 'accept_stale' })
    assert.equal(await deleted, true)

    await conversationOf('c4')
    await store.openRuns('c4')
    assert.equal(await store.deleteConversation('c4'), true)
    await assert.rejects(acceptTurn('r5', 'c4'), { code: 'accept_stale' })
  })

  test('needs the database if the conversation has an open run, is not there, or belongs to somebody else', async () => {
    await store.openRuns('c1')
    await acceptTurn('r1', 'c1')
    await store.openRuns('c1')
    await assert.rejects(acceptTurn('r2', 'c1'), { code: 'accept_stale' })
    await store.openRuns('nowhere')
    await assert.rejects(acceptTurn('r3', 'nowhere'), { code: 'accept_stale' })
    await end('r1', 1, 'c1')
    await store.openRuns('c1')
    await assert.rejects(store.accept(inConversation('r4', 'c1', 'present', { runOwner: 'bob', claim: claimNow })), {
      code: 'accept_stale',
    })
  })

  test('has a history that is read without waiting for the log, also when the database has the run', async () => {
    await store.openRuns('c1')
    await acceptTurn('r1', 'c1')
    await store.append(
      write({ id: 'r1', epoch: 1 } as never, 1, {
        events: deltas(2, 1),
        durable: true,
        messages: [message('a-r1', 'c1', { role: 'assistant', runId: 'r1' })],
      }),
    )
    assert.deepEqual(idsOf(await store.historyBefore('c1', 'r1', 10)), ['m-first-of-c1'])
    assert.equal(unappliedRecords(file), 2)
    await store.check()
    assert.deepEqual(idsOf(await store.historyBefore('c1', 'r1', 10)), ['m-first-of-c1'])
    assert.deepEqual(await store.historyBefore('c1', 'unknown', 10), [])
  })

  test('waits for earlier messages that came with it', async () => {
    await store.openRuns('c1')
    await acceptTurn('r1', 'c1', { messages: [message('sent', 'c1'), message('q-r1', 'c1', { runId: 'r1' })] })
    assert.equal(unappliedRecords(file), 1)
    assert.deepEqual(idsOf(await store.historyBefore('c1', 'r1', 10)), ['m-first-of-c1', 'sent'])
  })
})

test('a fact is known only if no command that is not executed may change it', () => {
  const facts = new KnownFacts()
  facts.queued(['a'])
  facts.queued(['a'])
  facts.lookedUp('a')
  facts.settled(['a'])
  facts.lookedUp('a')
  assert.equal(facts.holds('a'), false)
  facts.settled(['a'])
  assert.equal(facts.holds('a'), false, 'it was looked up too early')
  facts.lookedUp('a')
  facts.lookedUp('b')
  assert.equal(facts.holds('a'), true)
  facts.queued('any')
  facts.lookedUp('a')
  assert.deepEqual([facts.holds('a'), facts.holds('b')], [false, false])
  facts.settled('any')
  facts.lookedUp('b')
  assert.equal(facts.holds('b'), true)
})

describe('a read', () => {
  const isWaitedFor = async (read: () => Promise<unknown>) => {
    await acceptNamed('other', 'c-other', null)
    await store.check()
    await store.append(
      write({ id: 'other', epoch: 1 } as never, 1, { events: deltas(2, 1), durable: true, run: { status: 'running' } }),
    )
    const before = unappliedRecords(file)
    assert.ok(before > 0)
    await read()
    return unappliedRecords(file) === 0
  }
  const page = { limit: 10 }
  const reads: Record<string, [(about: string) => Promise<unknown>, about: string]> = {
    readRun: [(id) => store.readRun(id), 'other'],
    openRuns: [(id) => store.openRuns(id), 'c-other'],
    readConversation: [(id) => store.readConversation(id), 'c-other'],
    listMessages: [(id) => store.listMessages(id, page), 'c-other'],
    historyBefore: [(id) => store.historyBefore(id, 'ended', 10), 'c-other'],
    listRuns: [(owner) => store.listRuns({ owner, limit: 10 }), owner],
    'listRuns of a conversation': [(conversationId) => store.listRuns({ owner, conversationId, limit: 10 }), 'c-other'],
    listConversations: [(owner) => store.listConversations(owner, page), owner],
    listConversationsByLastMessage: [(owner) => store.listConversationsByLastMessage(owner, page), owner],
    newestUnnamedConversation: [(owner) => store.newestUnnamedConversation(owner), owner],
  }
  for (const [name, [read, about]] of Object.entries(reads)) {
    test(`${name} waits for what the log has about it`, async () => {
      assert.equal(await isWaitedFor(() => read(about)), true)
    })
    test(`${name} does not wait for the rest of the log`, async () => {
      assert.equal(await isWaitedFor(() => read('else')), false)
    })
  }

  test('sees a conversation that only the log has, and what the log changes of one that is found by its name', async () => {
    await acceptNamed('r1', 'c1', null)
    assert.equal((await store.readConversation('c1'))?.updatedAt, (await store.readRun('r1'))?.createdAt)
    await acceptNamed('r2', 'c2', null)
    assert.equal((await store.openRuns('c2')).length, 1)

    await acceptNamed('r3', 'c3', 'mine')
    await store.check()
    await end('r3', 1, 'c3')
    assert.equal(unappliedRecords(file), 1)
    assert.equal((await store.findConversationByName(owner, 'mine'))?.updatedAt, 2)
  })

  test('about everybody waits for all of the log', async () => {
    assert.equal(await isWaitedFor(() => store.countRuns()), true)
  })

  test('of an idempotency key does not wait, because commands with a key go to the database', async () => {
    const idempotency = { key: 'k', route: 'r', fingerprint: 'f' }
    await store.accept(inConversation('keyed', 'c-keyed', 'absent', { claim: claimNow, idempotency }))
    assert.equal(unappliedRecords(file), 0)
    assert.equal(await isWaitedFor(() => store.findIdempotent(owner, 'r', 'none')), false)
    assert.equal((await store.findIdempotent(owner, 'r', 'k'))?.runId, 'keyed')
  })

  test('of the runs and conversations of a user sees those that only the log has', async () => {
    await acceptNamed('r1', 'c1', null)
    assert.deepEqual(idsOf((await store.listRuns({ owner, conversationId: 'c1', limit: 1 })).rows), ['r1'])
    await acceptNamed('r2', 'c2', null)
    assert.deepEqual(idsOf((await store.listConversations(owner, { limit: 1 })).rows), ['c2'])
    await end('r2', 1, 'c2')
    assert.equal((await store.listRuns({ owner, limit: 1 })).rows[0]?.status, 'succeeded')
  })
})

type Step = { do: 'accept' | 'turn'; name: number; looks: boolean } | { do: Action; name: number }
const actions = ['end', 'end', 'check', 'look', 'pause', 'create', 'delete'] as const
type Action = (typeof actions)[number]

test('whatever is done at once under a few names, each has one conversation with one open run, and a crash changes nothing', async () => {
  const name = fc.nat(2)
  const step: fc.Arbitrary<Step> = fc.oneof(
    fc.record({ do: fc.constantFrom('accept' as const, 'turn' as const), name, looks: fc.boolean() }),
    fc.record({ do: fc.constantFrom(...actions), name }),
  )
  let count = 0
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 25 }), async (steps) => {
      const round = `${count++}`
      const running: { runId: string; conversationId: string; epoch: number }[] = []
      const accepted = new Map<string, string>()
      /** By conversation, the ids of its messages. */
      const messages = new Map<string, string[]>()
      const histories: { runId: string; conversationId: string; ids: string[] }[] = []
      const pending: Promise<unknown>[] = []
      const ignoring = (work: Promise<unknown>) =>
        work.catch((error: unknown) => {
          const code = error instanceof AppError ? error.code : String(error)
          assert.ok(['accept_stale', 'conversation_busy'].includes(code), code)
        })
      const started = async (conversationId: string, run: { id: string; epoch: number }) => {
        const runId = run.id
        assert.ok(!running.some((one) => one.conversationId === conversationId), 'one run at a time')
        running.push({ runId, conversationId, epoch: run.epoch })
        const before = messages.get(conversationId) as string[]
        const ids = [...before]
        before.push(`q-${runId}`)
        histories.push({ runId, conversationId, ids })
        assert.deepEqual(idsOf(await store.historyBefore(conversationId, runId, 100)), ids)
      }
      const actionsOf = (named: string, id: string): Record<Action, () => Promise<unknown> | undefined> => ({
        pause: () => Promise.all(pending.splice(0)),
        check: () => void pending.push(store.check()),
        look: () => void pending.push(store.findConversationByName(owner, named)),
        create: () =>
          void pending.push(
            ignoring(store.createConversation({ id, owner, name: named, title: null, createdAt: 1, updatedAt: 1 })),
          ),
        async delete() {
          const found = await store.findConversationByName(owner, named)
          if (found === undefined) return
          const removed = store.deleteConversation(found.id).then((isDeleted) => {
            if (isDeleted) accepted.delete(found.id)
            if (isDeleted) messages.delete(found.id)
          })
          pending.push(ignoring(removed))
        },
        end() {
          const one = running.shift()
          if (one === undefined) return undefined
          // It counts as ended before the next command of the conversation can be answered.
          messages.get(one.conversationId)?.push(`m-${one.runId}`)
          pending.push(end(one.runId, one.epoch, one.conversationId))
          return undefined
        },
      })
      for (const [index, { do: what, name: number, ...more }] of steps.entries()) {
        const [runId, id, named] = [`r${round}-${index}`, `c${round}-${index}`, `${round}-${number}`]
        const looks = 'looks' in more && more.looks
        if (what !== 'accept' && what !== 'turn') await actionsOf(named, id)[what]()
        else if (what === 'accept') {
          const found = looks ? await store.findConversationByName(owner, named) : undefined
          if (found !== undefined) continue
          const input = inConversation(runId, id, 'absent', {
            name: named,
            claim: claimNow,
            messages: [message(`q-${runId}`, id, { runId })],
          })
          const work = store.accept(input).then(({ run }) => {
            accepted.set(id, named)
            messages.set(id, [])
            return started(id, run)
          })
          pending.push(ignoring(work))
        } else {
          const found = await store.findConversationByName(owner, named)
          if (found === undefined || !messages.has(found.id)) continue
          if (looks) await store.openRuns(found.id)
          pending.push(ignoring(acceptTurn(runId, found.id).then(({ run }) => started(found.id, run))))
        }
      }
      await Promise.all(pending)
      // One more, so that the log has something in each round.
      await conversationOf(`c${round}-last`)
      await store.openRuns(`c${round}-last`)
      await acceptTurn(`r${round}-last`, `c${round}-last`)
      assert.equal(unappliedRecords(file), 1)
      const copy = join(folder, `crash-${round}`, 'polylog.db')
      mkdirSync(join(folder, `crash-${round}`))
      await crashImage(file, copy)
      const again = await open(copy)
      for (const one of [store, again]) {
        assert.equal((await one.readRun(`r${round}-last`))?.status, 'queued')
        for (const [conversationId, named] of accepted) {
          assert.equal((await one.findConversationByName(owner, named))?.id, conversationId)
          assert.equal((await one.readConversation(conversationId))?.owner, owner)
          assert.deepEqual(idsOf(await one.allMessages(conversationId, { limit: 100 })), messages.get(conversationId))
        }
        for (const { runId, conversationId, ids } of histories) {
          if (!accepted.has(conversationId)) continue
          assert.deepEqual(idsOf(await one.historyBefore(conversationId, runId, 100)), ids)
        }
      }
      await again.close()
      opened.splice(opened.indexOf(again), 1)
      assert.deepEqual(errors, [])
    }),
    { numRuns: 25 },
  )
})
