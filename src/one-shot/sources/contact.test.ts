// The data sources of one contact: which records are read, what the signals say, and the
// computed insight and brief, in Chinese and in English.

import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { contactDataset } from '../../../scripts/contact-dataset.ts'
import { inConversation } from '../../../test/contracts/store-fixtures.ts'
import { contact } from '../../../test/contracts/store-contract-contacts.ts'
import { assertAnswerFits } from '../../../test/support/agent-schemas.ts'
import { fillStore, openContactStore } from '../../../test/support/contact-store.ts'
import { asUser } from '../../kit/caller.ts'
import { sortedJson } from '../../kit/sorted-json.ts'
import { estimateTokens } from '../../kit/token-estimate.ts'
import { contactBriefSource } from './contact-brief.ts'
import { contactSource } from './contact.ts'
import type { Collected, JsonObject } from './source.ts'

const store = await openContactStore()
const insight = contactSource(store)
const brief = contactBriefSource(store)
const day = 86_400_000
const at = Date.UTC(2026, 10, 16, 9)
const owner = 'alice'
const alice = asUser(owner)

const record = (id: string, contactId = 'contact_456') => ({
  id,
  owner,
  contactId,
  sourceConversationId: null,
  sourceMessageIds: [],
  createdAt: at - 100 * day,
  updatedAt: at - 100 * day,
})
const event = (id: string, title: string, daysFromNow: number, contactId?: string) => ({
  ...record(id, contactId),
  title,
  description: null,
  details: {},
  eventDate: at + daysFromNow * day,
})

before(async () => {
  const profile = {
    birthday: '1990-11-20',
    likes: 'tea',
    otherEmails: ['secret2@example.com'],
    otherPhones: ['+86 139'],
  }
  await store.createContact(
    contact('contact_456', {
      name: '张三',
      company: '云杉资本',
      position: '投资经理',
      tags: ['客户'],
      profile,
      email: 'secret@example.com',
      phone: '+86 138',
    }),
    100,
  )
  await store.addContactRecord('event', event('e-lunch', '午餐', -62))
  await store.addContactRecord('event', event('e-old', '项目评审', -120))
  await store.addContactRecord('event', event('e-old2', '行业会议', -130))
  await store.addContactRecord('event', event('e-next', 'Demo', 5))
  await store.addContactRecord('fact', { ...record('f-tea'), content: '喜欢普洱茶', metadata: {} })
  await store.addContactRecord('todo', {
    ...record('t-late'),
    content: '发送方案',
    status: 'pending',
    dueAt: at - 3 * day,
  })
  await store.addContactRecord('todo', { ...record('t-done'), content: '回复邮件', status: 'completed', dueAt: null })
  await store.createContact(contact('lonely', { name: 'Ann', createdAt: at }), 100)
})

const collect = (input: JsonObject, language = 'zh', source = insight): Promise<Collected> =>
  source.collect(alice, input, at, language, null)

test('an insight reads the contact, its records and its signals; addresses are left out', async () => {
  const { data, citable, fields } = await collect({ contactId: 'contact_456' })
  const signals = data['signals'] as JsonObject

  assert.deepEqual([signals['daysSinceLastContact'], signals['trend'], signals['overdueTodos']], [62, 'falling', 1])
  assert.deepEqual(citable.map(({ source }) => source).toSorted(), [
    'e-lunch',
    'e-next',
    'e-old',
    'e-old2',
    'f-tea',
    't-done',
    't-late',
  ])
  assert.doesNotMatch(sortedJson(data), /secret|\+86/)
  assert.deepEqual((data['contact'] as JsonObject)['profile'], { birthday: '1990-11-20', likes: 'tea' })
  assert.deepEqual(fields, {
    confidence: 0.6,
    // 25 long silence, 15 falling, 10 overdue, 15 date this week, 6 for three interactions.
    priorityScore: 71,
    reasonTags: ['long_silence', 'interactions_falling', 'date_this_week', 'overdue_todos', 'active_relationship'],
    relationshipRiskLevel: 'high',
  })
})

