// The data source of all contacts: everything is read, the most urgent are selected whole,
// and the computed plan states only what the records say.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { contactDataset } from '../../../scripts/contact-dataset.ts'
import { contact } from '../../../test/contracts/store-contract-contacts.ts'
import { assertAnswerFits } from '../../../test/support/agent-schemas.ts'
import { fillStore, openContactStore } from '../../../test/support/contact-store.ts'
import { contactSignals } from '../../contacts/signals.ts'
import { asUser } from '../../kit/caller.ts'
import { sortedJson } from '../../kit/sorted-json.ts'
import { estimateTokens } from '../../kit/token-estimate.ts'
import type { ContactActivityStore } from '../../stores/contact-activity-store.ts'
import { networkSource, type NetworkStore } from './network.ts'
import type { Collected, JsonObject } from './source.ts'

const day = 86_400_000
const at = Date.UTC(2026, 10, 16, 9)
const owner = 'alice'
const alice = asUser(owner)
const dataset = contactDataset({ owner, at })
const store = await openContactStore()
await fillStore(store, dataset)

const collect = (input: JsonObject, language = 'zh', from: NetworkStore = store, when = at): Promise<Collected> =>
  networkSource(from).collect(alice, input, when, language, null)

const followUpsOf = ({ computedAnswer }: Collected) => (computedAnswer ?? {})['followUps'] as JsonObject[]

/** All contacts by their score, computed here from the dataset. */
const ranked = dataset.contacts
  .map((contact) => {
    const of = <Row extends { contactId: string }>(rows: readonly Row[]) =>
      rows.filter((row) => row.contactId === contact.id)
    const records = {
      contact,
      events: of(dataset.events),
      todos: of(dataset.todos),
      conversations: of(dataset.conversations),
    }
    return { id: contact.id, signals: contactSignals(records, at) }
  })
  .sort((left, right) => right.signals.priorityScore - left.signals.priorityScore || (left.id < right.id ? -1 : 1))

test('all contacts are scored, and the model is given the most urgent ones, the totals and introductions', async () => {
  const { data, citable } = await collect({ limit: 10 })
  const candidates = data['candidates'] as JsonObject[]
  const totals = data['totals'] as JsonObject

  assert.deepEqual(
    candidates.map(({ contactId, priorityScore }) => [contactId, priorityScore]),
    ranked.slice(0, 10).map(({ id, signals }) => [id, signals.priorityScore]),
  )
  assert.equal(totals['contacts'], 300)
  assert.equal(
    totals['overdueTodos'],
    ranked.reduce((sum, { signals }) => sum + signals.overdueTodos, 0),
  )
  assert.equal(
    Number(totals['rising']) + Number(totals['steady']) + Number(totals['falling']) + Number(totals['silent']),
    300,
  )
  const shown = new Set(citable.map(({ source }) => source))
  assert.ok(citable.every(({ type }) => type === 'contact'))
  for (const pair of data['introductions'] as JsonObject[]) {
    for (const id of pair['contacts'] as string[]) assert.ok(shown.has(id))
  }
})

test('the computed plan fits the agent, in both languages, with every limit', async () => {
  for (const [limit, language] of [
    [1, 'zh'],
    [10, 'en'],
    [100, 'zh'],
    [100, 'en'],
  ] as const) {
    const collected = await collect({ limit }, language)
    assertAnswerFits('network_action', null, collected)
    assert.ok(followUpsOf(collected).length <= limit)
  }
  const collected = await collect({})
  assert.equal(followUpsOf(collected).length, 10)
  assert.match(
    String(collected.computedAnswer?.['synthesis']),
    /^共有 300 位联系人，.*按优先级选出 10 位跟进对象。本结果由程序根据记录计算得出/,
  )
})

test('the data stays within its budget by leaving out whole contacts, and says how many', async () => {
  const wordy = await openContactStore()
  const long = '长'.repeat(200)
  for (let index = 0; index < 120; index += 1) {
    await wordy.createContact(
      contact(`w${index}`, {
        name: `${index} ${long.slice(0, 150)}`,
        company: long,
        position: long,
        tags: [long.slice(0, 90)],
      }),
      1000,
    )
  }
  const { data } = await collect({ limit: 100 }, 'zh', wordy)
  const candidates = data['candidates'] as JsonObject[]

  assert.ok(estimateTokens(sortedJson(data)) < 10_000)
  assert.ok(candidates.length > 5 && candidates.length < 100)
  assert.equal(candidates.length + Number(data['omittedCandidates']), 100)
  assert.ok(candidates.every(({ company }) => company === long))
  assert.ok(estimateTokens(sortedJson((await collect({ limit: 100 })).data)) < 10_000)
})

