// One batch is one transaction: what is synced, what a refused or failed batch leaves behind,
// and that the memory of the writer equals the file.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { acceptInput, claimNow } from '../../../test/contracts/store-fixtures.ts'
import { logRecord } from '../../../test/support/log-records.ts'
import { type BatchWriter, batchWriter } from './batch-writer.ts'
import type { CommandBatch, BatchReply } from './commands.ts'
import { openWriter } from './connection.ts'
import { recoverJournal } from './journal-writer.ts'
import { rangesOf } from './log-record.ts'
import { migrate } from './migrate.ts'

let db: DatabaseSync
let writer: BatchWriter
let nextId: number

beforeEach(() => {
  db = openWriter(':memory:')
  migrate(db)
  writer = batchWriter(db)
  nextId = 1
})
afterEach(() => {
  if (db.isOpen) db.close()
})

type Values = (string | number)[]

const command = (name: string, input: unknown): Values => [name, JSON.stringify(input), 0]
const accept = (id: string): Values =>
  command('accept', { ...acceptInput(id, { claim: claimNow }), attempt: 1, journal: null })
const append = (runId: string, afterSeq: number, body: string, epoch = 1): Values => [
  '.',
  runId,
  epoch,
  afterSeq,
  nextId++,
  afterSeq + 1,
  body,
]
const write = (runId: string, afterSeq: number, body: string, rest: object = {}): Values =>
  command('append', { runId, epoch: 1, afterSeq, journal: { id: nextId++, lastSeq: afterSeq + 1, body }, ...rest })
const cancelOf = (runId: string) => ({ runId, cancel: { by: 'ada', reason: null, at: 1 } })
/** Violates a reference. */
const strayMessage = {
  id: 'm',
  conversationId: 'nowhere',
  runId: null,
  parentId: null,
  role: 'user',
  content: '',
  state: 'active',
  toolCallId: null,
  metadata: {},
  createdAt: 1,
}
const execute = (...commands: Values[]): BatchReply => executeAs(false, ...commands)
const executeAs = (durable: boolean, ...commands: Values[]): BatchReply =>
  writer.execute({ durable, values: commands.flat() } satisfies CommandBatch)
/** A record of the log for each list of commands. */
const records = (...lists: Values[]) => rangesOf(lists.map((values, index) => logRecord(index + 1, values)))
const failures = (reply: BatchReply) => reply.failures.map(([index, { code }]) => [index, code])
const lines = (sql: string) =>
  db
    .prepare(sql)
    .all()
    .map((row) => Object.values(row).join(' '))
const tail = () => lines('SELECT run_id, first_seq, last_seq, body FROM journal_tail ORDER BY id')
const journal = () => lines('SELECT run_id, first_seq, last_seq, body FROM journal ORDER BY run_id, last_seq')

describe('the sweep of the tail', () => {
  /** Appends under ids that are far apart, as if many came between: the tail is swept once per 4096 ids. */
  const appendAt = (id: number, runId: string, afterSeq: number): BatchReply => {
    nextId = id
    return execute(append(runId, afterSeq, `${runId} ${afterSeq + 1}`))
  }
  const endAt = (id: number, runId: string, afterSeq: number): Values => {
    nextId = id
    return write(runId, afterSeq, 'end', { run: { status: 'succeeded', endedAt: 1 } })
  }

  test('deletes rows that were folded before, and keeps a row that deltas with higher ids have overtaken', () => {
    execute(accept('a'), accept('b'), accept('c'))
    appendAt(1, 'a', 0)
    execute(endAt(2, 'a', 1))
    appendAt(5000, 'b', 0)
    assert.deepEqual(tail(), ['a 1 1 a 1', 'b 1 1 b 1'], 'the first sweep only notes what may be deleted')
    // It has waited while others were swept.
    appendAt(3, 'c', 0)
    appendAt(10_000, 'b', 1)
    assert.deepEqual(tail(), ['c 1 1 c 1', 'b 1 1 b 1', 'b 2 2 b 2'])
  })

  test('keeps an overtaken row that is folded in the same transaction: the main thread has not heard of it yet', () => {
    execute(accept('b'), accept('c'))
    appendAt(5000, 'b', 0)
    appendAt(3, 'c', 0)
    const end = endAt(4, 'c', 1)
    nextId = 10_000
    execute(end, append('b', 1, 'b 2'))
    assert.deepEqual(tail(), ['c 1 1 c 1', 'b 1 1 b 1', 'b 2 2 b 2'])
  })
})

