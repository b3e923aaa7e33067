// The first run of a conversation with a name is acknowledged from the log, if the name is certain to be free,
// and reads wait for the log only if it changes what they are about.

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
import { KnownNames } from './known-names.ts'
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

const acceptNamed = (
  runId: string,
  conversationId: string,
  name: string | null,
  expect: 'absent' | 'present' = 'absent',
) => store.accept(inConversation(runId, conversationId, expect, { name, claim: claimNow }))

beforeEach(async () => {
  errors = []
  folder = mkdtempSync(join(tmpdir(), 'polylog-known-names-'))
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

test('a name counts as free only if no command that is not executed may use it', () => {
  const names = new KnownNames()
  names.queued(['a'])
  names.queued(['a'])
  names.lookedUp('a')
  names.settled(['a'])
  names.lookedUp('a')
  assert.equal(names.isFree('a'), false)
  names.settled(['a'])
  assert.equal(names.isFree('a'), false, 'it was looked up too early')
  names.lookedUp('a')
  names.lookedUp('b')
  assert.equal(names.isFree('a'), true)
  names.queued('any')
  names.lookedUp('a')
  assert.deepEqual([names.isFree('a'), names.isFree('b')], [false, false])
  names.settled('any')
  names.lookedUp('b')
  assert.equal(names.isFree('b'), true)
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
  const reads: Record<string, [(about: string) => Promise<unknown>, kind: 'run' | 'conversation']> = {
    readRun: [(id) => store.readRun(id), 'run'],
    openRuns: [(id) => store.openRuns(id), 'conversation'],
    readConversation: [(id) => store.readConversation(id), 'conversation'],
    listMessages: [(id) => store.listMessages(id, { limit: 10 }), 'conversation'],
    historyBefore: [(id) => store.historyBefore(id, 'other', 10), 'conversation'],
  }
  for (const [name, [read, kind]] of Object.entries(reads)) {
    test(`${name} waits for what the log has about it`, async () => {
      assert.equal(await isWaitedFor(() => read(kind === 'run' ? 'other' : 'c-other')), true)
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

  test('about no single run or conversation waits for all of the log', async () => {
    assert.equal(await isWaitedFor(() => store.listConversations(owner, { limit: 1 })), true)
  })
})

type Step =
  | { do: 'accept'; name: number; looksUp: boolean }
  | { do: 'end' | 'check' | 'look' | 'pause'; name: number }
  | { do: 'create' | 'delete'; name: number }

test('whatever is done at once under a few names, each name has one conversation, and a crash changes nothing', async () => {
  const name = fc.nat(2)
  const step: fc.Arbitrary<Step> = fc.oneof(
    { arbitrary: fc.record({ do: fc.constant('accept' as const), name, looksUp: fc.boolean() }), weight: 4 },
    { arbitrary: fc.record({ do: fc.constantFrom('end', 'check', 'look', 'pause'), name }), weight: 4 },
    { arbitrary: fc.record({ do: fc.constantFrom('create', 'delete'), name }), weight: 2 },
  )
  let count = 0
  let logged = 0
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 25 }), async (steps) => {
      const round = `${count++}`
      const nameOf = (index: number) => `${round}-${index}`
      const running: { runId: string; conversationId: string; epoch: number }[] = []
      const accepted = new Map<string, string>()
      const pending: Promise<unknown>[] = []
      const ignoring = (work: Promise<unknown>) =>
        work.catch((error: unknown) => {
          const code = error instanceof AppError ? error.code : String(error)
          assert.ok(['accept_stale', 'conversation_busy'].includes(code), code)
        })
      for (const [index, { do: what, name: number, ...more }] of steps.entries()) {
        const [runId, conversationId, named] = [`r${round}-${index}`, `c${round}-${index}`, nameOf(number)]
        if (what === 'pause') await Promise.all(pending.splice(0))
        else if (what === 'check') pending.push(store.check())
        else if (what === 'look') pending.push(store.findConversationByName(owner, named))
        else if (what === 'create')
          pending.push(
            ignoring(
              store.createConversation({
                id: conversationId,
                owner,
                name: named,
                title: null,
                createdAt: 1,
                updatedAt: 1,
              }),
            ),
          )
        else if (what === 'delete') {
          const found = await store.findConversationByName(owner, named)
          if (found !== undefined)
            pending.push(
              ignoring(store.deleteConversation(found.id).then((deleted) => deleted && accepted.delete(found.id))),
            )
        } else if (what === 'end') {
          const one = running.shift()
          if (one !== undefined) pending.push(end(one.runId, one.epoch, one.conversationId))
        } else {
          const found = 'looksUp' in more && more.looksUp ? await store.findConversationByName(owner, named) : undefined
          if (found !== undefined) continue
          const work = acceptNamed(runId, conversationId, named).then(({ run }) => {
            accepted.set(conversationId, named)
            running.push({ runId, conversationId, epoch: run.epoch })
          })
          pending.push(ignoring(work))
        }
      }
      await Promise.all(pending)
      logged += unappliedRecords(file)
      const copy = join(folder, `crash-${round}`, 'polylog.db')
      mkdirSync(join(folder, `crash-${round}`))
      await crashImage(file, copy)
      const again = await open(copy)
      for (const one of [store, again]) {
        for (const [conversationId, named] of accepted) {
          assert.equal((await one.findConversationByName(owner, named))?.id, conversationId)
          assert.equal((await one.readConversation(conversationId))?.owner, owner)
        }
      }
      await again.close()
      opened.splice(opened.indexOf(again), 1)
      assert.deepEqual(errors, [])
    }),
    { numRuns: 25 },
  )
  assert.ok(logged > 0, 'the log was used')
})
