// The store contract on SQLite, and what only a file can promise: the lock, safety after a
// kill, a full disk, and the version of its tables.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import type { OpenedStore } from '../../../test/contracts/open-store.ts'
import { storeContract } from '../../../test/contracts/store-contract.ts'
import {
  acceptInput,
  claimedRun,
  claimNow,
  delta,
  deltas,
  readAll,
  seqs,
  start,
  write,
} from '../../../test/contracts/store-fixtures.ts'
import { systemClock } from '../../kit/clock.ts'
import type { Store } from '../store.ts'
import { batchWriter } from './batch-writer.ts'
import { CommitQueue } from './commit-queue.ts'
import type { CommandBatch } from './commands.ts'
import { openWriter } from './connection.ts'
import { migrate, readMigrations } from './migrate.ts'
import { openSqliteStore } from './sqlite-store.ts'
import { startWriter } from './writer-threads.ts'

function newFolder(): { file: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-store-'))
  return { file: join(folder, 'polylog.db'), remove: () => rmSync(folder, { recursive: true, force: true }) }
}

async function open(): Promise<OpenedStore> {
  const { file, remove } = newFolder()
  let wall = start
  let leases = start
  const time = { now: () => wall, monotonic: () => leases }
  const openStore = () => openSqliteStore({ clock: systemClock, time, file, commitGatherMs: 0 })
  let store = await openStore()
  const reopen = async (): Promise<Store> => {
    await store.close()
    store = await openStore()
    return store
  }
  return {
    store,
    time: {
      async set(now) {
        wall = now
        leases = now
      },
      async setLeases(now) {
        leases = now
      },
    },
    reopen,
    async corrupt(runId, seq, line) {
      await store.close()
      const db = new DatabaseSync(file)
      const row = db
        .prepare('SELECT * FROM journal WHERE run_id = ? AND first_seq <= ? AND last_seq >= ?')
        .get(runId, seq, seq)
      assert.ok(row !== undefined)
      const lines = String(row.body).split('\n')
      lines[seq - (row.first_seq as number)] = line
      db.prepare('UPDATE journal SET body = ? WHERE position = ?').run(lines.join('\n'), row.position as number)
      db.close()
      return reopen()
    },
    async cleanup() {
      await store.close()
      remove()
    },
  }
}

storeContract('SQLite', open)

