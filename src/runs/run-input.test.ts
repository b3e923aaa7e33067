// Which input a run has, and which rows it adds to the stored ones.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { MessageRow } from '../stores/message-store.ts'
import type { EarlierMessage, StartRequest } from './start-request.ts'
import { runInputFor } from './run-input.ts'

const at = 7
const stored = (parts: Partial<MessageRow>): MessageRow => ({
  id: `s-${parts.content}`,
  conversationId: 'c',
  runId: 'r0',
  parentId: null,
  role: 'user',
  content: '',
  state: 'active',
  toolCallId: null,
  metadata: {},
  createdAt: 1,
  ...parts,
})

function ask(request: Partial<StartRequest>, rows: MessageRow[] = [], exists = true) {
  let count = 0
  return runInputFor(
    { owner: 'ada', family: 'agent', input: '', earlier: [], whenBusy: 'queue', idempotency: null, ...request },
    { id: '~1~c', exists },
    at,
    {
      store: {
        listMessages: async (_id, { limit }) => ({ rows: rows.slice(-limit), more: false }),
        allMessages: async (_id, { limit }) => rows.slice(-limit),
      },
      ids: () => `new-${++count}`,
    },
  )
}

const short = (rows: MessageRow[]) => rows.map(({ role, content }) => `${role}: ${content}`)
const calling: EarlierMessage = {
  role: 'assistant',
  content: '',
  toolCalls: [{ callId: 'k', name: 'look', input: {} }],
}
const result: EarlierMessage = { role: 'tool', callId: 'k', name: 'look', content: 'found' }
const earlier: EarlierMessage[] = [
  { role: 'user', content: 'before' },
  { role: 'assistant', content: 'yes' },
]

describe('a new question', () => {
  it('comes last, behind what the client sent along if nothing is stored', async () => {
    for (const exists of [true, false]) {
      const question = await ask({ input: 'now', earlier: [...earlier, calling, result] }, [], exists)

      assert.deepEqual(short(question.messages), [
        'user: before',
        'assistant: yes',
        'assistant: ',
        'tool: found',
        'user: now',
      ])
      assert.equal(question.userMessageId, question.messages.at(-1)?.id)
      assert.deepEqual([question.input, question.titleText, question.supersedes], ['now', 'now', undefined])
      const [, , called, answered] = question.messages
      assert.deepEqual(called?.metadata, { imported: true, toolCalls: [{ callId: 'k', name: 'look', input: {} }] })
      assert.deepEqual(
        [answered?.toolCallId, answered?.metadata],
        ['k', { imported: true, toolName: 'look', outcome: 'succeeded' }],
      )
      for (const row of question.messages)
        assert.deepEqual([row.runId, row.conversationId, row.createdAt, row.state], [null, '~1~c', at, 'active'])
      assert.deepEqual(question.messages[0]?.metadata, { imported: true })
    }
  })

  it('comes alone if the conversation has a history', async () => {
    const question = await ask({ input: 'now', earlier }, [stored({ content: 'old' })])

    assert.deepEqual(short(question.messages), ['user: now'])
  })
})

describe('tool results to go on from', () => {
  const asked = { continues: true as const, earlier: [...earlier, calling, result] }

  it('come with the whole list if nothing is stored, titled by the last user message', async () => {
    const question = await ask(asked, [], false)

    assert.deepEqual(short(question.messages), ['user: before', 'assistant: yes', 'assistant: ', 'tool: found'])
    assert.deepEqual([question.userMessageId, question.input, question.titleText], [null, '', 'before'])
  })

  it('come alone, with their calls, if the conversation has a history', async () => {
    const rows = [
      stored({ content: 'q' }),
      stored({ role: 'assistant', metadata: { toolCalls: [{ callId: 'k', name: 'look', input: {} }] } }),
      stored({ role: 'tool', toolCallId: 'k', content: 'of another turn' }),
      stored({
        role: 'assistant',
        content: 'done',
        metadata: { toolCalls: [{ callId: 'm', name: 'look', input: {} }] },
      }),
    ]

    assert.deepEqual(short((await ask(asked, rows)).messages), ['assistant: ', 'tool: found'])
  })

  it('are refused if the conversation ends with the same results, unless those were replaced', async () => {
    const rows = (state: MessageRow['state']) => [
      stored({ content: 'q' }),
      stored({ role: 'assistant', state, metadata: { toolCalls: [{ callId: 'k', name: 'look', input: {} }] } }),
      stored({ role: 'tool', state, toolCallId: 'k', content: 'found' }),
    ]

    await assert.rejects(ask(asked, rows('active')), { code: 'messages_invalid' })
    const answered = [...rows('active'), stored({ role: 'assistant', content: 'So it is.' })]
    await assert.rejects(ask(asked, answered), { code: 'messages_invalid' })
    assert.equal((await ask(asked, rows('superseded'))).messages.length, 2)
  })
})

describe('an answer asked for again', () => {
  it('is to the last active question, and takes the place of what is active behind it', async () => {
    const rows = [
      stored({ content: 'one' }),
      stored({ role: 'assistant', content: 'first' }),
      stored({ content: 'two' }),
      stored({ role: 'assistant', content: 'old', state: 'superseded' }),
      stored({ role: 'assistant', content: 'second' }),
      stored({ content: 'gone', state: 'abandoned' }),
    ]

    assert.deepEqual(await ask({ regenerate: true, input: 'ignored' }, rows), {
      input: 'two',
      userMessageId: 's-two',
      messages: [],
      supersedes: ['s-second'],
      titleText: 'two',
    })
  })

  it('of an earlier question replaces everything after it, and so does a question that takes its place', async () => {
    const rows = [
      stored({ content: 'one' }),
      stored({ role: 'assistant', content: 'first' }),
      stored({ role: 'assistant', content: 'old', state: 'superseded' }),
      stored({ content: 'two' }),
      stored({ role: 'assistant', content: 'second' }),
    ]

    const again = await ask({ regenerate: true, questionId: 's-one' }, rows)
    assert.deepEqual(
      [again.input, again.userMessageId, again.supersedes],
      ['one', 's-one', ['s-first', 's-two', 's-second']],
    )
    const edited = await ask({ questionId: 's-one', input: 'uno' }, rows)
    assert.deepEqual([edited.input, edited.supersedes], ['uno', ['s-one', 's-first', 's-two', 's-second']])
    assert.equal(edited.messages.length, 1)
    await assert.rejects(ask({ regenerate: true, questionId: 's-old' }, rows), { code: 'nothing_to_regenerate' })
  })

  it('is refused without a conversation, by the name that the client used, and without a question', async () => {
    await assert.rejects(ask({ regenerate: true }, [], false), { code: 'conversation_not_found', message: /"c"/ })
    await assert.rejects(ask({ regenerate: true }, [stored({ role: 'assistant', content: 'x' })]), {
      code: 'nothing_to_regenerate',
    })
  })
})
