// Contract: notes of users, and the search in them.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { NoteStore } from '../../src/stores/note-store.ts'
import type { OpenStore } from './open-store.ts'
import { beforeAndAfter, owner, start, withStore } from './store-fixtures.ts'

export function noteContract(open: OpenStore<NoteStore>): void {
  const opened = withStore(open)
  const ids = (rows: { id: string }[]) => rows.map((row) => row.id)

  describe('notes', () => {
    test(
      'are found by words, parts of words and Chinese text, for their owner only',
      opened(async ({ store, reopen }) => {
        const texts = {
          n1: 'My favourite colour is green',
          n2: '今天天气很好,适合散步',
          n3: 'Buy milk, and 100% juice',
          n4: 'green tea',
        }
        for (const [id, text] of Object.entries(texts)) await store.addNote({ id, owner, text, createdAt: start })
        await store.addNote({ id: 'theirs', owner: 'bob', text: 'green and 天气', createdAt: start })
        await store.addNote({ id: 'n1', owner, text: 'again', createdAt: start })

        for await (const from of beforeAndAfter(store, reopen)) {
          const find = async (query: string, limit = 10) => ids(await from.searchNotes(owner, query, limit))
          assert.deepEqual(await find('GREEN'), ['n4', 'n1'])
          assert.deepEqual(await find('green colour'), ['n1', 'n4'])
          assert.deepEqual(await find('天气'), ['n2'])
          assert.deepEqual(await find('适合散步'), ['n2'])
          assert.deepEqual(await find('milk?'), ['n3'])
          assert.deepEqual(await find('%'), ['n3'])
          assert.deepEqual(await find('purple'), [])
          assert.deepEqual(await find('', 2), ['n4', 'n3'])
          assert.deepEqual(await from.searchNotes('carol', 'green', 10), [])
        }
      }),
    )

    test(
      'can be searched for any text at all',
      opened(async ({ store }) => {
        await store.addNote({ id: 'n', owner, text: 'a "quoted" note', createdAt: start })
        for (const query of [
          '"',
          "'; DROP TABLE notes; --",
          'AND OR NOT',
          'a*',
          'NEAR(',
          '^x',
          '{text}:',
          '\\',
          '_',
          '\u0000',
          '😀',
          'x'.repeat(10_000),
          '- - -',
          'a b c d e f g h i j k l m n o p q r s t',
        ]) {
          await store.searchNotes(owner, query, 5)
        }
        assert.deepEqual(ids(await store.searchNotes(owner, '"quoted"', 5)), ['n'])
      }),
    )
  })
}