describe('the SQLite file', () => {
  test('is refused to a second store of the same process, and free again after a close', async () => {
    const { file, remove } = newFolder()
    const store = await openSqliteStore({ clock: systemClock, file })

    await assert.rejects(openSqliteStore({ clock: systemClock, file }), {
      code: 'config_invalid',
      message: /[Aa]nother server uses the data folder/,
    })

    await store.check()
    await store.close()
    await (await openSqliteStore({ clock: systemClock, file })).close()
    remove()
  })

  test('gives the first events of a run to whoever can read its row, also before the commit is reported', async () => {
    const { file, remove } = newFolder()
    const store = await openSqliteStore({ clock: systemClock, file })
    // Only the database can say whether the key is taken, so the acceptance is not acknowledged from the log.
    const accepting = store.accept(
      acceptInput('r1', { claim: claimNow, idempotency: { key: 'k', route: 'r', fingerprint: 'f' } }),
    )
    await new Promise((resolve) => setImmediate(resolve))
    // The writer commits meanwhile, and this thread cannot hear of it.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500)

    const run = await store.readRun('r1')
    const stored = await seqs(store, 'r1')

    assert.equal(run?.id, 'r1')
    assert.deepEqual(stored, [1])
    await accepting
    await store.close()
    remove()
  })

  test('takes no more writes when it was deleted or replaced, and goes on when it is back', async () => {
    const { file, remove } = newFolder()
    const store = await openSqliteStore({ clock: systemClock, file })
    const run = await claimedRun(store, 'r1')
    const gone = { code: 'store_unavailable', message: /^The database file is gone\./ }

    renameSync(file, `${file}.away`)
    await assert.rejects(store.accept(acceptInput('r2')), gone)
    await assert.rejects(store.append(write(run, 1, { events: deltas(2, 1) })), gone)
    await assert.rejects(store.check(), gone)
    copyFileSync(`${file}.away`, file)
    await assert.rejects(store.accept(acceptInput('r2')), gone)
    renameSync(`${file}.away`, file)
    await store.accept(acceptInput('r2'))
    await store.check()

    assert.deepEqual([await seqs(store, 'r1'), await seqs(store, 'r2')], [[1], [1]])
    await store.close()
    remove()
  })

  test('takes no more writes without its write-ahead log, and loses nothing when it is closed', async () => {
    const { file, remove } = newFolder()
    const store = await openSqliteStore({ clock: systemClock, file })
    await claimedRun(store, 'r1')

    rmSync(`${file}-wal`)
    const gone = { code: 'store_unavailable', message: /^The write-ahead log .* is gone\. Stop the server/ }
    await assert.rejects(store.accept(acceptInput('r2')), gone)
    await assert.rejects(store.check(), gone)
    await store.close()

    const again = await openSqliteStore({ clock: systemClock, file })
    assert.deepEqual(await seqs(again, 'r1'), [1])
    await again.accept(acceptInput('r2'))
    await again.close()
    remove()
  })

  test('keeps its rows in place when its tables are migrated twice', () => {
    const db = new DatabaseSync(':memory:')
    migrate(db)
    db.exec("INSERT INTO notes (id, owner, text, created_at) VALUES ('n', 'o', 't', 1)")

    migrate(db)

    assert.equal(db.prepare('SELECT count(*) AS count FROM notes').get()?.count, 1)
    assert.equal(db.prepare('SELECT count(*) AS count FROM migrations').get()?.count, readMigrations().length)
  })

  test('of a newer version is refused and not changed', async () => {
    const { file, remove } = newFolder()
    await (await openSqliteStore({ clock: systemClock, file })).close()
    const db = new DatabaseSync(file)
    db.exec("INSERT INTO migrations (number, name) VALUES (9999, 'from the future')")
    db.close()

    await assert.rejects(openSqliteStore({ clock: systemClock, file }), {
      code: 'config_invalid',
      message: /newer version/,
    })
    await assert.rejects(openSqliteStore({ clock: systemClock, file }), {
      code: 'config_invalid',
      message: /newer version/,
    })
    remove()
  })

  test('releases all leases when it is opened, and keeps epochs growing', async () => {
    const { store, reopen, cleanup } = await open()
    const run = await claimedRun(store, 'r')
    await store.append(write(run, 1, { run: { status: 'running' } }))

    const again = await reopen()

    assert.equal((await again.readRun('r'))?.leaseOwner, null)
    const [claimed] = await again.claim({ ...claimNow, limit: 1 })
    assert.equal(claimed?.epoch, run.epoch + 1)
    await assert.rejects(again.append(write(run, 1, { events: [delta(2)] })), { code: 'run_fenced' })
    await cleanup()
  })
})

describe('kill -9', () => {
  test('loses no acknowledged event and leaves no hole, round after round', { timeout: 120_000 }, async () => {
    const { file, remove } = newFolder()
    for (let round = 0; round < 4; round += 1) {
      const child = spawn(
        process.execPath,
        [join(import.meta.dirname, '../../../test/contracts/sqlite-kill-victim.ts'), file, String(round)],
        { stdio: ['ignore', 'pipe', 'inherit'] },
      )
      const acknowledged = new Map<string, number>()
      // The kill comes at a count, so that it hits another moment each round.
      const killAfter = 150 + round * 333
      let lines = 0
      for await (const line of createInterface({ input: child.stdout })) {
        const [runId, seq] = line.split(' ') as [string, string]
        acknowledged.set(runId, Math.max(acknowledged.get(runId) ?? 0, Number(seq)))
        lines += 1
        if (lines === killAfter) child.kill('SIGKILL')
      }
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      assert.equal(child.signalCode, 'SIGKILL')

      const store = await openSqliteStore({ clock: systemClock, file })
      assert.ok(acknowledged.size > 1)
      for (const [runId, seq] of acknowledged) {
        const { events, skipped } = await readAll(store, runId)
        assert.equal(skipped, 0)
        assert.ok(events.length >= seq, `${runId}: ${events.length} stored, ${seq} acknowledged`)
        assert.deepEqual(events, deltas(1, events.length))
        assert.equal((await store.readRun(runId))?.lastSeq, events.length)
      }
      await store.close()
    }
    remove()
  })
})