describe('a batch', () => {
  test('is synced to disk if it holds a barrier, and only then', () => {
    const full = 2
    const normal = 1
    const synchronous = () => Number(db.prepare('PRAGMA synchronous').get()?.synchronous)

    executeAs(true, accept('a'))
    assert.equal(synchronous(), full)
    executeAs(false, append('a', 0, 'one'))
    assert.equal(synchronous(), normal)
    executeAs(false, append('a', 1, 'two'))
    assert.equal(synchronous(), normal)
    executeAs(true, append('a', 2, 'three'))
    assert.equal(synchronous(), full)
  })

  test('with commands of the log stores how far it has the log, and tells only about the others', () => {
    const reply = writer.execute({
      durable: false,
      values: [append('a', 1, 'two', 9), command('requestCancel', cancelOf('a'))].flat(),
      logged: { after: 0, number: 7, records: records(accept('a'), append('a', 0, 'one')) },
    })

    assert.deepEqual(failures(reply), [[0, 'run_fenced']])
    assert.deepEqual(
      reply.results.map(([index]) => index),
      [1],
    )
    assert.deepEqual(tail(), ['a 1 1 one'])
    assert.equal(writer.log.applied, 7)
  })

  test('with an accept of the log claims the run, however many slots are taken', () => {
    const claim = { node: 'n', leaseUntil: 9000, leaseNow: 0, slots: 1 }
    const acceptWith = (id: string) => command('accept', { ...acceptInput(id), claim, attempt: 1, journal: null })
    const leased = () => lines('SELECT id FROM runs WHERE lease_owner IS NOT NULL')
    execute(acceptWith('a'), acceptWith('b'))
    assert.deepEqual(leased(), ['a'])

    writer.execute({
      durable: true,
      values: acceptWith('d'),
      logged: { after: 0, number: 1, records: records(acceptWith('c')) },
    })
    assert.deepEqual(leased(), ['a', 'c'])
    const again = batchWriter(db, [{ number: 2, values: [...acceptWith('e'), ...append('e', 0, 'e1')] }])
    assert.equal(again.refused, 0)
  })

  test('with commands of the log that come too early, or that are refused, changes nothing', () => {
    const values = accept('a')
    const logged = (after: number, ...lists: Values[]) => ({ after, number: after + 1, records: records(...lists) })
    const early = { durable: true, values: [], logged: logged(1, values) }
    assert.throws(() => writer.execute(early), { code: 'store_unavailable' })
    assert.equal(lines('SELECT id FROM runs').length, 0)

    const stray = append('nowhere', 0, 'one')
    const batch = { durable: true, values: accept('a'), logged: logged(0, stray) }
    assert.throws(() => writer.execute(batch), { code: 'store_damaged' })
    assert.deepEqual([lines('SELECT id FROM runs').length, writer.log.applied], [0, 0])
    assert.throws(() => writer.execute({ durable: true, values, needsLog: 1 }), { code: 'store_unavailable' })
    writer.execute({ durable: true, values: [], logged: logged(0, values) })
    writer.execute({ durable: true, values: command('check', null), needsLog: 1 })
    assert.deepEqual([lines('SELECT id FROM runs'), writer.log.applied], [['a'], 1])
  })

  test('in which a command is refused keeps all others, before it and after it', () => {
    execute(accept('a'), accept('b'))

    const reply = execute(
      append('a', 0, 'a1'),
      append('b', 7, 'from nowhere'),
      write('b', 3, 'from nowhere', { run: { status: 'failed' } }),
      append('b', 0, 'b1'),
      append('a', 1, 'a2', 9),
      append('a', 1, 'a2'),
    )

    assert.deepEqual(failures(reply), [
      [1, 'run_fenced'],
      [2, 'run_fenced'],
      [4, 'run_fenced'],
    ])
    assert.deepEqual(tail(), ['a 1 2 a1\na2', 'b 1 1 b1'])
    assert.deepEqual(lines("SELECT status FROM runs WHERE id = 'b'"), ['queued'])
  })

  test('in which a command fails half way leaves nothing of that command, in the file and in memory', () => {
    execute(accept('a'))
    // Its events are in when its message violates a reference.
    const reply = execute(write('a', 0, 'lost', { messages: [strayMessage] }), append('a', 0, 'kept'))

    assert.deepEqual(failures(reply), [[0, 'store_unavailable']])
    assert.deepEqual(tail(), ['a 1 1 kept'])
    execute(append('a', 1, 'next'))
    assert.deepEqual(tail(), ['a 1 1 kept', 'a 2 2 next'])
  })

  test('that fails in the middle leaves nothing at all, and can be written again', () => {
    execute(accept('a'), append('a', 0, 'a1'))
    // Refused by the database itself at the second row, as a disk does.
    db.exec(
      `CREATE TEMP TRIGGER torn BEFORE INSERT ON journal_tail WHEN new.body = 'torn' BEGIN SELECT RAISE(ROLLBACK, 'torn'); END`,
    )

    assert.throws(() => execute(append('a', 1, 'a2'), accept('b'), append('a', 2, 'a3'), append('b', 0, 'torn')))

    assert.equal(db.isTransaction, false)
    assert.deepEqual(tail(), ['a 1 1 a1'])
    assert.deepEqual(lines('SELECT id FROM runs'), ['a'])
    db.exec('DROP TRIGGER torn')
    const reply = execute(append('a', 1, 'a2'), accept('b'), append('a', 2, 'a3'), append('b', 0, 'torn'))
    assert.deepEqual(reply.failures, [])
    assert.deepEqual(tail(), ['a 1 1 a1', 'a 2 3 a2\na3', 'b 1 1 torn'])
  })

  test('says which runs were folded, once, and nothing of a fold that was refused', () => {
    execute(accept('a'), append('a', 0, 'a1'))

    const reply = execute(
      write('a', 1, 'a2', { run: { status: 'waiting_user', release: true } }),
      write('a', 9, 'refused', { run: { status: 'failed', release: true } }),
    )

    assert.deepEqual(reply.folded, [['a', 2]])
    assert.deepEqual(journal(), ['a 1 2 a1\na2'])
    assert.deepEqual(execute(command('check', null)).folded, [])

    execute(accept('b'), accept('c'), append('b', 0, 'b1'), append('c', 0, 'c1'))
    // Folded, and then the rest of the command is refused.
    const half = execute(write('b', 1, 'b2', { run: { release: true }, messages: [strayMessage] }))
    assert.deepEqual([failures(half), half.folded], [[[0, 'store_unavailable']], []])
    db.exec(
      `CREATE TEMP TRIGGER torn BEFORE INSERT ON journal_tail WHEN new.body = 'torn' BEGIN SELECT RAISE(ROLLBACK, 'torn'); END`,
    )
    assert.throws(() => execute(write('c', 1, 'c2', { run: { release: true } }), append('b', 1, 'torn')))
    db.exec('DROP TRIGGER torn')
    assert.deepEqual(execute(append('b', 1, 'b2')).folded, [])
    assert.deepEqual(execute(write('c', 1, 'c2', { run: { release: true } })).folded, [['c', 2]])
  })
})