test('the computed insight states the signals, cites a record for each statement, and says who computed it', async () => {
  const collected = await collect({ contactId: 'contact_456' })
  const answer = collected.computedAnswer ?? {}

  assertAnswerFits('contact_insight', null, collected)
  assert.equal(
    answer['profileSummary'],
    '张三，云杉资本，投资经理。标签：客户。最近一次互动在 2026-09-15（62 天前）。近 90 天互动 1 次，此前 90 天 2 次，频率下降。未完成待办 1 项，其中 1 项已逾期。2026-11-20（4 天后）生日，满 36 岁。本结果由程序根据记录计算得出，并非由语言模型撰写。',
  )
  assert.deepEqual(answer['risks'], [
    {
      title: '互动间隔较长',
      description: '最近一次互动在 2026-09-15（62 天前）。',
      severity: 'high',
      citations: ['e-lunch'],
    },
    {
      title: '互动减少',
      description: '近 90 天互动 1 次，此前 90 天 2 次，频率下降。',
      severity: 'high',
      citations: ['e-lunch', 'e-old', 'e-old2'],
    },
    {
      title: '待办逾期：发送方案',
      description: '待办“发送方案”应于 2026-11-13 完成，已逾期 3 天。',
      severity: 'medium',
      citations: ['t-late'],
    },
  ])
  assert.deepEqual(
    (answer['suggestedActions'] as JsonObject[]).map(({ action, urgency }) => [action, urgency]),
    [
      ['完成待办：发送方案', 'high'],
      ['发一条问候消息', 'high'],
      ['为“Demo”做准备', 'high'],
    ],
  )
  assert.deepEqual(
    (answer['citations'] as JsonObject[]).map(({ source }) => String(source)).toSorted(),
    ['e-lunch', 'e-next', 'e-old', 'e-old2', 't-late'],
    'exactly the records that a statement cites',
  )
  assert.deepEqual(answer['openingLines'], [
    '张三，你好！上次的“午餐”之后，最近怎么样？',
    '张三，你好！2026-11-21 的“Demo”还方便吗？',
    '张三，生日快乐！',
  ])
})

test('the computed insight is written in English for every language but Chinese', async () => {
  const collected = await collect({ contactId: 'contact_456' }, 'en')

  assertAnswerFits('contact_insight', null, collected)
  assert.match(
    String(collected.computedAnswer?.['profileSummary']),
    /The last interaction was on 2026-09-15 \(62 days ago\)\. 1 interaction in the last 90 days, 2 in the 90 days before/,
  )
  assert.deepEqual((await collect({ contactId: 'contact_456' }, 'fr')).computedAnswer, collected.computedAnswer)
  assert.match(
    String((await collect({ contactId: 'contact_456' }, 'zh-TW')).computedAnswer?.['profileSummary']),
    /本结果/,
  )
})

test('a contact without records has an insight without statements, and nothing is invented', async () => {
  const collected = await collect({ contactId: 'lonely' }, 'en')
  const answer = collected.computedAnswer ?? {}

  assertAnswerFits('contact_insight', null, collected)
  assert.deepEqual(
    [
      answer['relationshipSignals'],
      answer['opportunities'],
      answer['risks'],
      answer['suggestedActions'],
      answer['citations'],
    ],
    [[], [], [], [], []],
  )
  assert.deepEqual(answer['openingLines'], ['Hi Ann, how are you?'])
  assert.equal(collected.fields?.['confidence'], 0)
})

test('the depth says how many records are read', async () => {
  await store.createContact(contact('busy', { name: 'Busy' }), 100)
  for (let index = 0; index < 60; index += 1) {
    await store.addContactRecord('fact', {
      ...record(`busy-f${index}`, 'busy'),
      content: `fact ${index}`,
      metadata: {},
    })
  }
  for (let index = 0; index < 25; index += 1) {
    const name = `busy-c${index}`
    await store.accept({ ...inConversation(`busy-r${index}`, name, 'absent'), messages: [] })
    await store.updateConversation(name, { contactId: 'busy' }, at)
  }
  const counts = await Promise.all(
    ['brief', 'standard', 'deep', undefined, 'constructor'].map(async (depth) => {
      const { data } = await collect({ contactId: 'busy', ...(depth === undefined ? {} : { depth }) })
      const { conversations, facts } = data['records'] as Record<string, unknown[]>
      return [conversations?.length, facts?.length]
    }),
  )

  assert.deepEqual(counts, [
    [5, 10],
    [10, 20],
    [20, 50],
    [10, 20],
    [10, 20],
  ])
})