describe('a batch', () => {
  const names = (...ids: string[]) =>
    ids.flatMap((id) => [
      'accept',
      JSON.stringify({ ...acceptInput(id, { claim: claimNow }), attempt: 1, journal: null }),
      0,
    ])
  const append = (runId: string, afterSeq: number, id: number, body: string) => [
    '.',
    runId,
    1,
    afterSeq,
    id,
    afterSeq + 1,
    body,
  ]
  const batch = (...parts: (string | number)[][]): CommandBatch => ({ durable: false, values: parts.flat() })

  test('that the disk refuses is rolled back whole, with what is remembered of it, and writing goes on', () => {
    const { file, remove } = newFolder()
    const db = openWriter(file)
    migrate(db)
    const writer = batchWriter(db)
    writer.execute(batch(names('a', 'b')))
    writer.execute(batch(append('a', 0, 1, 'one')))
    const pages = Number(db.prepare('PRAGMA page_count').get()?.page_count)
    db.exec(`PRAGMA max_page_count = ${pages + 2}`)

    assert.throws(
      () => writer.execute(batch(append('a', 1, 2, 'two'), append('b', 0, 3, 'x'.repeat(100_000)), names('c'))),
      { errcode: 13 },
    )

    assert.equal(db.isTransaction, false)
    db.exec(`PRAGMA max_page_count = ${pages + 10_000}`)
    const reply = writer.execute(
      batch(append('a', 1, 4, 'two again'), append('b', 0, 5, 'first'), append('b', 0, 6, 'stale')),
    )
    assert.deepEqual(
      reply.failures.map(([index, failure]) => [index, failure.code]),
      [[2, 'run_fenced']],
    )
    writer.close()
    const check = new DatabaseSync(file)
    const rows = check
      .prepare('SELECT run_id, last_seq, body FROM journal ORDER BY run_id')
      .all()
      .map((row) => ({ ...row }))
    assert.deepEqual(rows, [
      { run_id: 'a', last_seq: 2, body: 'one\ntwo again' },
      { run_id: 'b', last_seq: 1, body: 'first' },
    ])
    assert.equal(check.prepare("SELECT 1 FROM runs WHERE id = 'c'").get(), undefined)
    check.close()
    remove()
  })

  test('after batch keeps the tail short, and no event is lost by it', () => {
    const { file, remove } = newFolder()
    const db = openWriter(file)
    migrate(db)
    const writer = batchWriter(db)
    writer.execute(batch(names('quiet', 'busy')))
    let id = 1
    writer.execute(batch(append('quiet', 0, id, 'q1')))
    const count = 30_000
    const quietRows = db.prepare(
      "SELECT EXISTS (SELECT 1 FROM journal_tail WHERE run_id = 'quiet') OR EXISTS (SELECT 1 FROM journal WHERE run_id = 'quiet') AS kept",
    )
    for (let seq = 0; seq < count;) {
      const parts: (string | number)[][] = []
      for (let k = 0; k < 500; k += 1, seq += 1) parts.push(append('busy', seq, (id += 1), `b${seq + 1}`))
      writer.execute(batch(...parts))
      // A crash now would leave these two tables only.
      assert.equal(quietRows.get()?.kept, 1)
    }
    const tail = db.prepare('SELECT count(*) AS count FROM journal_tail').get()?.count as number
    const folded = db.prepare("SELECT count(*) AS count FROM journal WHERE run_id = 'quiet'").get()?.count as number
    writer.execute(batch(append('quiet', 1, (id += 1), 'q2')))
    writer.close()

    assert.ok(tail < 26_000, `${tail} rows in the tail`)
    assert.equal(folded, 1)
    const check = new DatabaseSync(file)
    const text = (runId: string) =>
      check
        .prepare('SELECT body FROM journal WHERE run_id = ? ORDER BY last_seq')
        .all(runId)
        .map((row) => row.body)
        .join('\n')
    assert.equal(text('quiet'), 'q1\nq2')
    assert.equal(text('busy'), Array.from({ length: count }, (_, index) => `b${index + 1}`).join('\n'))
    check.close()
    remove()
  })
})

