// A damaged database file: the error names the file and says what to do, at the start and while
// the server runs, and nothing is written to the file from then on.

import assert from 'node:assert/strict'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { acceptInput, claimNow } from '../../../test/contracts/store-fixtures.ts'
import { openRig, says } from '../../../test/support/run-rig.ts'
import { systemClock } from '../../kit/clock.ts'
import type { Store } from '../store.ts'
import { toStoreError } from './sqlite-errors.ts'
import { openSqliteStore } from './sqlite-store.ts'

let folder: string
let file: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'polylog-damage-'))
  file = join(folder, 'polylog.db')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const damaged = {
  code: 'store_damaged',
  retryable: false,
  message: /polylog\.db .*damaged.*restore.*backup.*move it away/,
}

const open = (onError?: (error: unknown) => void): Promise<Store> =>
  openSqliteStore({ file, clock: systemClock, commitGatherMs: 0, ...(onError === undefined ? {} : { onError }) })

/** Overwrites the first page of a table or an index. */
function damagePage(name: string): void {
  const db = new DatabaseSync(file)
  const page = Number(db.prepare('SELECT rootpage FROM sqlite_schema WHERE name = ?').get(name)?.rootpage)
  const size = Number(db.prepare('PRAGMA page_size').get()?.page_size)
  db.close()
  const handle = openSync(file, 'r+')
  writeSync(handle, Buffer.alloc(size, 0xa5), 0, size, (page - 1) * size)
  closeSync(handle)
}

describe('a database file that is damaged', () => {
  test('as a whole is named at the start, and left as it is', async () => {
    const junk = 'this is no database. '.repeat(500)
    writeFileSync(file, junk)

    await assert.rejects(open(), damaged)
    await assert.rejects(open(), damaged)

    assert.equal(readFileSync(file, 'utf8'), junk)
  })

  test('in a table that opening needs is named at the start', async () => {
    await (await open()).close()
    damagePage('journal_tail')

    await assert.rejects(open(), damaged)
  })

  test('is named too when it is only the lock file', async () => {
    writeFileSync(`${file}.lock`, 'this is no database. '.repeat(500))

    await assert.rejects(open(), { code: 'store_damaged', message: /polylog\.db\.lock .*damaged/ })
  })

  test('is found by a write: that one and all that wait are refused, and nothing is written from then on', async () => {
    await (await open()).close()
    damagePage('notes')
    const heard: unknown[] = []
    const store = await open((error) => void heard.push(error))
    await store.accept(acceptInput('r', { claim: claimNow }))
    const before = readFileSync(file)

    const note = (id: string) => store.addNote({ id, owner: 'ada', text: 'x', createdAt: 1 })
    const hit = note('one')
    await new Promise((resolve) => setImmediate(resolve))
    const waiting = note('two')
    await assert.rejects(hit, damaged)
    await assert.rejects(waiting, damaged)
    await assert.rejects(store.check(), damaged)
    await assert.rejects(store.accept(acceptInput('s')), damaged)

    assert.equal(heard.length, 1, 'the log hears of it once')
    assert.deepEqual(readFileSync(file), before)
    assert.equal((await store.readRun('r'))?.id, 'r', 'what is whole can still be read')
    await store.close()
  })

  test('is found by a read, and reported', async () => {
    await (await open()).close()
    damagePage('notes_by_owner')
    const store = await open()

    await assert.rejects(store.searchNotes('ada', '', 10), damaged)
    await store.close()
  })

  test('is not retried for ever: a run that it hits stops, and no more work is requested', async () => {
    const seen = { damage: false, claims: 0, refused: 0 }
    const broken = Object.assign(new Error('database disk image is malformed'), { errcode: 11 })
    const rig = await openRig({
      answer: async function* () {
        yield [{ type: 'text', text: 'One ' }]
        seen.damage = true
        yield* says('two.')
      },
      wrapStore: (store) => ({
        ...store,
        append: (write) => (seen.damage ? Promise.reject(toStoreError(broken, file)) : store.append(write)),
        claim: (request) => {
          seen.claims += 1
          if (seen.damage) seen.refused += 1
          return seen.damage ? Promise.reject(toStoreError(broken, file)) : store.claim(request)
        },
      }),
    })
    rig.scheduler.start()
    await rig.start()
    try {
      // The run stops, its end asks for more work, and the damage is the answer.
      while (seen.refused === 0) {
        await rig.clock.advance(5)
        await new Promise((resolve) => setImmediate(resolve))
      }

      await rig.clock.advance(3_600_000)

      assert.ok(seen.refused < 5, `asked ${seen.refused} times`)
      assert.ok(rig.complaints.length < 5, rig.complaints.join('; '))
    } finally {
      await rig.close()
    }
  })
})
