// The signals of a few hundred contacts, computed a second time by other means: SQL over
// calendar dates as text, and introductions by comparing every contact with every other.

import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { contactDataset, type ContactDataset } from '../../scripts/contact-dataset.ts'
import { introductions } from '../../src/contacts/introductions.ts'
import { contactSignals, type ContactSignals } from '../../src/contacts/signals.ts'

const at = Date.UTC(2026, 10, 16, 9, 30)
const dataset = contactDataset({ owner: 'user_123', at })

function signalsOf(dataset: ContactDataset, now: number): Map<string, ContactSignals> {
  const of = <Row extends { contactId: string }>(rows: readonly Row[]) =>
    Map.groupBy(rows, ({ contactId }) => contactId)
  const [events, todos, conversations] = [of(dataset.events), of(dataset.todos), of(dataset.conversations)]
  return new Map(
    dataset.contacts.map((contact) => {
      const records = {
        contact,
        events: events.get(contact.id) ?? [],
        todos: todos.get(contact.id) ?? [],
        conversations: conversations.get(contact.id) ?? [],
      }
      return [contact.id, contactSignals(records, now)]
    }),
  )
}

function database({ contacts, events, todos, conversations }: ContactDataset, now: number): DatabaseSync {
  const db = new DatabaseSync(':memory:')
  db.exec(`
    CREATE TABLE clock (now TEXT, today TEXT);
    CREATE TABLE contact (id TEXT PRIMARY KEY, birthday TEXT, created TEXT);
    CREATE TABLE meeting (contact TEXT, time TEXT);
    CREATE TABLE future (contact TEXT, id TEXT, date TEXT);
    CREATE TABLE todo (contact TEXT, status TEXT, due TEXT);`)
  const time = (value: number) => new Date(value).toISOString()
  db.prepare('INSERT INTO clock VALUES (?, ?)').run(time(now), time(now).slice(0, 10))
  for (const { id, profile, createdAt } of contacts) {
    const birthday = (profile['birthday'] as string | undefined) ?? null
    db.prepare('INSERT INTO contact VALUES (?, ?, ?)').run(id, birthday, time(createdAt))
  }
  for (const { contactId, at } of conversations) {
    db.prepare('INSERT INTO meeting VALUES (?, ?)').run(contactId, time(at))
  }
  for (const { contactId, id, eventDate, createdAt } of events) {
    const date = time(eventDate ?? createdAt)
    if (date <= time(now)) db.prepare('INSERT INTO meeting VALUES (?, ?)').run(contactId, date)
    else db.prepare('INSERT INTO future VALUES (?, ?, ?)').run(contactId, id, date.slice(0, 10))
  }
  for (const { contactId, status, dueAt } of todos) {
    db.prepare('INSERT INTO todo VALUES (?, ?, ?)').run(contactId, status, dueAt === null ? null : time(dueAt))
  }
  return db
}

const countsSql = `
  WITH RECURSIVE
  calendar(date, ahead) AS (
    SELECT today, 0 FROM clock UNION ALL SELECT date(date, '+1 day'), ahead + 1 FROM calendar WHERE ahead < 30
  ),
  aged AS (SELECT contact, julianday(today) - julianday(date(time)) AS days FROM meeting, clock),
  -- Each of the next 31 days is looked at: is it the birthday, or 28 February of a year without the 29th?
  coming AS (
    SELECT contact, ahead FROM future JOIN calendar ON calendar.date = future.date
    UNION ALL
    SELECT id, ahead FROM contact JOIN calendar ON substr(date, 6) = substr(birthday, -5)
      OR (substr(birthday, -5) = '02-29' AND substr(date, 6) = '02-28' AND substr(date(date, '+1 day'), 6) = '03-01')
  ),
  counts AS (
    SELECT id,
      (SELECT min(days) FROM aged WHERE contact = id) AS days,
      (SELECT count(*) FROM aged WHERE contact = id AND days BETWEEN 0 AND 29) AS last30,
      (SELECT count(*) FROM aged WHERE contact = id AND days BETWEEN 0 AND 89) AS last90,
      (SELECT count(*) FROM aged WHERE contact = id AND days BETWEEN 90 AND 179) AS previous90,
      (SELECT count(*) FROM todo WHERE contact = id AND status = 'pending') AS open,
      (SELECT count(*) FROM todo, clock WHERE contact = id AND status = 'pending' AND date(due) < today) AS overdue,
      (SELECT count(*) FROM coming WHERE contact = id) AS dates,
      (SELECT min(ahead) FROM coming WHERE contact = id) AS nearest,
      (SELECT julianday(today) - julianday(date(created)) FROM clock) AS added
    FROM contact
  ),
  trends AS (
    SELECT *, CASE
      WHEN last90 = 0 THEN 'silent'
      WHEN last90 > 1 AND last90 / (previous90 + 0.0000001) >= 1.4999 THEN 'rising'
      WHEN last90 * 1.0 / previous90 <= 0.6667 THEN 'falling'
      ELSE 'steady' END AS trend
    FROM counts
  )
  SELECT id, days, last30, last90, previous90, trend, open, overdue, dates,
    CASE WHEN days IS NULL THEN 15 WHEN days > 89 THEN 30 WHEN days > 59 THEN 25 WHEN days > 29 THEN 20
      WHEN days > 13 THEN 10 ELSE 0 END
    + CASE trend WHEN 'falling' THEN 15 WHEN 'rising' THEN 5 WHEN 'silent' THEN iif(previous90 > 0, 15, 0) ELSE 0 END
    + min(20, overdue * 10) + min(10, (open - overdue) * 5)
    + CASE WHEN nearest IS NULL THEN 0 WHEN nearest < 8 THEN 15 ELSE 8 END
    + min(10, 2 * (last90 + previous90)) AS score,
    CASE WHEN days >= 90 OR (days >= 60 AND trend = 'falling') THEN 'high'
      WHEN days >= 45 OR trend = 'falling' OR overdue > 0 OR (days IS NULL AND added >= 90) THEN 'medium'
      ELSE 'low' END AS risk
  FROM trends ORDER BY id`

