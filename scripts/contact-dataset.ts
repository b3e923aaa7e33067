// A dataset of contacts with their records, made from a seed: the same seed and time give
// the same rows. Tests import `contactDataset`; as a command it fills a running server:
//
//   node scripts/contact-dataset.ts --url http://127.0.0.1:3000 --user user_123
//
// Over HTTP the server sets the time of a conversation itself, so interactions of the past
// are sent as events.

import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import type { ContactEventRow, ContactFactRow, ContactRow, ContactTodoRow } from '../src/stores/contact-store.ts'
import { type Random, randomFrom } from '../test/support/random.ts'

/** `at` is the time of the last message. */
export type DatasetConversation = { id: string; owner: string; contactId: string; title: string; at: number }

export type ContactDataset = {
  contacts: ContactRow[]
  facts: ContactFactRow[]
  todos: ContactTodoRow[]
  events: ContactEventRow[]
  conversations: DatasetConversation[]
}

const day = 86_400_000
const families = [...'王李张刘陈杨赵黄周吴徐孙']
const givens = ['伟', '芳', '娜', '敏', '静', '丽', '强', '磊', '洋', '艳', '子涵', '雨桐', '浩然', '思远', '嘉怡']
const firstNames = [
  'Anna',
  'Ben',
  'Chloe',
  'David',
  'Elena',
  'Farid',
  'Grace',
  'Hugo',
  'Iris',
  'Jonas',
  'Kavya',
  'Liam',
]
const lastNames = ['Smith', 'Müller', 'García', 'Novak', "O'Brien", 'Okafor', 'Tanaka', 'Rossi', 'Kumar', 'Larsen']
const companies = [
  '星河科技',
  '云杉资本',
  '青禾教育',
  'Northwind',
  'Acme Robotics',
  'Blue Harbor',
  '远山设计',
  'Lumen Labs',
]
const positions = ['产品经理', '工程师', '投资经理', 'Designer', 'Founder', 'Sales lead', null]
const tags = ['同学', '前同事', '客户', '跑步', 'investor', 'speaker', 'mentor', 'climbing', '桌游', '读书会']
const meetings = ['午餐', '电话沟通', '项目评审', 'Coffee', 'Demo', 'Video call', '行业会议', 'Dinner']
const errands = ['发送方案', '回复邮件', '介绍投资人', 'Send the contract', 'Book a table', 'Share the slides']
const details = [
  '喜欢普洱茶',
  '正在学习法语',
  '养了一只猫',
  'Moved to Berlin',
  'Training for a marathon',
  'Allergic to nuts',
]
const topics = ['新项目合作', '近况', '招聘推荐', 'Budget for spring', 'Conference talk', 'Weekend trip']

/** How often a contact was met: interactions in the last 90 days, in the 90 days before, and earlier. */
const patterns: readonly [last: number, previous: number, earlier: number][] = [
  [9, 8, 6],
  [12, 4, 2],
  [3, 12, 8],
  [0, 7, 9],
  [0, 0, 10],
  [1, 0, 0],
  [0, 0, 0],
]

/** A few hundred contacts and a few thousand interactions unless `contacts` says otherwise. */
export function contactDataset(options: {
  owner: string
  at: number
  seed?: number
  contacts?: number
}): ContactDataset {
  const { owner, at } = options
  const random = randomFrom(options.seed ?? 1)
  const dataset: ContactDataset = { contacts: [], facts: [], todos: [], events: [], conversations: [] }
  for (let index = 0; index < (options.contacts ?? 300); index += 1) {
    const contact = contactOf(random, owner, at, index)
    dataset.contacts.push(contact)
    addInteractions(random, dataset, contact, at)
    addRecords(random, dataset, contact, at)
  }
  return dataset
}

function contactOf(random: Random, owner: string, at: number, index: number): ContactRow {
  const chinese = random.chance(0.6)
  const name = chinese
    ? `${random.pick(families)}${random.pick(givens)}`
    : `${random.pick(firstNames)} ${random.pick(lastNames)}`
  const createdAt = at - random.between(1, 400) * day
  const birthday = birthdayOf(random)
  return {
    owner,
    id: `contact_${String(index + 1).padStart(4, '0')}`,
    uid: null,
    name,
    alias: random.chance(0.1) ? `${name.slice(0, 1)}*` : null,
    email: random.chance(0.8) ? `person${index + 1}@example.com` : null,
    phone: random.chance(0.5) ? `+86 138 ${String(10_000_000 + index)}` : null,
    // Some companies are shared, most are not.
    company: random.chance(0.3)
      ? random.pick(companies)
      : random.chance(0.5)
        ? `Studio ${random.between(1, 200)}`
        : null,
    position: random.pick(positions),
    note: null,
    profile: birthday === null ? {} : { birthday },
    tags: [...new Set([random.pick(tags), `circle ${random.between(1, 150)}`])].filter(() => random.chance(0.6)),
    createdAt,
    updatedAt: createdAt,
  }
}