test('a conversation is given with its newest messages, without those of tools, and is cited by its title', async () => {
  await store.createContact(contact('talker', { name: 'Talker' }), 100)
  const message = (id: string, role: 'user' | 'assistant' | 'tool', content: string) => ({
    id,
    conversationId: 'talk',
    runId: null,
    parentId: null,
    role,
    content,
    state: 'active' as const,
    toolCallId: null,
    metadata: {},
    createdAt: at - 2 * day,
  })
  const messages = [
    message('tm1', 'user', 'Shall we meet?'),
    message('tm2', 'assistant', 'Yes.'),
    message('tm3', 'tool', '{}'),
  ]
  await store.accept({ ...inConversation('talk-r', 'talk', 'absent', { title: 'Meeting' }), messages })
  await store.updateConversation('talk', { contactId: 'talker' }, at)
  const { data, computedAnswer } = await collect({ contactId: 'talker' }, 'en')
  const { conversations } = data['records'] as Record<string, JsonObject[]>

  assert.deepEqual(conversations?.[0]?.['messages'], [
    { role: 'user', content: 'Shall we meet?' },
    { role: 'assistant', content: 'Yes.' },
  ])
  assert.deepEqual(computedAnswer?.['openingLines'], ['Hi Talker, how have you been since “Meeting”?'])
  assert.match(sortedJson(computedAnswer?.['citations']), /"reference":"Conversation \(\d{4}-\d\d-\d\d\): Meeting"/)
})

test('records that do not fit are left out whole, the less important ones first', async () => {
  await store.createContact(contact('wordy', { name: 'Wordy' }), 100)
  for (let index = 0; index < 50; index += 1) {
    await store.addContactRecord('fact', {
      ...record(`w-f${index}`, 'wordy'),
      content: `${index} ${'好'.repeat(900)}`,
      metadata: {},
    })
  }
  await store.addContactRecord('todo', {
    ...record('w-t', 'wordy'),
    content: 'x'.repeat(900),
    status: 'pending',
    dueAt: null,
  })
  const { data, citable } = await collect({ contactId: 'wordy', depth: 'deep' })

  assert.ok(estimateTokens(sortedJson(data)) < 9_000)
  assert.ok(citable.some(({ source }) => source === 'w-t'))
  assert.equal(Number(data['omittedRecords']) + citable.length, 51)
  const { facts } = data['records'] as Record<string, JsonObject[]>
  assert.ok(facts?.every(({ content }) => String(content).endsWith('好')))
})

test('the hash covers the records and not the clock', async () => {
  const hash = async (when: number) =>
    sortedJson((await insight.collect(alice, { contactId: 'contact_456' }, when, 'zh', null)).hashed)
  const first = await hash(at)

  assert.equal(await hash(at + 3 * day), first)
  await store.updateContactRecord('todo', { owner, contactId: 'contact_456', id: 't-done' }, { content: 'changed' }, at)
  assert.notEqual(await hash(at), first)
})

test('a contact that does not exist or belongs to another user is not found', async () => {
  for (const source of [insight, brief]) {
    await assert.rejects(collect({ contactId: 'nobody' }, 'zh', source), { code: 'contact_not_found' })
    await assert.rejects(source.collect(asUser('mallory'), { contactId: 'contact_456' }, at, 'zh', null), {
      code: 'contact_not_found',
    })
  }
})

