// A server that is killed while it applies an archive. The test takes the files as they are
// after the apply and cuts the write-ahead log after, and in the middle of, every commit:
// these are the files that a kill -9 at that moment leaves.

import assert from 'node:assert/strict'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemClock } from '../../src/kit/clock.ts'
import type { ArchivePayload } from '../../src/stores/archive-store.ts'
import { openSqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'
import type { Store } from '../../src/stores/store.ts'
import { apply, archive, conversation } from '../contracts/store-contract-archives.ts'
import { owner } from '../contracts/store-fixtures.ts'
import { onlyOnSqlite } from '../support/test-database.ts'

const perKind = 50
const page = { limit: 100, offset: 0 }

function largePayload(): ArchivePayload {
  const { payload } = archive('a')
  const about = { contactRef: 'c1', contactId: null, recordId: null, citations: [{ messageId: 'm1' }] }
  const texts = Array.from({ length: perKind }, (_value, index) => `text ${index}`)
  return {
    ...payload,
    events: texts.map((title) => ({ ...about, title, description: null, eventDate: null })),
    facts: texts.map((content) => ({ ...about, content })),
    todos: texts.map((content) => ({ ...about, content, dueAt: null })),
  }
}

/** How many contacts, events, facts and to-dos there are, and whether archive and conversation say that it was applied. */
async function written(store: Store): Promise<unknown[]> {
  const { rows } = await store.listContacts(owner, page)
  const counts = await Promise.all(
    (['event', 'fact', 'todo'] as const).map(async (kind) => {
      const ofEach = rows.map(({ id }) => store.listContactRecords(kind, { owner, contactId: id }, page))
      return (await Promise.all(ofEach)).reduce((sum, { total }) => sum + total, 0)
    }),
  )
  const archivedAt = (await store.readConversation('k'))?.archivedAt
  return [rows.length, ...counts, (await store.readArchive('a'))?.status, archivedAt !== null]
}

/** The lengths of the log after each commit. A frame is a header of 24 bytes and a page; the header of a commit has a size. */
function commitEnds(log: Buffer): number[] {
  const frameBytes = 24 + log.readUInt32BE(8)
  const ends: number[] = []
  for (let at = 32; at + frameBytes <= log.length; at += frameBytes) {
    if (log.readUInt32BE(at + 4) > 0) ends.push(at + frameBytes)
  }
  return ends
}

const skip = onlyOnSqlite('it cuts the write-ahead log of the file')

test(
  'a kill at any moment of applying an archive leaves all of it or nothing, and it can be applied then',
  { skip },
  async (context) => {
    const folder = mkdtempSync(join(tmpdir(), 'polylog-applying-'))
    context.after(() => rmSync(folder, { recursive: true, force: true }))
    const file = join(folder, 'store.db')
    const open = (path: string) => openSqliteStore({ clock: systemClock, file: path })
    let store = await open(file)
    await conversation(store)
    const row = await store.createArchive(archive('a', { payload: largePayload() }))
    await store.close()
    // The log is empty now, so all that follows is in it.
    store = await open(file)
    assert.equal((await apply(store, row))?.status, 'applied')
    const log = readFileSync(`${file}-wal`)
    const image = join(folder, 'image.db')
    copyFileSync(file, image)
    await store.close()

    const nothing = [0, 0, 0, 0, 'ready_for_review', false]
    const everything = [1, perKind, perKind, perKind, 'applied', true]
    const ends = commitEnds(log)
    const moments = [0, ...ends.flatMap((end, index) => [Math.floor(((ends[index - 1] ?? 32) + end) / 2), end])]
    const seen: unknown[][] = []
    for (const [index, moment] of moments.entries()) {
      const place = join(folder, `moment-${index}`)
      mkdirSync(place)
      copyFileSync(image, join(place, 'store.db'))
      if (moment > 0) writeFileSync(join(place, 'store.db-wal'), log.subarray(0, moment))
      store = await open(join(place, 'store.db'))
      const found = await written(store)
      assert.deepEqual(found, found[0] === 0 ? nothing : everything, `the log is cut at ${moment} of ${log.length}`)
      seen.push(found)
      await apply(store, row)
      assert.deepEqual(await written(store), everything)
      await store.close()
    }
    assert.deepEqual([seen[0], seen.at(-1)], [nothing, everything])
  },
)
