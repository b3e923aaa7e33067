// The data source of one conversation: which messages are read, and the computed title,
// summary and archive.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inConversation } from '../../../test/contracts/store-fixtures.ts'
import { assertAnswerFits } from '../../../test/support/agent-schemas.ts'
import { openContactStore } from '../../../test/support/contact-store.ts'
import { contact } from '../../../test/contracts/store-contract-contacts.ts'
import { asUser } from '../../kit/caller.ts'
import { sortedJson } from '../../kit/sorted-json.ts'
import { estimateTokens } from '../../kit/token-estimate.ts'
import type { MessageRow } from '../../stores/message-store.ts'
import { conversationSource } from './conversation.ts'
import type { Collected, JsonObject } from './source.ts'

const store = await openContactStore()
const source = conversationSource(store)
const alice = asUser('alice')
const at = Date.UTC(2026, 10, 16)
const messages = [
  { role: 'user', content: '今天天气真好' },
  { role: 'assistant', content: '是的，很适合出去散步' },
  { role: 'user', content: '有什么建议的路线吗？' },
]
const collect = (input: JsonObject, language = 'zh', operation: string | null = null): Promise<Collected> =>
  source.collect(alice, input, at, language, operation)

function message(id: string, conversationId: string, changes: Partial<MessageRow>): MessageRow {
  return {
    id,
    conversationId,
    runId: null,
    parentId: null,
    role: 'user',
    content: 'hello',
    state: 'active',
    toolCallId: null,
    metadata: {},
    createdAt: at,
    ...changes,
  }
}

test('messages of the input are read, in their order, and numbered', async () => {
  const collected = await collect({ conversationId: 'not stored', messages })

  assert.deepEqual(collected.data, {
    conversation: { id: 'not stored', complete: true },
    messages: messages.map((message, index) => ({ id: `m${index + 1}`, ...message })),
  })
  assert.deepEqual(
    collected.citable.map(({ source }) => source),
    ['m1', 'm2', 'm3'],
  )
  assert.deepEqual(collected.hashed, collected.data)
})

test('the computed title and summary quote the messages and say that no model wrote them, in both languages', async () => {
  const chinese = await collect({ conversationId: 'c', messages })
  const english = await collect({ conversationId: 'c', messages }, 'en')

  assertAnswerFits('title_summary', null, chinese)
  assertAnswerFits('title_summary', null, english)
  assert.deepEqual(chinese.computedAnswer, {
    title: '今天天气真好',
    summary:
      '对话共 3 条消息，其中用户 2 条。用户最先说“今天天气真好”；最后一条消息来自用户：“有什么建议的路线吗？”。本结果由程序根据记录计算得出，并非由语言模型撰写。',
    computed: true,
  })
  assert.match(
    String(english.computedAnswer?.['summary']),
    /^The conversation has 3 messages, 2 of them by the user\. The user began with “今天天气真好”.*not written by a language model\.$/,
  )
})

test('a stored conversation is read by its name, with its messages as citable and the name of its contact', async () => {
  await store.createContact(contact('c1', { name: '张三' }), 10)
  const rows = [
    message('one', 'k1', { content: '项目什么时候开始？' }),
    message('two', 'k1', { role: 'assistant', content: '下周一。' }),
    message('tool', 'k1', { role: 'tool', content: '{}' }),
  ]
  await store.accept({ ...inConversation('r1', 'k1', 'absent', { name: 'conv_123' }), messages: rows })
  await store.updateConversation('k1', { contactId: 'c1' }, at)

  const collected = await collect({ conversationId: 'conv_123', userId: 'alice' }, 'zh', 'archive_extract')

  assertAnswerFits('archive_brief', 'archive_extract', collected)
  assert.deepEqual(collected.citable, [
    { source: 'one', type: 'message' },
    { source: 'two', type: 'message' },
  ])
  assert.deepEqual(collected.computedAnswer?.['payload'], {
    keyPoints: ['用户：“项目什么时候开始？”'],
    decisions: [],
    actionItems: [],
    participants: ['张三'],
    contacts: [],
    events: [],
    facts: [],
    todos: [],
  })
  // The title is written back, so it must not change the hash.
  const before = sortedJson(collected.hashed)
  await store.updateConversation('k1', { title: 'new', summary: 'new' }, at + 1)
  assert.equal(sortedJson((await collect({ conversationId: 'conv_123' })).hashed), before)
})

test('a conversation that does not exist or belongs to another user is not found', async () => {
  await store.accept({
    ...inConversation('r2', 'k2', 'absent', { name: 'theirs' }),
    messages: [message('x', 'k2', {})],
  })

  await assert.rejects(collect({ conversationId: 'nowhere' }), { code: 'conversation_not_found' })
  await assert.rejects(source.collect(asUser('mallory'), { conversationId: 'theirs' }, at, 'zh', null), {
    code: 'conversation_not_found',
  })
})

test('a long conversation keeps its first and its newest messages whole; a long message is cut and says so', async () => {
  const many = Array.from({ length: 200 }, (_value, index) => ({
    role: 'user',
    content: `${index} ${'word '.repeat(150)}`,
  }))
  const long = await collect({ conversationId: 'c', messages: many })
  const read = long.data['messages'] as JsonObject[]

  assert.equal((long.data['conversation'] as JsonObject)['complete'], false)
  assert.deepEqual([read[0]?.['id'], read.at(-1)?.['id'], read[1]?.['id']], ['m1', 'm200', `m${200 - read.length + 2}`])
  assert.ok(read.every((message) => many.some(({ content }) => content === message['content'])))
  assert.ok(estimateTokens(sortedJson(long.data)) < 11_000)
  assertAnswerFits('title_summary', null, long)

  const pasted = await collect({ conversationId: 'c', messages: [{ role: 'user', content: '好'.repeat(50_000) }] })
  const [only] = pasted.data['messages'] as JsonObject[]
  assert.deepEqual([String(only?.['content']).length, only?.['contentChars']], [4001, 50_000])
  assertAnswerFits('title_summary', null, pasted)
})

test('an empty conversation has a title and a summary that say so', async () => {
  for (const language of ['zh', 'en']) {
    const collected = await collect({ conversationId: 'c', messages: [{ role: 'user', content: ' ' }] }, language)
    assertAnswerFits('title_summary', null, collected)
  }
})