test('a brief holds the interactions of the last 30 days, at most ten, and what is still to come', async () => {
  await store.createContact(contact('met', { name: 'Met' }), 100)
  for (let age = 1; age <= 14; age += 1) {
    await store.addContactRecord('event', event(`met-${age}`, `Meeting ${age}`, -age, 'met'))
  }
  await store.addContactRecord('event', event('met-old', 'Old', -30, 'met'))
  const { data } = await collect({ contactId: 'met' }, 'en', brief)
  const { events } = data['records'] as Record<string, JsonObject[]>

  assert.deepEqual(
    events?.map(({ id }) => id),
    Array.from({ length: 10 }, (_value, index) => `met-${index + 1}`),
  )
})

test('the 30 days of a brief are today and the 29 days before', async () => {
  await store.createContact(contact('edge', { name: 'Edge' }), 100)
  for (const age of [0, 29, 30]) await store.addContactRecord('event', event(`edge-${age}`, 'x', -age, 'edge'))
  const { citable } = await collect({ contactId: 'edge' }, 'en', brief)

  assert.deepEqual(
    citable.map(({ source }) => source),
    ['edge-0', 'edge-29'],
  )
})

test('the computed brief has the three sections, quotes the records and escapes their markup', async () => {
  await store.addContactRecord('fact', { ...record('f-html'), content: '<b>*bold*</b>', metadata: {} })
  const collected = await collect({ contactId: 'contact_456' }, 'zh', brief)

  assertAnswerFits('archive_brief', 'brief_generate', collected)
  assert.equal(
    collected.computedAnswer?.['content'],
    `## 关系背景

张三，云杉资本，投资经理。最近一次互动在 2026-09-15（62 天前）。近 90 天互动 1 次，此前 90 天 2 次，频率下降。未完成待办 1 项，其中 1 项已逾期。
- \\<b\\>\\*bold\\*\\</b\\>
- 喜欢普洱茶

## 最近交互

最近 30 天没有互动记录。

## 建议话题

- 待办：发送方案（到期日 2026-11-13，已逾期）
- 2026-11-21 Demo
- 2026-11-20（4 天后）生日，满 36 岁。

> 本结果由程序根据记录计算得出，并非由语言模型撰写。
`,
  )
  assertAnswerFits('archive_brief', 'brief_generate', await collect({ contactId: 'lonely' }, 'en', brief))
})

test('every contact of the dataset has computed answers that fit, in both languages', async () => {
  const other = await openContactStore()
  await fillStore(other, contactDataset({ owner, at, contacts: 60 }))
  for (let index = 1; index <= 60; index += 1) {
    const input = { contactId: `contact_${String(index).padStart(4, '0')}`, depth: 'deep' }
    for (const language of ['zh', 'en']) {
      assertAnswerFits('contact_insight', null, await contactSource(other).collect(alice, input, at, language, null))
      assertAnswerFits(
        'archive_brief',
        'brief_generate',
        await contactBriefSource(other).collect(alice, input, at, language, null),
      )
    }
  }
})

test('texts as long as the store takes them still give answers that fit', async () => {
  const long = '长😀"\n'.repeat(2500)
  const [name, title] = [long.slice(0, 200), long.slice(0, 500)]
  await store.createContact(
    contact('long', {
      name,
      company: name,
      position: name,
      tags: Array.from({ length: 50 }, (_value, index) => `${index}${long.slice(0, 90)}`),
    }),
    100,
  )
  for (let index = 0; index < 30; index += 1) {
    await store.addContactRecord('event', { ...event(`l-e${index}`, title, index - 15, 'long'), description: long })
    await store.addContactRecord('todo', {
      ...record(`l-t${index}`, 'long'),
      content: long,
      status: 'pending',
      dueAt: at - index * day,
    })
    await store.addContactRecord('fact', { ...record(`l-f${index}`, 'long'), content: long, metadata: {} })
  }
  for (const language of ['zh', 'en']) {
    assertAnswerFits('contact_insight', null, await collect({ contactId: 'long', depth: 'deep' }, language))
    assertAnswerFits('archive_brief', 'brief_generate', await collect({ contactId: 'long' }, language, brief))
  }
})
