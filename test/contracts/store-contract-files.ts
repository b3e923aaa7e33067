// Contract: files of users, what refers to them, and when they are removed.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import type { FileRow } from '../../src/stores/file-store.ts'
import type { OpenStore } from './open-store.ts'
import {
  acceptInput,
  beforeAndAfter,
  claimedRun,
  endRun,
  inConversation,
  message,
  owner,
  start,
  withStore,
  write,
} from './store-fixtures.ts'

const plenty = 1024 * 1024 * 1024

function file(id: string, bytes: Uint8Array, changes: Partial<FileRow> = {}): FileRow {
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  return { id, owner, sha256, mediaType: 'text/plain', name: null, size: bytes.length, createdAt: start, ...changes }
}

const filePart = (row: FileRow) => ({ type: 'file', fileId: row.id, mediaType: row.mediaType, size: row.size }) as const

/** Different in every byte position, so that chunks in the wrong order are noticed. */
function bytesOf(length: number, seed = 1): Uint8Array {
  const bytes = new Uint8Array(length)
  let value = seed
  for (let at = 0; at < length; at += 1) {
    value = (Math.imul(value, 1_103_515_245) + 12_345) >>> 0
    bytes[at] = value >>> 16
  }
  return bytes
}

export function fileContract(open: OpenStore): void {
  const opened = withStore(open)

  describe('files', () => {
    test(
      'keep their bytes, whatever their size',
      opened(async ({ store, reopen }) => {
        const sizes = [1, 196_607, 196_608, 196_609, 1_000_000]
        for (const size of sizes) await store.putFile(file(`f${size}`, bytesOf(size)), bytesOf(size), plenty)

        for await (const from of beforeAndAfter(store, reopen)) {
          for (const size of sizes) {
            assert.deepEqual(await from.readFile(`f${size}`), file(`f${size}`, bytesOf(size)))
            assert.ok(Buffer.from(bytesOf(size)).equals((await from.readFileBytes(`f${size}`)) ?? new Uint8Array()))
          }
          assert.equal(await from.readFile('unknown'), undefined)
          assert.equal(await from.readFileBytes('unknown'), undefined)
        }
      }),
    )

    test(
      'are the same file if content, name and type are the same, for each owner',
      opened(async ({ store }) => {
        const bytes = bytesOf(300_000)
        const put = (id: string, changes: Partial<FileRow> = {}) =>
          store.putFile(file(id, bytes, changes), bytes, plenty)
        const ids = [
          await put('a'),
          await put('b'),
          await put('c', { name: 'x.txt' }),
          await put('d', { name: 'x.txt' }),
          await put('e', { mediaType: 'text/csv' }),
          await put('f', { owner: 'bob' }),
        ].map(({ id }) => id)

        assert.deepEqual(ids, ['a', 'a', 'c', 'c', 'e', 'f'])
        await store.deleteFile(owner, 'a')
        assert.equal((await store.readFileBytes('c'))?.length, 300_000)
        const twice = await Promise.all([put('g', { name: 'y' }), put('h', { name: 'y' })])
        assert.equal(twice[0].id, twice[1].id)
      }),
    )

    test(
      'of one owner have a limit together, in which the same bytes count once',
      opened(async ({ store }) => {
        const [first, second] = [bytesOf(600, 1), bytesOf(600, 2)]
        await store.putFile(file('a', first), first, 1000)
        await store.putFile(file('b', first, { name: 'again' }), first, 1000)

        await assert.rejects(store.putFile(file('c', second), second, 1000), { code: 'file_storage_full' })

        await store.putFile(file('theirs', second, { owner: 'bob' }), second, 1000)
        await store.deleteFile(owner, 'a')
        await assert.rejects(store.putFile(file('c', second), second, 1000), { code: 'file_storage_full' })
        await store.deleteFile(owner, 'b')
        assert.equal((await store.putFile(file('c', second), second, 1000)).id, 'c')
      }),
    )

    test(
      'are listed newest first, in pages, for their owner only',
      opened(async ({ store }) => {
        for (const [index, id] of ['a', 'b', 'c', 'd'].entries()) {
          const bytes = bytesOf(10, index + 1)
          await store.putFile(file(id, bytes, { owner: id === 'b' ? 'bob' : owner }), bytes, plenty)
        }
        const page = await store.listFiles(owner, { limit: 2 })
        const next = await store.listFiles(owner, { limit: 2, before: 'c' })

        assert.deepEqual([page.rows.map(({ id }) => id), page.more], [['d', 'c'], true])
        assert.deepEqual([next.rows.map(({ id }) => id), next.more], [['a'], false])
      }),
    )

    test(
      'are kept while a message refers to them, and go after their conversation',
      opened(async ({ store, reopen }) => {
        const row = file('f', bytesOf(10))
        await store.putFile(row, bytesOf(10), plenty)
        const parts = [{ type: 'text', text: 'look' } as const, filePart(row)]
        const asked = message('m', 'c', { parts })
        const { run } = await store.accept(inConversation('r', 'c', 'absent', { messages: [asked] }))
        const claimed = (await store.claim({ node: 'n', leaseMs: 1, limit: 1 }))[0] ?? run
        await endRun(store, claimed, 1)

        for await (const from of beforeAndAfter(store, reopen)) {
          assert.deepEqual((await from.readMessage('m'))?.parts, parts)
          assert.equal(await from.deleteFile(owner, 'f'), 'in_use')
          assert.equal(await from.expireFiles(start + 1, 10), 0)
          store = from
        }
        await store.expireRuns(start + 100_000, 10)
        assert.equal(await store.expireFiles(start + 1, 10), 0, 'the message stays after its run')
        await store.deleteConversation('c')
        assert.equal(await store.expireFiles(start, 10), 0, 'it is not old enough')
        assert.equal(await store.expireFiles(start + 1, 10), 1)
        assert.equal(await store.readFile('f'), undefined)
        assert.equal(await store.readFileBytes('f'), undefined)
      }),
    )

    test(
      'are kept while a run refers to them',
      opened(async ({ store }) => {
        for (const id of ['input', 'result']) {
          const bytes = bytesOf(10, id.length)
          await store.putFile(file(id, bytes), bytes, plenty)
        }
        const accepted = acceptInput('r', { files: ['input', 'gone'], claim: { node: 'n', leaseMs: 1 } })
        const { run } = await store.accept(accepted)
        await store.append(write(run, 1, { files: ['result', 'result', 'gone'] }))
        assert.equal(await store.expireFiles(start + 1, 10), 0)

        await endRun(store, run, 1)
        await store.expireRuns(start + 100_000, 10)

        assert.equal(await store.expireFiles(start + 1, 10), 2)
      }),
    )

    test(
      'that are put again count as new, and removals are bounded',
      opened(async ({ store }) => {
        for (const [index, id] of ['a', 'b', 'c'].entries())
          await store.putFile(file(id, bytesOf(10, index + 1)), bytesOf(10, index + 1), plenty)
        await store.putFile(file('again', bytesOf(10, 1), { createdAt: start + 5000 }), bytesOf(10, 1), plenty)

        assert.equal(await store.expireFiles(start + 1000, 1), 1)
        assert.equal(await store.expireFiles(start + 1000, 10), 1)

        assert.deepEqual(
          (await store.listFiles(owner, { limit: 10 })).rows.map(({ id }) => id),
          ['a'],
        )
      }),
    )

    test(
      'that are missing or belong to another user refuse the whole accept',
      opened(async ({ store }) => {
        const theirs = file('theirs', bytesOf(10), { owner: 'bob' })
        await store.putFile(theirs, bytesOf(10), plenty)
        for (const row of [theirs, file('unknown', bytesOf(10))]) {
          const messages = [message('m', 'c', { parts: [filePart(row)] })]
          await assert.rejects(store.accept(inConversation('r', 'c', 'absent', { messages })), {
            code: 'file_not_found',
          })
        }
        assert.equal(await store.readRun('r'), undefined)
        assert.equal(await store.readConversation('c'), undefined)
        assert.equal(await store.deleteFile(owner, 'theirs'), 'missing')
      }),
    )

    test(
      'do not disturb a run that is being written',
      opened(async ({ store }) => {
        const run = await claimedRun(store, 'r')
        const bytes = bytesOf(2_000_000)
        const stored = store.putFile(file('f', bytes), bytes, plenty)
        await store.append(write(run, 1, { run: { attempt: 2 } }))
        await stored

        assert.equal((await store.readRun('r'))?.attempt, 2)
      }),
    )
  })
}