describe('the tail of a run', () => {
  test('gets one row for all appends of a transaction, and the reply names the rows that hold several', () => {
    const reply = execute(
      accept('a'),
      accept('b'),
      append('a', 0, 'a1'),
      append('b', 0, 'b1'),
      append('a', 1, 'a2'),
      write('a', 2, 'lost', { messages: [strayMessage] }),
      write('a', 2, 'a3'),
    )

    assert.deepEqual(lines('SELECT id, run_id, first_seq, last_seq, body FROM journal_tail'), [
      '1 a 1 3 a1\na2\na3',
      '2 b 1 1 b1',
    ])
    assert.deepEqual(reply.merged, ['a', 1, 1, 3])
    assert.equal(execute(append('a', 3, 'a4'), append('b', 1, 'b2')).merged, undefined)
    assert.deepEqual(tail().slice(2), ['a 4 4 a4', 'b 2 2 b2'])
  })

  test('gets no row for events that are folded in the transaction that adds them', () => {
    const end = { run: { status: 'succeeded', endedAt: 1, release: true } }
    const reply = execute(accept('a'), append('a', 0, 'a1'), append('a', 1, 'a2'), write('a', 2, 'a3', end))

    assert.deepEqual([tail(), journal()], [[], ['a 1 3 a1\na2\na3']])
    assert.deepEqual([reply.folded, reply.merged], [[['a', 3]], undefined])
  })

  test('is folded into one row when it would have 64 rows, and goes on after it', () => {
    execute(accept('a'))
    const all = Array.from({ length: 65 }, (_, index) => append('a', index, `e${index + 1}`))

    const replies = all.map((one) => execute(one))

    assert.deepEqual(
      replies.flatMap(({ folded }) => folded),
      [['a', 64]],
    )
    const [row, ...none] = db.prepare('SELECT first_seq, last_seq, body FROM journal').all()
    assert.deepEqual([row?.first_seq, row?.last_seq, none], [1, 64, []])
    assert.equal(row?.body, Array.from({ length: 64 }, (_, index) => `e${index + 1}`).join('\n'))
    assert.equal(tail().at(-1), 'a 65 65 e65')
    assert.deepEqual(lines("SELECT last_seq FROM runs WHERE id = 'a'"), ['64'])
  })

  test('is folded when it has much text, and a long event gets a row of its own', () => {
    execute(accept('a'), append('a', 0, 'short'))
    const long = 'x'.repeat(20_000)

    const reply = execute(append('a', 1, long), append('a', 2, 'after'))

    assert.deepEqual(reply.folded, [
      ['a', 1],
      ['a', 2],
    ])
    assert.deepEqual(journal(), ['a 1 1 short', `a 2 2 ${long}`])
    execute(append('a', 3, 'y'.repeat(10_000)), append('a', 4, 'z'.repeat(10_000)))
    assert.equal(journal().length, 3, 'two that are long together are folded together')
  })

  test('is folded when its owner releases the run, and the row then has its last seq', () => {
    execute(accept('a'), append('a', 0, 'a1'))
    execute(write('a', 1, 'a2', { run: { status: 'succeeded', endedAt: 1 } }))

    assert.deepEqual(journal(), ['a 1 2 a1\na2'])
    assert.deepEqual(tail(), ['a 1 1 a1'], 'what is folded at once needs no place in the tail')
    assert.deepEqual(lines("SELECT last_seq, status FROM runs WHERE id = 'a'"), ['2 succeeded'])
  })

  test('is whole again after a crash: rows that were folded are not folded twice, and removed runs leave nothing', () => {
    execute(accept('a'), accept('b'), append('a', 0, 'a1'), append('a', 1, 'a2'), append('b', 0, 'b1'))
    execute(write('a', 2, 'a3', { run: { release: true } }))
    // The sweep is lazy, so the tail still holds what was folded; and a run that is gone.
    db.exec("INSERT INTO journal_tail (id, run_id, first_seq, last_seq, body) VALUES (90, 'gone', 1, 1, 'g1')")
    db.exec("INSERT INTO journal_tail (id, run_id, first_seq, last_seq, body) VALUES (91, 'a', 4, 5, 'a4\na5')")

    recoverJournal(db)

    assert.deepEqual(journal(), ['a 1 3 a1\na2\na3', 'a 4 5 a4\na5', 'b 1 1 b1'])
    assert.deepEqual(tail(), [])
    assert.deepEqual(lines('SELECT id, last_seq FROM runs ORDER BY id'), ['a 5', 'b 1'])
    recoverJournal(db)
    assert.equal(journal().length, 3)
  })
})