describe('the writer thread', () => {
  test('of a closed store opens the next file, and neither store sees the other', async () => {
    const [first, second] = [newFolder(), newFolder()]
    const opened = ({ file }: { file: string }) => openSqliteStore({ clock: systemClock, file })
    const one = await opened(first)
    await one.append(write(await claimedRun(one, 'run-1'), 1, { events: deltas(2, 2) }))
    await one.close()
    const two = await opened(second)
    assert.deepEqual((await readAll(two, 'run-1')).events, [])
    await two.append(write(await claimedRun(two, 'run-1'), 1, { events: deltas(2, 5) }))
    await assert.rejects(one.check(), { code: 'store_unavailable' })
    await two.close()
    const again = await opened(first)
    assert.deepEqual(await seqs(again, 'run-1'), [1, 2, 3])
    await again.close()
    for (const { remove } of [first, second]) remove()
  })

  test('that dies rejects everything that waits, and everything after', async () => {
    const { file, remove } = newFolder()
    const worker = startWriter(file)
    const heard: unknown[] = []
    const queue = new CommitQueue(worker, {
      gatherMs: 0,
      clock: { now: () => 0, monotonic: () => 0, after: () => ({ cancel() {} }) },
      onError: (error) => heard.push(error),
      onStored() {},
      onFolded() {},
    })
    await queue.opened()
    await queue.run('check', null)
    const waiting = [queue.run('check', null), queue.run('check', null)].map((promise) =>
      assert.rejects(promise, { code: 'store_unavailable' }),
    )

    await worker.terminate()

    await Promise.all(waiting)
    await assert.rejects(queue.run('check', null), { code: 'store_unavailable' })
    assert.equal(heard.length, 1)
    await queue.close()
    remove()
  })

  test('is asked in few batches when many appends come at once, and a durable one does not wait for the gathering', async () => {
    const batches: CommandBatch[] = []
    let answer: (message: unknown) => void = () => {}
    const timers: (() => void)[] = []
    const writer = {
      on(event: string, listener: (message: unknown) => void) {
        if (event === 'message') answer = listener
        return writer
      },
      postMessage: (batch: CommandBatch) => batches.push(batch),
    }
    const queue = new CommitQueue(writer as never, {
      gatherMs: 3,
      clock: { now: () => 0, monotonic: () => 0, after: (_delay, fire) => (timers.push(fire), { cancel() {} }) },
      onError() {},
      onStored() {},
      onFolded() {},
    })
    const done = { type: 'done', failures: [], results: [], folded: [] }
    const turn = () => new Promise((resolve) => setImmediate(resolve))
    const place = (id: number) => ({ runId: 'r', id, firstSeq: id, lastSeq: id })

    const first = [1, 2, 3].map((id) => queue.appendDelta(place(id), 1, 'x', false))
    await turn()
    assert.equal(batches.length, 1)
    answer(done)
    await Promise.all(first)
    void queue.appendDelta(place(4), 1, 'x', false)
    await turn()
    await turn()
    assert.equal(batches.length, 1)
    void queue.appendDelta(place(5), 1, 'x', true)
    await turn()
    assert.equal(batches.length, 2)
    assert.deepEqual([batches[0]?.durable, batches[1]?.durable, batches[1]?.values.length], [false, true, 14])
    answer(done)
    void queue.appendDelta(place(6), 1, 'x', false)
    await turn()
    assert.equal(batches.length, 2)
    timers.at(-1)?.()
    assert.equal(batches.length, 3)
  })
})

test('appends of a run that is read at the same time are always read whole', async () => {
  const { store, cleanup } = await open()
  const run = await claimedRun(store, 'r')
  const total = 400
  const reader = (async () => {
    let after = 0
    while (after < total) {
      const page = await store.readEvents('r', after, 1000)
      assert.equal(page.skipped, 0)
      assert.deepEqual(page.events, deltas(after + 1, page.events.length))
      after = page.nextAfter
      await new Promise((resolve) => setImmediate(resolve))
    }
  })()
  for (let seq = 2; seq <= total; seq += 1) await store.append(write(run, seq - 1, { events: [delta(seq)] }))
  await reader

  assert.deepEqual(
    await seqs(store, 'r'),
    deltas(1, total).map((event) => event.seq),
  )
  await cleanup()
})

test('an append of many megabytes becomes rows of about a page each, cut between events, and is read as it was written', async () => {
  const { file, remove } = newFolder()
  const store = await openSqliteStore({ clock: systemClock, file, commitGatherMs: 0 })
  const run = await claimedRun(store, 'r')
  const lengths = [300_000, 300_000, 300_000, 300_000, 2_500_000, 10, 10, 1_100_000, 10, 900_000]
  const events = lengths.map((length, index) => delta(index + 2, String(index).repeat(length)))
  await store.append(write(run, 1, { events, durable: true }))

  assert.deepEqual((await readAll(store, 'r')).events.slice(1), events)
  assert.equal((await readAll(store, 'r')).skipped, 0)
  await store.close()
  const db = new DatabaseSync(file)
  const rows = db.prepare('SELECT first_seq, last_seq FROM journal WHERE run_id = ? AND first_seq > 1').all('r')
  assert.deepEqual(
    rows.map((row) => [row.first_seq, row.last_seq]),
    [
      [2, 4],
      [5, 5],
      [6, 6],
      [7, 8],
      [9, 9],
      [10, 11],
    ],
  )
  db.close()
  remove()
})