function birthdayOf(random: Random): string | null {
  if (random.chance(0.5)) return null
  const twoDigits = (value: number) => String(value).padStart(2, '0')
  const year = random.chance(0.3) ? '-' : String(random.between(487, 501) * 4)
  if (random.chance(0.05)) return `${year}-02-29`
  // 29 to 31 are left out, because not every month has them.
  return `${year}-${twoDigits(random.between(1, 12))}-${twoDigits(random.between(1, 28))}`
}

function addInteractions(random: Random, dataset: ContactDataset, contact: ContactRow, at: number): void {
  const [last, previous, earlier] = random.pick(patterns)
  const ages = [
    ...Array.from({ length: last }, () => random.between(0, 89)),
    ...Array.from({ length: previous }, () => random.between(90, 179)),
    ...Array.from({ length: earlier }, () => random.between(180, 700)),
  ]
  for (const age of ages) {
    const time = at - age * day - random.between(0, day - 1)
    const { owner, id: contactId } = contact
    if (random.chance(0.5)) {
      const id = `conv_${contactId.slice(8)}_${dataset.conversations.length}`
      dataset.conversations.push({ id, owner, contactId, title: random.pick(topics), at: time })
    } else dataset.events.push(eventOf(random, dataset, contact, time, time))
  }
}

function addRecords(random: Random, dataset: ContactDataset, contact: ContactRow, at: number): void {
  const base = (id: string, createdAt: number) => ({ ...recordBase(contact, createdAt), id })
  for (let count = random.between(0, 2); count > 0; count -= 1) {
    const id = `fact_${dataset.facts.length + 1}`
    dataset.facts.push({ ...base(id, contact.createdAt), content: random.pick(details), metadata: {} })
  }
  for (let count = random.between(0, 3); count > 0; count -= 1) {
    const id = `todo_${dataset.todos.length + 1}`
    const status = random.pick(['pending', 'pending', 'completed', 'canceled'] as const)
    const dueAt = random.chance(0.7) ? at + random.between(-30, 30) * day + random.between(0, day - 1) : null
    dataset.todos.push({ ...base(id, contact.createdAt), content: random.pick(errands), status, dueAt })
  }
  // Events that are still to come, some of them later than 30 days.
  if (random.chance(0.25)) dataset.events.push(eventOf(random, dataset, contact, at + random.between(0, 45 * day), at))
  // An event without a date counts when it was written.
  if (random.chance(0.1))
    dataset.events.push(eventOf(random, dataset, contact, null, at - random.between(0, 200) * day))
}

function eventOf(
  random: Random,
  dataset: ContactDataset,
  contact: ContactRow,
  eventDate: number | null,
  createdAt: number,
): ContactEventRow {
  const id = `event_${dataset.events.length + 1}`
  return {
    ...recordBase(contact, createdAt),
    id,
    title: random.pick(meetings),
    description: null,
    details: {},
    eventDate,
  }
}

function recordBase({ owner, id: contactId }: ContactRow, createdAt: number) {
  return { owner, contactId, sourceConversationId: null, sourceMessageIds: [], createdAt, updatedAt: createdAt }
}

/** Sends a dataset to a running server, contact by contact. A contact that exists already is left as it is. Returns the number of new ones. */
export async function sendDataset(dataset: ContactDataset, url: string, user: string): Promise<number> {
  const post = async (path: string, body: Record<string, unknown>): Promise<number> => {
    const response = await fetch(new URL(`${path}?userId=${encodeURIComponent(user)}`, url), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    const text = await response.text()
    if (!response.ok && response.status !== 409) {
      throw new Error(`POST ${path} answered ${response.status}: ${text.slice(0, 300)}`)
    }
    return response.status
  }
  let created = 0
  for (const { id, name, alias, email, phone, company, position, profile, tags } of dataset.contacts) {
    const status = await post('/v1/contacts', { id, name, alias, email, phone, company, position, profile, tags })
    if (status === 409) continue
    created += 1
    const of = <Row extends { contactId: string }>(rows: readonly Row[]) => rows.filter((row) => row.contactId === id)
    for (const { content } of of(dataset.facts)) await post(`/v1/contacts/${id}/facts`, { content })
    for (const { content, status, dueAt } of of(dataset.todos)) {
      await post(`/v1/contacts/${id}/todos`, { content, status, dueAt })
    }
    const met = of(dataset.conversations).map(({ title, at }) => ({ title, eventDate: at }))
    for (const { title, eventDate } of [...of(dataset.events), ...met]) {
      await post(`/v1/contacts/${id}/events`, { title, eventDate })
    }
  }
  return created
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      url: { type: 'string', default: 'http://127.0.0.1:3000' },
      user: { type: 'string', default: 'user_123' },
      seed: { type: 'string', default: '1' },
      contacts: { type: 'string', default: '300' },
    },
  })
  const dataset = contactDataset({
    owner: values.user,
    at: Date.now(),
    seed: Number(values.seed),
    contacts: Number(values.contacts),
  })
  const created = await sendDataset(dataset, values.url, values.user)
  console.log(
    `${created} contacts of ${values.user} were created at ${values.url}; ${dataset.contacts.length - created} existed already.`,
  )
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) await main()
