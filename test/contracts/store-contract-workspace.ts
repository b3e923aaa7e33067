// Contract: what sessions know of their files, and their to-do lists.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { FileVersionRow, TodoItem, WorkspaceStore } from '../../src/stores/workspace-store.ts'
import type { ConversationStore } from '../../src/stores/conversation-store.ts'
import type { RunStore } from '../../src/stores/run-store.ts'
import type { OpenStore } from './open-store.ts'
import { acceptInput, beforeAndAfter, claimNow, endRun, owner, start, withStore } from './store-fixtures.ts'

const read = (scope: string, path: string, hash: string): FileVersionRow => ({
  scope,
  path,
  hash,
  write: null,
  at: start,
})

const todos: TodoItem[] = [
  { id: '1', title: 'Look', status: 'completed' },
  { id: '2', title: '写报告', status: 'in_progress', assignee: 'ana', notes: 'with "quotes"\nand lines' },
]

export function workspaceContract(open: OpenStore<WorkspaceStore & RunStore & ConversationStore>): void {
  const opened = withStore(open)

  describe('files that a session knows', () => {
    test(
      'are known by session and path, replaced as a whole, and there after a restart',
      opened(async ({ store, reopen }) => {
        const written: FileVersionRow = {
          ...read('c', 'mine/a.txt', 'h2'),
          write: { key: 'run:call', before: 'h1', replacements: 3 },
        }
        const made: FileVersionRow = {
          ...read('c', 'mine/b.txt', 'h3'),
          write: { key: 'k', before: null, replacements: 0 },
        }
        await store.saveFileVersion(read('c', 'mine/a.txt', 'h1'))
        await store.saveFileVersion(written)
        await store.saveFileVersion(made)
        await store.saveFileVersion(read('d', 'mine/a.txt', 'h4'))

        for await (const from of beforeAndAfter(store, reopen)) {
          assert.deepEqual(await from.readFileVersion('c', 'mine/a.txt'), written)
          assert.deepEqual(await from.readFileVersion('c', 'mine/b.txt'), made)
          assert.deepEqual(await from.readFileVersion('d', 'mine/a.txt'), read('d', 'mine/a.txt', 'h4'))
          assert.equal(await from.readFileVersion('d', 'mine/b.txt'), undefined)
        }
      }),
    )

    test(
      'a read after a write forgets the write',
      opened(async ({ store }) => {
        await store.saveFileVersion({ ...read('c', 'a', 'h1'), write: { key: 'k', before: null, replacements: 1 } })
        await store.saveFileVersion(read('c', 'a', 'h2'))
        assert.deepEqual(await store.readFileVersion('c', 'a'), read('c', 'a', 'h2'))
      }),
    )
  })

  describe('to-do lists', () => {
    test(
      'are one for each session, replaced as a whole, and there after a restart',
      opened(async ({ store, reopen }) => {
        assert.deepEqual(await store.readTodos('c'), [])
        await store.saveTodos('c', [{ id: 'old', title: 'Old', status: 'pending' }], start)
        await store.saveTodos('c', todos, start + 1)
        await store.saveTodos('d', [], start)
        for await (const from of beforeAndAfter(store, reopen)) {
          assert.deepEqual(await from.readTodos('c'), todos)
          assert.deepEqual(await from.readTodos('d'), [])
        }
      }),
    )
  })

  test(
    'what a session knows goes with its conversation, or with its run where it has none',
    opened(async ({ store }) => {
      await store.createConversation({ id: 'c', owner, title: null, createdAt: start, updatedAt: start })
      const { run } = await store.accept(acceptInput('r', { claim: claimNow }))
      for (const scope of ['c', 'r', 'other']) {
        await store.saveTodos(scope, todos, start)
        await store.saveFileVersion(read(scope, 'a', 'h'))
      }
      await store.deleteConversation('c')
      await endRun(store, run, 1)
      assert.equal((await store.readTodos('r')).length, 2)
      assert.equal(await store.expireRuns(start + 100_000, 10), 1)

      for (const [scope, kept] of [
        ['c', false],
        ['r', false],
        ['other', true],
      ] as const) {
        assert.equal((await store.readTodos(scope)).length > 0, kept, scope)
        assert.equal((await store.readFileVersion(scope, 'a')) !== undefined, kept, scope)
      }
    }),
  )
}
