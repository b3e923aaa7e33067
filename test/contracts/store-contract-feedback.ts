// Contract: reactions to messages, and comments on them.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ConversationStore } from '../../src/stores/conversation-store.ts'
import type { FeedbackRow, FeedbackStore } from '../../src/stores/feedback-store.ts'
import type { RunStore } from '../../src/stores/run-store.ts'
import type { OpenStore } from './open-store.ts'
import { beforeAndAfter, claimNow, endRun, inConversation, message, owner, start, withStore } from './store-fixtures.ts'

export function feedbackContract(open: OpenStore<FeedbackStore & RunStore & ConversationStore>): void {
  const opened = withStore(open)

  describe('feedback', () => {
    const feedback = <Kind extends FeedbackRow['kind']>(kind: Kind, changes: Partial<FeedbackRow> = {}) => ({
      messageId: 'm',
      owner,
      text: null,
      incorrect: false,
      unhelpful: false,
      inappropriate: false,
      at: start,
      ...changes,
      kind,
    })
    const withMessage = (store: RunStore) =>
      store.accept(inConversation('r', 'c', 'absent', { messages: [message('m', 'c'), message('n', 'c')] }))

    test(
      'is one reaction: the same again takes it back, another replaces it',
      opened(async ({ store, reopen }) => {
        await withMessage(store)

        assert.deepEqual(await store.react(feedback('like')), { reaction: 'like' })
        assert.deepEqual(await store.react(feedback('like')), { reaction: null })
        assert.deepEqual(await store.react(feedback('like')), { reaction: 'like' })
        assert.deepEqual(
          await store.react(feedback('dislike', { incorrect: true, text: 'Rome is in Italy.', at: start + 1 })),
          { reaction: 'dislike' },
        )

        for await (const found of beforeAndAfter(store, reopen)) {
          assert.deepEqual(await found.feedbackOn('m', owner), [
            feedback('dislike', { incorrect: true, text: 'Rome is in Italy.', at: start + 1 }),
          ])
          assert.deepEqual([...(await found.feedbackIn('c', owner))], [['m', { reaction: 'dislike', comments: 0 }]])
        }
      }),
    )

    test(
      'holds any number of comments beside the reaction, each person’s for themselves',
      opened(async ({ store }) => {
        await withMessage(store)
        await store.react(feedback('like'))
        for (const text of ['one', 'two']) assert.equal(await store.addComment(feedback('comment', { text })), true)
        await store.addComment(feedback('comment', { owner: 'bob', messageId: 'n', text: 'mine' }))

        assert.deepEqual([...(await store.feedbackIn('c', owner))], [['m', { reaction: 'like', comments: 2 }]])
        assert.deepEqual(
          (await store.feedbackOn('m', owner)).map((row) => row.text),
          [null, 'one', 'two'],
        )
        assert.deepEqual(await store.feedbackOn('m', 'bob'), [])
      }),
    )

    test(
      'on a message that is not there is not taken, and goes with its conversation',
      opened(async ({ store }) => {
        const { run } = await store.accept(
          inConversation('r', 'c', 'absent', { claim: claimNow, messages: [message('m', 'c')] }),
        )
        await store.react(feedback('like'))
        await endRun(store, run, 1)

        assert.equal(await store.react(feedback('like', { messageId: 'nobody' })), undefined)
        assert.equal(await store.addComment(feedback('comment', { messageId: 'nobody', text: 'x' })), false)
        await store.deleteConversation('c')
        assert.deepEqual(await store.feedbackOn('m', owner), [])
        assert.deepEqual((await store.feedbackIn('c', owner)).size, 0)
      }),
    )
  })
}
