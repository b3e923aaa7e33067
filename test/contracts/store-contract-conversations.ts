// Contract: conversations, their lists, and their removal with everything in them.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ConversationStore } from '../../src/stores/conversation-store.ts'
import type { InteractionStore } from '../../src/stores/interaction-store.ts'
import type { MessageStore } from '../../src/stores/message-store.ts'
import type { RunStore } from '../../src/stores/run-store.ts'
import type { OpenStore } from './open-store.ts'
import {
  beforeAndAfter,
  claimNow,
  delta,
  endRun,
  inConversation,
  interaction,
  message,
  owner,
  start,
  withStore,
  write,
} from './store-fixtures.ts'

export function conversationContract(
  open: OpenStore<ConversationStore & RunStore & MessageStore & InteractionStore>,
): void {
  const opened = withStore(open)
  const ids = (rows: { id: string }[]) => rows.map((row) => row.id)

  describe('conversations', () => {
    test(
      'are listed newest first in pages without a gap, also within one millisecond',
      opened(async ({ store }) => {
        for (const [id, at] of [
          ['a', 1],
          ['b', 2],
          ['c', 2],
          ['d', 2],
          ['e', 3],
        ] as const) {
          await store.createConversation({ id, owner, title: id, createdAt: start, updatedAt: start + at })
        }
        await store.createConversation({ id: 'theirs', owner: 'bob', title: null, createdAt: start, updatedAt: start })

        const first = (await store.listConversations(owner, { limit: 2 })).rows
        const second = (await store.listConversations(owner, { limit: 2, before: first[1]! })).rows
        const third = (await store.listConversations(owner, { limit: 2, before: second[1]! })).rows

        assert.deepEqual([ids(first), ids(second), ids(third)], [['e', 'd'], ['c', 'b'], ['a']])
      }),
    )

    test(
      'are found by a part of their title or summary, page by page',
      opened(async ({ store }) => {
        for (const [id, title] of [
          ['a', 'Green tea'],
          ['b', 'Coffee'],
          ['c', 'TEA_100%'],
          ['d', null],
        ] as const) {
          await store.createConversation({ id, owner, title, createdAt: start, updatedAt: start })
        }
        await store.updateConversation('d', { summary: 'About tea.' }, start)
        await store.createConversation({ id: 'x', owner: 'bob', title: 'tea', createdAt: start, updatedAt: start })
        const find = async (search: string, before?: string) =>
          ids(
            (
              await store.listConversations(owner, {
                limit: 2,
                search,
                ...(before === undefined ? {} : { before: { id: before } }),
              })
            ).rows,
          )

        assert.deepEqual([await find('tea'), await find('tea', 'c')], [['d', 'c'], ['a']])
        assert.deepEqual([await find('a_1'), await find('%'), await find('x%')], [['c'], ['c'], []])
      }),
    )

    test(
      'can be created with a name, which each owner has once',
      opened(async ({ store }) => {
        const row = { title: null, createdAt: start, updatedAt: start }
        await store.createConversation({ ...row, id: 'a', owner, name: 'diary' })
        await store.createConversation({ ...row, id: 'b', owner: 'bob', name: 'diary' })

        await assert.rejects(store.createConversation({ ...row, id: 'c', owner, name: 'diary' }), {
          code: 'accept_stale',
        })

        assert.equal((await store.findConversationByName(owner, 'diary'))?.id, 'a')
        assert.equal((await store.findConversationByName('bob', 'diary'))?.id, 'b')
        assert.equal(await store.readConversation('c'), undefined)
      }),
    )

    test(
      'are listed last used first, also after the clock was set back',
      opened(async ({ store }) => {
        await store.accept(inConversation('r1', 'first', 'absent', { claim: claimNow }))
        await store.createConversation({ id: 'second', owner, title: null, createdAt: start + 9, updatedAt: start + 9 })
        assert.deepEqual(ids((await store.listConversations(owner, { limit: 9 })).rows), ['second', 'first'])

        const run = await store.readRun('r1')
        await store.append(write(run!, 1, { touchConversationAt: start - 1000 }))
        assert.deepEqual(ids((await store.listConversations(owner, { limit: 9 })).rows), ['first', 'second'])
        await store.updateConversation('second', { title: 'a name' }, start - 2000)
        assert.deepEqual(ids((await store.listConversations(owner, { limit: 9 })).rows), ['second', 'first'])
        const used = inConversation('r2', 'first', 'present', { expectBehind: 'r1' })
        await store.accept({ ...used, run: { ...used.run, createdAt: start - 3000 } })

        const [last, before] = (await store.listConversations(owner, { limit: 9 })).rows
        assert.deepEqual([last?.id, last?.updatedAt, before?.id], ['first', start - 3000, 'second'])
      }),
    )

    test(
      'know when their last message was written, and only that',
      opened(async ({ store }) => {
        await store.createConversation({ id: 'empty', owner, title: null, createdAt: start, updatedAt: start })
        const messages = [
          message('m1', 'c', { createdAt: start + 7 }),
          message('m2', 'c', { role: 'assistant', createdAt: start + 5 }),
        ]
        await store.accept(inConversation('r', 'c', 'absent', { messages }))

        const renamed = await store.updateConversation('c', { title: 'a name' }, start + 100)

        assert.deepEqual([renamed?.updatedAt, renamed?.lastMessageAt], [start + 100, start + 5])
        assert.equal((await store.readConversation('c'))?.lastMessageAt, start + 5)
        assert.equal((await store.readConversation('empty'))?.lastMessageAt, null)
        const listed = (await store.listConversations(owner, { limit: 9 })).rows
        assert.deepEqual(
          listed.map((row) => [row.id, row.lastMessageAt]),
          [
            ['c', start + 5],
            ['empty', null],
          ],
        )
      }),
    )

    test(
      'know when their last message came, which neither a new title, a tool nor an answer that broke off changes',
      opened(async ({ store, reopen }) => {
        const { run } = await store.accept(
          inConversation('r', 'c', 'absent', {
            claim: claimNow,
            messages: [message('asked', 'c', { createdAt: start + 1 })],
          }),
        )
        await store.accept(inConversation('other', 'd', 'absent', { messages: [message('m', 'd')] }))
        const answer = (id: string, at: number, changes = {}) =>
          message(id, 'c', { runId: 'r', role: 'assistant', createdAt: start + at, ...changes })
        await store.append(
          write(run, 1, {
            events: [],
            messages: [
              answer('first', 3),
              answer('answer', 5),
              answer('half', 6, { state: 'abandoned' }),
              answer('calls', 7, { content: '' }),
              answer('tool', 8, { role: 'tool' }),
            ],
            touchConversationAt: start + 9,
          }),
        )
        await store.updateConversation('d', { title: 'New' }, start + 99)
        await store.createConversation({ id: 'e', owner, title: null, createdAt: start + 4, updatedAt: start + 90 })

        for await (const from of beforeAndAfter(store, reopen)) {
          const list = (await from.listConversationsByLastMessage(owner, { limit: 9 })).rows
          assert.deepEqual(
            list.map(({ id, lastMessageAt }) => [id, lastMessageAt === null ? null : lastMessageAt - start]),
            [
              ['c', 5],
              ['e', null],
              ['d', 0],
            ],
          )
          const rest = (await from.listConversationsByLastMessage(owner, { limit: 9, before: list[0]! })).rows
          assert.deepEqual(ids(rest), ['e', 'd'])
        }
      }),
    )

    test(
      'are counted by the beginning of their ids, and those in which a run has not ended',
      opened(async ({ store }) => {
        for (const id of ['agt-1', 'agt-2']) {
          await store.accept(inConversation(`r-${id}`, id, 'absent', { claim: claimNow }))
        }
        await store.accept(inConversation('again', 'agt-2', 'present', { expectBehind: 'r-agt-2' }))
        await store.createConversation({ id: 'agt-3', owner, title: null, createdAt: start, updatedAt: start })
        await store.createConversation({ id: 'agt', owner, title: null, createdAt: start, updatedAt: start })
        await store.accept(inConversation('other', 'b', 'absent'))
        assert.deepEqual(await store.countConversations('agt-'), { total: 3, active: 2 })

        const run = await store.readRun('r-agt-1')
        await endRun(store, run!, run!.lastSeq)

        assert.deepEqual(await store.countConversations('agt-'), { total: 3, active: 1 })
        assert.deepEqual(await store.countConversations('nobody'), { total: 0, active: 0 })
      }),
    )

    test(
      'are renamed where they exist',
      opened(async ({ store }) => {
        await store.createConversation({ id: 'c', owner, title: 'Old', createdAt: start, updatedAt: start })

        assert.deepEqual(await store.updateConversation('c', { title: 'New' }, start + 1), {
          id: 'c',
          owner,
          title: 'New',
          summary: null,
          contactId: null,
          createdAt: start,
          updatedAt: start + 1,
          lastMessageAt: null,
          archivedAt: null,
        })
        assert.equal(await store.updateConversation('nobody', { title: 'New' }, start), undefined)
        assert.equal((await store.readConversation('c'))?.title, 'New')
      }),
    )

    test(
      'are not deleted while a run in them has not ended',
      opened(async ({ store }) => {
        const { run } = await store.accept(
          inConversation('r', 'c', 'absent', { claim: claimNow, messages: [message('m', 'c')] }),
        )

        await assert.rejects(store.deleteConversation('c'), { code: 'conversation_busy' })

        assert.ok((await store.readMessage('m')) !== undefined)
        await endRun(store, run, 1)
        assert.equal(await store.deleteConversation('c'), true)
      }),
    )

    test(
      'are deleted with everything in them, and nothing else',
      opened(async ({ store, reopen }) => {
        const accepted = await Promise.all(
          ['c', 'd'].map((id) =>
            store.accept(
              inConversation(`r-${id}`, id, 'absent', {
                claim: claimNow,
                name: `s-${id}`,
                messages: [message(`m-${id}`, id)],
                idempotency: { key: id, route: 'r', fingerprint: 'f' },
              }),
            ),
          ),
        )
        for (const { run } of accepted) {
          await store.append(
            write(run, 1, { events: [delta(2)], newInteractions: [interaction(`i-${run.id}`, run.id)] }),
          )
          await store.putBlob(`b-${run.id}`, run.id, 'body')
          await endRun(store, run, 2)
        }

        assert.equal(await store.deleteConversation('c'), true)
        assert.equal(await store.deleteConversation('c'), false)

        for await (const from of beforeAndAfter(store, reopen)) {
          const left = async (id: string) =>
            [
              await from.readConversation(id),
              await from.readRun(`r-${id}`),
              await from.readMessage(`m-${id}`),
              await from.readInteraction(`i-r-${id}`),
              await from.readBlob(`b-r-${id}`),
              await from.findIdempotent(owner, 'r', id),
              await from.findConversationByName(owner, `s-${id}`),
              (await from.readEvents(`r-${id}`, 0, 10)).events[0],
            ].filter((value) => value !== undefined).length
          assert.equal(await left('c'), 0)
          assert.equal(await left('d'), 8)
        }
      }),
    )
  })
}
