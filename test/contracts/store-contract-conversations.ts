// Contract: conversations, pages of messages, what a model is told, notes.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { MessageRow } from '../../src/stores/message-store.ts'
import type { OpenStore } from './store-contract.ts'
import {
  claimNow,
  delta,
  endRun,
  inConversation,
  interaction,
  message,
  owner,
  start,
  beforeAndAfter,
  withStore,
  write,
} from './store-fixtures.ts'

export function conversationContract(open: OpenStore): void {
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
      'are listed last used first, also after the clock was set back',
      opened(async ({ store }) => {
        await store.accept(inConversation('r1', 'first', 'absent', { claim: claimNow }))
        await store.createConversation({ id: 'second', owner, title: null, createdAt: start + 9, updatedAt: start + 9 })
        assert.deepEqual(ids((await store.listConversations(owner, { limit: 9 })).rows), ['second', 'first'])

        const run = await store.readRun('r1')
        await store.append(write(run!, 1, { touchConversationAt: start - 1000 }))
        assert.deepEqual(ids((await store.listConversations(owner, { limit: 9 })).rows), ['first', 'second'])
        await store.renameConversation('second', 'a name', start - 2000)
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

        const renamed = await store.renameConversation('c', 'a name', start + 100)

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
        await store.renameConversation('d', 'New', start + 99)
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

        assert.deepEqual(await store.renameConversation('c', 'New', start + 1), {
          id: 'c',
          owner,
          title: 'New',
          createdAt: start,
          updatedAt: start + 1,
          lastMessageAt: null,
        })
        assert.equal(await store.renameConversation('nobody', 'New', start), undefined)
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

  describe('pages of messages', () => {
    test(
      'are the newest before the cursor, in the order of writing, whatever the clock said',
      opened(async ({ store }) => {
        const rows = [
          ['m1', 1],
          ['m3', 2],
          ['m2', 2],
          ['m5', 3],
          ['m4', 2],
        ] as const
        await store.accept(
          inConversation('r', 'c', 'absent', {
            messages: rows.map(([id, at]) => message(id, 'c', { createdAt: start + at })),
          }),
        )
        const page = async (limit: number, before?: { createdAt: number } | { id: string }) =>
          ids((await store.listMessages('c', before === undefined ? { limit } : { limit, before })).rows)

        assert.deepEqual(await page(2), ['m5', 'm4'])
        assert.deepEqual(await page(100), ['m1', 'm3', 'm2', 'm5', 'm4'])
        assert.deepEqual(await page(2, { id: 'm4' }), ['m2', 'm5'])
        assert.deepEqual(await page(2, { id: 'm5' }), ['m3', 'm2'])
        assert.deepEqual(await page(2, { id: 'm3' }), ['m1'])
        assert.deepEqual(await page(2, { createdAt: start + 2 }), ['m1'])
        assert.deepEqual(await page(2, { createdAt: start + 3 }), ['m2', 'm4'])
        assert.deepEqual(await page(2, { createdAt: start + 1 }), [])
        assert.deepEqual((await store.listMessages('nowhere', { limit: 2 })).rows, [])
      }),
    )

    test(
      'end where they have text enough, hold one message at least, and together hold every message once',
      opened(async ({ store }) => {
        const megabyte = 'x'.repeat(1024 * 1024)
        const rows = Array.from({ length: 12 }, (_, at) => message(`m${at}`, 'c', { content: megabyte }))
        rows.push(message('huge', 'c', { content: megabyte.repeat(6) }), message('last', 'c'))
        await store.accept(inConversation('r', 'c', 'absent', { messages: rows }))
        for (const read of [
          (before?: string) =>
            store.listMessages('c', { limit: 100, ...(before === undefined ? {} : { before: { id: before } }) }),
          (before?: string) =>
            store.pageOfAllMessages('c', { limit: 100, ...(before === undefined ? {} : { before }) }),
        ]) {
          const pages: string[][] = []
          let before: string | undefined
          for (;;) {
            const page = await read(before)
            pages.unshift(ids(page.rows))
            before = page.rows[0]?.id
            if (!page.more) break
          }

          assert.deepEqual(pages.flat(), ids(rows))
          assert.deepEqual(pages.at(-1), ['last'])
          assert.deepEqual(pages.at(-2), ['huge'])
          assert.ok(pages.every((page) => page.length <= 4))
        }
      }),
    )

    test(
      'say whether there are more',
      opened(async ({ store }) => {
        const rows = ['m1', 'm2', 'm3'].map((id) => message(id, 'c'))
        await store.accept(inConversation('r', 'c', 'absent', { messages: rows }))
        const more = async (limit: number) => (await store.listMessages('c', { limit })).more

        assert.deepEqual([await more(2), await more(3), await more(4)], [true, false, false])
        assert.deepEqual(await store.listMessages('nowhere', { limit: 1 }), { rows: [], more: false })
      }),
    )

    test(
      'hold only active messages, and no assistant rows without text',
      opened(async ({ store }) => {
        await store.accept(
          inConversation('r', 'c', 'absent', {
            messages: [
              message('superseded', 'c', { state: 'superseded' }),
              message('abandoned', 'c', { state: 'abandoned' }),
              message('silent', 'c', { role: 'assistant', content: '' }),
              message('shown', 'c', { role: 'assistant' }),
              message('user', 'c', { content: '' }),
            ],
          }),
        )

        assert.deepEqual(ids((await store.listMessages('c', { limit: 10 })).rows), ['shown', 'user'])
      }),
    )
  })

  describe('the history before a run', () => {
    const said = (id: string, runId: string | null, at: number, changes: Partial<MessageRow> = {}) =>
      message(id, 'c', { runId, createdAt: start + at, ...changes })

    test(
      'is in the order of turns, also when runs overlapped',
      opened(async ({ store }) => {
        const first = await store.accept(
          inConversation('r1', 'c', 'absent', { claim: claimNow, messages: [said('u1', 'r1', 1)] }),
        )
        await store.accept(
          inConversation('r2', 'c', 'present', { expectBehind: 'r1', messages: [said('u2', 'r2', 2)] }),
        )
        await store.append(
          write(first.run, 1, {
            messages: [said('a1', 'r1', 3, { role: 'assistant', content: '' }), said('t1', 'r1', 3, { role: 'tool' })],
          }),
        )
        await endRun(store, first.run, 1)
        const [second] = await store.claim({ node: 'n', now: start, leaseUntil: claimNow.leaseUntil, limit: 1 })
        await store.append(write(second!, 1, { messages: [said('a2', 'r2', 4, { role: 'assistant' })] }))
        await store.accept(
          inConversation('r3', 'c', 'present', { expectBehind: 'r2', messages: [said('u3', 'r3', 5)] }),
        )

        assert.deepEqual(ids(await store.historyBefore('c', 'r3', 100)), ['u1', 'a1', 't1', 'u2', 'a2'])
        assert.deepEqual(ids(await store.historyBefore('c', 'r3', 2)), ['u2', 'a2'])
        assert.deepEqual(ids(await store.historyBefore('c', 'r2', 100)), ['u1', 'a1', 't1'])
        assert.deepEqual(await store.historyBefore('c', 'r1', 100), [])
      }),
    )

    test(
      'holds messages without a run, hides inactive ones, and outlives expired runs',
      opened(async ({ store }) => {
        const first = await store.accept(
          inConversation('r1', 'c', 'absent', {
            claim: claimNow,
            messages: [said('given', null, 9), said('u1', 'r1', 1)],
          }),
        )
        await store.append(
          write(first.run, 1, {
            messages: [
              said('torn', 'r1', 2, { role: 'assistant', state: 'superseded' }),
              said('cut', 'r1', 2, { role: 'assistant', state: 'abandoned' }),
            ],
            run: { status: 'failed', endedAt: start + 3, release: true },
          }),
        )
        assert.deepEqual(ids(await store.historyBefore('c', 'r1', 10)), ['given'])
        assert.equal(await store.expireRuns(start + 100, 10), 1)
        await store.accept(inConversation('r2', 'c', 'present', { messages: [said('u2', 'r2', 4)] }))

        assert.deepEqual(ids(await store.historyBefore('c', 'r2', 10)), ['given', 'u1'])
      }),
    )
  })

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
