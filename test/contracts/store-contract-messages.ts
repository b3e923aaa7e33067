// Contract: pages of messages, messages in every state, and the history that a model is given.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ConversationStore } from '../../src/stores/conversation-store.ts'
import type { MessageRow, MessageStore } from '../../src/stores/message-store.ts'
import type { RunStore } from '../../src/stores/run-store.ts'
import type { OpenStore } from './open-store.ts'
import { beforeAndAfter, claimNow, endRun, inConversation, message, start, withStore, write } from './store-fixtures.ts'

export function messageContract(open: OpenStore<MessageStore & RunStore & ConversationStore>): void {
  const opened = withStore(open)
  const ids = (rows: { id: string }[]) => rows.map((row) => row.id)

  test(
    'the beginnings of messages are read by their ids',
    opened(async ({ store }) => {
      const messages = [message('m1', 'c', { content: '\u{1F600}\u{1F600}abc' }), message('m2', 'c', { content: 'x' })]
      await store.accept(inConversation('r', 'c', 'absent', { messages }))

      const found = await store.messageBeginnings(['m2', 'm1', 'nowhere'], 3)
      assert.deepEqual(Object.fromEntries(found), { m1: '\u{1F600}\u{1F600}a', m2: 'x' })
      assert.equal((await store.messageBeginnings([], 3)).size, 0)
    }),
  )

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
      'hold only active messages, and no steps that only called tools; an answer without text is one',
      opened(async ({ store }) => {
        await store.accept(
          inConversation('r', 'c', 'absent', {
            messages: [
              message('superseded', 'c', { state: 'superseded' }),
              message('abandoned', 'c', { state: 'abandoned' }),
              message('silent', 'c', { role: 'assistant', content: '', metadata: { toolCalls: [{ name: 'a' }] } }),
              message('saying', 'c', { role: 'assistant', content: 'hm', metadata: { toolCalls: [{ name: 'a' }] } }),
              message('empty', 'c', { role: 'assistant', content: '', metadata: { reasoning: '"toolCalls":' } }),
              message('shown', 'c', { role: 'assistant' }),
              message('user', 'c', { content: '' }),
            ],
          }),
        )

        assert.deepEqual(ids((await store.listMessages('c', { limit: 10 })).rows), ['saying', 'empty', 'shown', 'user'])
      }),
    )
  })

  describe('messages in every state', () => {
    test(
      'are all there, in the order of their turns, of one run where that is asked for',
      opened(async ({ store, reopen }) => {
        const { run } = await store.accept(
          inConversation('r', 'c', 'absent', { claim: claimNow, messages: [message('m1', 'c', { runId: 'r' })] }),
        )
        await store.append(
          write(run, 1, {
            messages: [
              message('m2', 'c', { runId: 'r', role: 'assistant', content: '', createdAt: start + 9 }),
              message('m3', 'c', { runId: 'r', role: 'assistant', state: 'superseded' }),
              message('m4', 'c', { runId: 'r', role: 'assistant', state: 'abandoned' }),
            ],
          }),
        )
        await endRun(store, run, 1)
        await store.accept(
          inConversation('s', 'c', 'present', { messages: [message('m5', 'c', { runId: 's', createdAt: start - 5 })] }),
        )

        for await (const found of beforeAndAfter(store, reopen)) {
          assert.deepEqual(ids(await found.allMessages('c', { limit: 100 })), ['m1', 'm2', 'm3', 'm4', 'm5'])
          assert.deepEqual(ids(await found.allMessages('c', { limit: 2 })), ['m4', 'm5'])
          assert.deepEqual(ids(await found.allMessages('c', { limit: 100, runId: 's' })), ['m5'])
        }
      }),
    )

    test(
      'change their state together; unknown ids are left out',
      opened(async ({ store, reopen }) => {
        await store.accept(
          inConversation('r', 'c', 'absent', {
            messages: [message('m1', 'c'), message('m2', 'c', { state: 'superseded' })],
          }),
        )

        await store.setMessageStates([
          { id: 'm1', state: 'superseded' },
          { id: 'nobody', state: 'active' },
          { id: 'm2', state: 'active' },
        ])

        for await (const found of beforeAndAfter(store, reopen))
          assert.deepEqual(ids((await found.listMessages('c', { limit: 10 })).rows), ['m2'])
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
        const [second] = await store.claim({ ...claimNow, limit: 1 })
        await store.append(write(second!, 1, { messages: [said('a2', 'r2', 4, { role: 'assistant' })] }))
        await store.accept(
          inConversation('r3', 'c', 'present', { expectBehind: 'r2', messages: [said('u3', 'r3', 5)] }),
        )

        assert.deepEqual(ids(await store.historyBefore('c', 'r3', 100)), ['u1', 'a1', 't1', 'u2', 'a2'])
        assert.deepEqual(ids(await store.historyBefore('c', 'r3', 2)), ['u2', 'a2'])
        assert.deepEqual(ids(await store.historyBefore('c', 'r2', 100)), ['u1', 'a1', 't1'])
        assert.deepEqual(await store.historyBefore('c', 'r1', 100), [])
        assert.deepEqual(ids(await store.historyBefore('c', 'r3', 2, 'u2')), ['a1', 't1'])
        assert.deepEqual(ids(await store.historyBefore('c', 'r3', 2, 'a1')), ['u1'])
        assert.deepEqual(await store.historyBefore('c', 'r3', 2, 'u1'), [])
      }),
    )

    test(
      'holds hidden rows, which no list shows except that of their run',
      opened(async ({ store }) => {
        const first = await store.accept(
          inConversation('r1', 'c', 'absent', { claim: claimNow, messages: [said('u1', 'r1', 1)] }),
        )
        await store.append(
          write(first.run, 1, {
            messages: [
              said('mark', 'r1', 2, { role: 'system', metadata: { context: { keptFrom: 'u1' } } }),
              said('a1', 'r1', 3, { role: 'assistant' }),
            ],
            run: { status: 'succeeded', endedAt: start + 3, release: true },
          }),
        )
        await store.accept(inConversation('r2', 'c', 'present', { messages: [said('u2', 'r2', 4)] }))

        assert.deepEqual(ids(await store.historyBefore('c', 'r2', 10)), ['u1', 'mark', 'a1'])
        assert.deepEqual(ids((await store.listMessages('c', { limit: 10 })).rows), ['u1', 'a1', 'u2'])
        assert.deepEqual(ids((await store.listMessages('c', { limit: 10, before: { id: 'u2' } })).rows), ['u1', 'a1'])
        assert.deepEqual(ids(await store.allMessages('c', { limit: 10 })), ['u1', 'a1', 'u2'])
        assert.deepEqual(ids(await store.allMessages('c', { limit: 10, runId: 'r1' })), ['u1', 'mark', 'a1'])
        assert.deepEqual(ids((await store.pageOfAllMessages('c', { limit: 10 })).rows), ['u1', 'a1', 'u2'])
        assert.deepEqual(ids((await store.pageOfAllMessages('c', { limit: 10, before: 'u2' })).rows), ['u1', 'a1'])
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
}
