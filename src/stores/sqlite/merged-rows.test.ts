// The appends of a run in one transaction share a row of the journal tail, and events that are folded at
// once have none. The main thread hears of it a moment after the commit. Whatever is appended, ended,
// refused or rolled back, and whenever it reads, it finds every acknowledged event exactly once; and so
// does the next process after a kill.

import assert from 'node:assert/strict'
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import { acceptInput, delta, message } from '../../../test/contracts/store-fixtures.ts'
import { logRecord } from '../../../test/support/log-records.ts'
import { manualClock } from '../../../test/support/manual-clock.ts'
import { AppError } from '../../errors/app-error.ts'
import { encodeEvent } from '../../journal/event-codec.ts'
import { batchWriter, type BatchWriter, logState } from './batch-writer.ts'
import type { CommandLog } from './command-log.ts'
import { type CommandBatch, toFailure, type WriterMessage } from './commands.ts'
import { CommitQueue } from './commit-queue.ts'
import { openReader, openWriter } from './connection.ts'
import { journalReader } from './journal-reader.ts'
import { JournalTails } from './journal-tails.ts'
import type { LogRecord } from './log-record.ts'
import { applyMs } from './logged-commits.ts'
import { migrate } from './migrate.ts'

const runCount = 3

type Step =
  | { do: 'append'; run: number; events: number; chars: number }
  /** Ends the run, and starts another one in its place. */
  | { do: 'end' | 'restart'; run: number }
  /** `broken` fails after its events were stored, so that they are rolled back. */
  | { do: 'fenced' | 'broken'; run: number }
  /** Sends what the log has to the writer: alone, or in front of a command that needs the database. */
  | { do: 'apply' | 'check' }
  /** The writer executes its next request, and the main thread hears of the oldest one. */
  | { do: 'execute' | 'hear' }
  /** The next request fails, with or without the commands that were acknowledged. */
  | { do: 'fail'; whole: boolean }
  | { do: 'read'; run: number; skip: number }

const run = fc.nat(runCount - 1)
const append = fc.record({
  do: fc.constant('append' as const),
  run,
  events: fc.integer({ min: 1, max: 3 }),
  // A tail is folded at 16 Ki characters, and a long event alone.
  chars: fc.constantFrom(5, 5, 5, 5, 5, 6000, 20_000),
})
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 10, arbitrary: append },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('end' as const, 'restart' as const), run }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('fenced' as const, 'broken' as const), run }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('apply' as const, 'check' as const) }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constantFrom('execute' as const, 'hear' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('fail' as const), whole: fc.boolean() }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('read' as const), run, skip: fc.nat(30) }) },
)

/** Violates a reference. */
const strayMessage = message('stray', 'nowhere')

let folder: string
let empty: string
let count = 0

before(() => {
  folder = mkdtempSync(join(tmpdir(), 'polylog-merged-'))
  empty = join(folder, 'empty.db')
  const db = openWriter(empty)
  migrate(db)
  db.close()
})
after(() => rmSync(folder, { recursive: true, force: true }))

function newFile(): string {
  const file = join(folder, `${(count += 1)}.db`)
  copyFileSync(empty, file)
  return file
}

/** A log in memory. A sync takes some turns, in which deltas may follow. */
class TestLog {
  readonly records: LogRecord[] = []
  readonly isHalfFull = false
  readonly isSlow = false
  #next: CommandBatch['values'] = []