test('the dataset is the same for the same seed, and has the promised size and mixture', () => {
  assert.deepEqual(contactDataset({ owner: 'user_123', at }), dataset)
  assert.notDeepEqual(contactDataset({ owner: 'user_123', at, seed: 2 }).contacts, dataset.contacts)
  assert.equal(dataset.contacts.length, 300)
  const interactions = dataset.conversations.length + dataset.events.length
  assert.ok(interactions >= 2000 && interactions <= 6000, String(interactions))
  assert.ok(dataset.contacts.some(({ name }) => /\p{Script=Han}/u.test(name)))
  assert.ok(dataset.contacts.some(({ name }) => /^[A-Z]/.test(name)))
})

for (const now of [at, Date.UTC(2026, 10, 16), Date.UTC(2027, 1, 10, 23, 59, 59, 999), Date.UTC(2028, 1, 20)]) {
  test(`SQL over the dataset finds the same signals at ${new Date(now).toISOString()}`, () => {
    const signals = signalsOf(dataset, now)
    const db = database(dataset, now)
    const expected = db.prepare(countsSql).all()
    const found = [...signals].map(([id, signal]) => ({
      id,
      days: signal.daysSinceLastContact,
      last30: signal.interactionsLast30Days,
      last90: signal.interactionsLast90Days,
      previous90: signal.interactionsPrevious90Days,
      trend: signal.trend,
      open: signal.openTodos,
      overdue: signal.overdueTodos,
      dates: signal.upcomingDates.length,
      score: signal.priorityScore,
      risk: signal.relationshipRiskLevel,
    }))

    assert.deepEqual(
      found,
      expected.map((row) => ({ ...row })),
    )
    db.close()
    // The comparison would say little if most values were the same.
    if (now !== at) return
    for (const field of ['trend', 'risk'] as const) assert.ok(new Set(found.map((row) => row[field])).size >= 3, field)
    assert.ok(new Set(found.map(({ score }) => score)).size > 20)
  })
}

test('comparing every contact with every other finds the same introductions', () => {
  const { contacts } = dataset
  const shared = (text: string) =>
    contacts.filter(({ company, tags }) => company === text || tags.includes(text)).length
  const useful = (text: string) => shared(text) <= 12
  const expected = contacts
    .flatMap((first) =>
      contacts
        .filter((second) => first.id < second.id)
        .map((second) => {
          const company = first.company !== null && first.company === second.company && useful(first.company)
          const tags = first.tags.filter((tag) => second.tags.includes(tag) && useful(tag))
          const hundredths = 30 + (company ? 30 : 0) + 15 * tags.length
          return { pair: `${first.id} ${second.id}`, company, tags, confidence: Math.min(90, hundredths) / 100 }
        }),
    )
    .filter(({ company, tags }) => company || tags.length > 0)

  const found = introductions(contacts, 1_000_000).map(({ contacts: pair, company, tags, confidence }) => ({
    pair: pair.join(' '),
    company: company !== null,
    tags,
    confidence,
  }))

  const byPair = (rows: typeof found) =>
    rows
      .map((row) => ({ ...row, tags: row.tags.toSorted() }))
      .toSorted((left, right) => (left.pair < right.pair ? -1 : 1))
  assert.deepEqual(byPair(found), byPair(expected))
  assert.ok(found.length > 50)
})