test('contacts are read in batches, with a pause for other work after each', async () => {
  const events: string[] = []
  const counting: NetworkStore = {
    pageOfContacts: async (...args) => {
      events.push('page')
      setImmediate(() => events.push('other work'))
      return await store.pageOfContacts(...args)
    },
    contactActivity: async (...args: Parameters<ContactActivityStore['contactActivity']>) => {
      assert.ok(args[1].length <= 25)
      return await store.contactActivity(...args)
    },
  }
  await collect({}, 'zh', counting)

  const pages = events.filter((event) => event === 'page').length
  assert.ok(pages >= 12)
  assert.deepEqual(events, Array.from({ length: pages }, () => ['page', 'other work']).flat())
})

test('without contacts the plan says so and has one next action: add contacts', async () => {
  const empty = await openContactStore()
  const chinese = await collect({}, 'zh', empty)
  const english = await collect({}, 'en', empty)

  assertAnswerFits('network_action', null, chinese)
  assertAnswerFits('network_action', null, english)
  assert.deepEqual(chinese.computedAnswer, {
    followUps: [],
    recommendations: [],
    synthesis: '还没有联系人，所以没有可以跟进的对象。本结果由程序根据记录计算得出，并非由语言模型撰写。',
    nextActions: [{ action: '添加联系人', priority: 'high', estimatedTime: '10 分钟' }],
    computed: true,
  })
  assert.deepEqual(english.computedAnswer?.['nextActions'], [
    { action: 'Add contacts', priority: 'high', estimatedTime: '10 min' },
  ])
})

test('a follow-up names the signal that makes it urgent and an action that the records support', async () => {
  const small = await openContactStore()
  const record = { owner, sourceConversationId: null, sourceMessageIds: [], createdAt: at, updatedAt: at }
  await small.createContact(contact('a', { name: '张三', company: '星河科技' }), 10)
  await small.createContact(contact('b', { name: '李四', company: '星河科技', profile: { birthday: '--11-18' } }), 10)
  await small.createContact(contact('c', { name: 'Fine' }), 10)
  await small.addContactRecord('todo', {
    ...record,
    id: 't',
    contactId: 'a',
    content: '发送方案',
    status: 'pending',
    dueAt: at - 2 * day,
  })
  for (const [id, contactId, age] of [
    ['e1', 'a', 70],
    ['e2', 'b', 2],
    ['e3', 'c', 1],
  ] as const) {
    await small.addContactRecord('event', {
      ...record,
      id,
      contactId,
      title: '午餐',
      description: null,
      details: {},
      eventDate: at - age * day,
    })
  }
  const collected = await collect({}, 'zh', small)

  assertAnswerFits('network_action', null, collected)
  assert.deepEqual(collected.computedAnswer?.['followUps'], [
    {
      contactId: 'a',
      contactName: '张三',
      reason: '距上次互动已 70 天。1 项待办已逾期。',
      priority: 'medium',
      suggestedAction: '完成已逾期的待办：发送方案',
    },
    {
      contactId: 'b',
      contactName: '李四',
      reason: '2026-11-18（2 天后）生日。',
      priority: 'low',
      suggestedAction: '在 2026-11-18 送上生日祝福',
    },
  ])
  assert.deepEqual(collected.computedAnswer?.['recommendations'], [
    {
      type: 'introduction',
      description: '可以介绍张三和李四认识：同在“星河科技”。',
      contacts: ['a', 'b'],
      confidence: 0.6,
    },
  ])
})

test('the hash covers every contact and its records, and not the clock', async () => {
  const hash = async (when: number) => sortedJson((await collect({}, 'zh', store, when)).hashed)
  const first = await hash(at)

  assert.equal(await hash(at + 10 * day), first)
  const last = ranked.at(-1)?.id ?? ''
  await store.updateContact(owner, last, { company: 'changed' }, at)
  assert.notEqual(await hash(at), first)
  assert.deepEqual(
    (await networkSource(store).collect(asUser('mallory'), {}, at, 'zh', null)).data['totals'],
    (await collect({}, 'zh', await openContactStore())).data['totals'],
  )
})