  record(values: CommandBatch['values']): Buffer {
    this.#next = values
    return logRecord(this.number + 1, values)
  }
  get number(): number {
    return this.records.length
  }
  append(_record: unknown, synced: boolean, done: (error: null) => void): void {
    this.records.push({ number: this.records.length + 1, values: this.#next })
    if (synced) this.sync(done)
    else done(null)
  }
  sync(done: (error: null) => void): void {
    setImmediate(() => setImmediate(() => setImmediate(() => done(null))))
  }
  swap(): void {}
  close(): void {}
}

/** The writer as its thread executes it, but only when the test says so. */
class SteppedWriter {
  readonly posted: CommandBatch[] = []
  readonly replies: WriterMessage[] = []
  readonly #writer: BatchWriter
  #listener: (message: WriterMessage) => void = () => {}

  constructor(writer: BatchWriter) {
    this.#writer = writer
  }
  on(event: string, listener: (message: WriterMessage) => void): this {
    if (event === 'message') this.#listener = listener
    return this
  }
  postMessage(request: CommandBatch): void {
    this.posted.push(structuredClone(request))
  }
  say(message: WriterMessage): void {
    this.#listener(structuredClone(message))
  }
  execute(): void {
    const request = this.posted.shift()
    if (request === undefined) return
    try {
      this.replies.push(this.#writer.execute(request))
    } catch (error) {
      assert.ok(error instanceof AppError)
      this.replies.push({ type: 'failed', failure: toFailure(error) })
    }
  }
  fail(whole: boolean): void {
    const request = this.posted.shift()
    if (request === undefined) return
    const { values, logged } = request
    const failure = toFailure(new AppError('store_unavailable', 'The disk is full.'))
    if (whole || logged === undefined || values.length === 0) this.replies.push({ type: 'failed', failure })
    else {
      const alone = { durable: true, values: [], logged }
      // Fails too if an earlier request did.
      let applied
      try {
        applied = this.#writer.execute(alone)
      } catch {}
      this.replies.push({ type: 'failed', failure, ...(applied === undefined ? {} : { applied }) })
    }
  }
  hear(): void {
    const reply = this.replies.shift()
    if (reply !== undefined) this.say(reply)
  }
}

type LiveRun = { id: string; sent: number; acknowledged: number; isBusy: boolean; isEnded: boolean }

async function play(steps: readonly Step[]): Promise<void> {
  const file = newFile()
  const db = openWriter(file)
  const stepped = new SteppedWriter(batchWriter(db))
  const readerDb = openReader(file)
  const tails = new JournalTails()
  const reader = journalReader(readerDb, tails, (tailId) => queue.loggedBody(tailId))
  const clock = manualClock()
  const log = new TestLog()
  const queue = new CommitQueue(stepped as never, {
    gatherMs: 0,
    clock,
    onError: () => {},
    onStored: ({ runId, id, firstSeq, lastSeq }) => tails.add(runId, id, firstSeq, lastSeq),
    onMerged: ({ runId, id, firstSeq, lastSeq }) => tails.merged(runId, id, firstSeq, lastSeq),
    onFolded: (runId, lastSeq) => tails.folded(runId, lastSeq),
    openLog: () => log as unknown as CommandLog,
  })
  stepped.say({ type: 'ready', log: logState(db) })
  const runs = new Map<number, LiveRun>()
  const all: LiveRun[] = []

  function bodyOf(live: LiveRun, events: number, chars: number): { lastSeq: number; body: string } {
    const seqs = Array.from({ length: events }, (_, index) => live.acknowledged + 1 + index)
    return {
      lastSeq: live.acknowledged + events,
      body: seqs.map((seq) => encodeEvent(delta(seq, 'x'.repeat(chars)))).join('\n'),
    }
  }

  function track(live: LiveRun, lastSeq: number, stored: Promise<unknown>): void {
    live.isBusy = true
    live.sent = lastSeq
    stored
      .then(
        () => (live.acknowledged = lastSeq),
        () => (live.sent = live.acknowledged),
      )
      .finally(() => (live.isBusy = false))
      .catch(() => {})
  }

  function accept(at: number): void {
    const live = { id: `run-${all.length}`, sent: 0, acknowledged: 0, isBusy: false, isEnded: false }
    all.push(live)
    runs.set(at, live)
    const { events: _events, start: _start, ...input } = acceptInput(live.id)
    const row = { runId: live.id, id: queue.tailId(), firstSeq: 1, lastSeq: 1 }
    const journal = { id: row.id, ...bodyOf(live, 1, 5) }
    const command = { ...input, claim: { node: 'n', leaseUntil: 9000, leaseNow: 0 }, attempt: 1, journal }
    track(live, 1, queue.run('accept', command, true, row))
  }

  function write(live: LiveRun, rest: object, epoch = 1): Promise<unknown> {
    const part = bodyOf(live, 1, 5)
    const row = { runId: live.id, id: queue.tailId(), firstSeq: live.acknowledged + 1, lastSeq: part.lastSeq }
    const command = { runId: live.id, epoch, afterSeq: live.acknowledged, journal: { id: row.id, ...part }, ...rest }
    return queue.run('append', command, true, row)
  }

  /** Reads the events after some of those that are acknowledged. */
  function checkRead(live: LiveRun, skip: number): void {
    const from = Math.min(skip, live.acknowledged)
    const page = reader.read(live.id, from, 1000)
    const seqs = page.events.map(({ seq }) => seq)
    const last = seqs.at(-1) ?? from
    assert.deepEqual(
      seqs,
      Array.from({ length: last - from }, (_, index) => from + 1 + index),
    )
    assert.deepEqual([page.skipped, page.nextAfter], [0, last])
    assert.ok(last >= live.acknowledged, `${last} of ${live.acknowledged} events`)
    assert.ok(last <= live.sent)
  }

  async function take(step: Step): Promise<void> {
    const live = 'run' in step ? runs.get(step.run) : undefined
    const isFree = live !== undefined && !live.isBusy && !live.isEnded
    switch (step.do) {
      case 'append': {
        if (live === undefined) accept(step.run)
        if (!isFree) break
        const { lastSeq, body } = bodyOf(live, step.events, step.chars)
        const row = { runId: live.id, id: queue.tailId(), firstSeq: live.acknowledged + 1, lastSeq }
        track(live, lastSeq, queue.appendDelta(row, 1, body, false))
        break
      }
      case 'end':
        if (!isFree) break
        track(live, live.acknowledged + 1, write(live, { run: { status: 'succeeded', endedAt: 1, release: true } }))
        live.isEnded = true
        break
      case 'restart':
        if (live !== undefined && !live.isBusy) accept(step.run)
        break
      case 'fenced':
        if (isFree) track(live, live.acknowledged, write(live, {}, 9))
        break
      case 'broken':
        // It needs the database because of the empty list of files.
        if (isFree) track(live, live.acknowledged, write(live, { messages: [strayMessage], files: [] }))
        break
      case 'apply':
        await clock.advance(applyMs)
        break
      case 'check':
        queue.run('check', null).catch(() => {})
        break
      case 'execute':
        stepped.execute()
        break
      case 'hear':
        stepped.hear()
        break
      case 'fail':
        stepped.fail(step.whole)
        break
      case 'read':
        if (live !== undefined) checkRead(live, step.skip)
    }
    // The queue sends in the next turn of the event loop, and the log takes another one.
    for (let turns = 0; turns < 3; turns += 1) await new Promise((resolve) => setImmediate(resolve))
  }

  try {
    for (const step of steps) await take(step)
    for (const live of all) checkRead(live, 0)
    checkImage(file, log.records, all)
    for (let turns = 0; turns < 50 && (!queue.isApplied || all.some(({ isBusy }) => isBusy)); turns += 1) {
      for (const name of ['execute', 'hear'] as const) await take({ do: name })
      await clock.advance(500)
    }
    for (const live of all) {
      checkRead(live, 0)
      assert.ok(!live.isBusy)
    }
  } finally {
    readerDb.close()
    db.close()
  }
}

/** What the next process finds if this one is killed now. */
function checkImage(file: string, records: readonly LogRecord[], runs: readonly LiveRun[]): void {
  const image = newFile()
  copyFileSync(file, image)
  if (existsSync(`${file}-wal`)) copyFileSync(`${file}-wal`, `${image}-wal`)
  const db = openWriter(image)
  const { applied } = logState(db)
  const writer = batchWriter(
    db,
    records.filter(({ number }) => number > applied),
  )
  assert.equal(writer.refused, 0)
  const rows = db.prepare('SELECT first_seq, last_seq, body FROM journal WHERE run_id = ? ORDER BY last_seq')
  for (const { id, acknowledged, sent } of runs) {
    const seqs: number[] = []
    for (const row of rows.all(id)) {
      const inRow = String(row['body'])
        .split('\n')
        .map((line) => (JSON.parse(line) as { seq: number }).seq)
      assert.deepEqual([inRow[0], inRow.at(-1)], [row['first_seq'], row['last_seq']])
      seqs.push(...inRow)
    }
    assert.ok(seqs.length >= acknowledged && seqs.length <= sent, `${seqs.length} of ${acknowledged} events`)
    assert.deepEqual(
      seqs,
      Array.from({ length: seqs.length }, (_, index) => index + 1),
    )
  }
  db.close()
}

test('every acknowledged event is read exactly once, at any moment, and by the next process after a kill', async () => {
  await fc.assert(fc.asyncProperty(fc.array(anyStep, { minLength: 10, maxLength: 60 }), play), { numRuns: 200 })
})