test('closing folds everything, so that the next start has nothing to look through', () => {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-batches-'))
  const file = join(folder, 'polylog.db')
  db = openWriter(file)
  migrate(db)
  writer = batchWriter(db)
  execute(accept('a'), accept('b'), append('a', 0, 'a1'), append('b', 0, 'b1'), append('a', 1, 'a2'))

  writer.close()

  db = openWriter(file)
  assert.deepEqual(journal(), ['a 1 2 a1\na2', 'b 1 1 b1'])
  assert.deepEqual(tail(), [])
  db.close()
  rmSync(folder, { recursive: true, force: true })
})

test('opening releases the leases of a process that is gone', () => {
  execute(accept('a'), append('a', 0, 'a1'))
  assert.deepEqual(lines('SELECT lease_owner FROM runs'), [claimNow.node])

  const again = batchWriter(db)

  assert.equal(db.prepare('SELECT lease_owner FROM runs').get()?.lease_owner, null)
  assert.deepEqual(journal(), ['a 1 1 a1'])
  again.close()
  assert.equal(db.isOpen, false)
})

describe('a file whose upload broke off', () => {
  const chunk = (number: number, at = 1): Values =>
    command('putFileChunk', {
      owner: 'ada',
      sha256: 'x',
      size: 300_000,
      number,
      body: Buffer.from('half').toString('base64'),
      at,
      ownerBytesMax: 1_000_000,
    })
  const row = { id: 'f', owner: 'ada', sha256: 'x', mediaType: 'text/plain', name: null, size: 300_000, createdAt: 1 }
  const counts = () => [
    db.prepare('SELECT count(*) AS n FROM file_contents').get()?.n,
    db.prepare('SELECT count(*) AS n FROM file_chunks').get()?.n,
  ]

  test('is no file, and its bytes are removed later', () => {
    execute(chunk(0))
    assert.deepEqual(execute(command('putFile', row)).results, [], 'a chunk is missing')
    assert.deepEqual(counts(), [1, 1])
    execute(command('expireFiles', { before: 1, limit: 5 }))
    assert.deepEqual(counts(), [1, 1], 'it is not old enough')

    execute(command('expireFiles', { before: 2, limit: 5 }))

    assert.deepEqual(counts(), [0, 0])
  })

  test('goes on when it is sent again', () => {
    execute(chunk(0))
    execute(chunk(0, 5), chunk(1, 5))

    assert.equal(execute(command('putFile', row)).results.length, 1)
    assert.deepEqual(counts(), [1, 2])
  })
})
