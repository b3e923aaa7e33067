// The signals of a contact: exact values at the borders of each rule.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { contactSignals, isOverdue, priorityLevel, type SignalRecords } from './signals.ts'

const hour = 3_600_000
const day = 24 * hour
const now = Date.UTC(2026, 10, 16, 9, 30)
/** Some hours before `now`, on the UTC day so many days ago. */
const daysAgo = (days: number) => now - days * day

function signals(records: Partial<SignalRecords>, at = now) {
  return contactSignals(
    { contact: { createdAt: daysAgo(10), profile: {} }, conversations: [], events: [], todos: [], ...records },
    at,
  )
}

const talks = (...ages: number[]) => ages.map((days, index) => ({ id: `c${index}`, at: daysAgo(days) }))
const event = (eventDate: number | null, id = 'e1', createdAt = daysAgo(1)) => ({
  id,
  title: 'Dinner',
  eventDate,
  createdAt,
})
const todo = (status: 'pending' | 'completed' | 'canceled', dueAt: number | null) => ({ status, dueAt })

test('a contact without records is never contacted, silent, and no risk until it is 90 days old', () => {
  assert.deepEqual(signals({}), {
    lastInteractionAt: null,
    daysSinceLastContact: null,
    interactionsLast30Days: 0,
    interactionsLast90Days: 0,
    interactionsPrevious90Days: 0,
    trend: 'silent',
    openTodos: 0,
    overdueTodos: 0,
    upcomingDates: [],
    priorityScore: 15,
    reasonTags: ['never_contacted'],
    relationshipRiskLevel: 'low',
  })
  const added = (days: number) => signals({ contact: { createdAt: daysAgo(days), profile: {} } }).relationshipRiskLevel
  assert.deepEqual([added(89), added(90)], ['low', 'medium'])
})

test('days are UTC calendar days, not periods of 24 hours', () => {
  const midnight = Date.UTC(2026, 10, 16)
  const days = (at: number, when: number) => signals({ conversations: [{ id: 'c', at }] }, when).daysSinceLastContact

  assert.equal(days(midnight - 1, midnight), 1)
  assert.equal(days(midnight, midnight + day - 1), 0)
  assert.equal(days(midnight - day, midnight + day - 1), 1)
})

test('interactions are counted in the last 30 days, the last 90, and the 90 before', () => {
  const found = signals({ conversations: talks(0, 29, 30, 89, 90, 179, 180) })

  assert.deepEqual(
    [found.interactionsLast30Days, found.interactionsLast90Days, found.interactionsPrevious90Days],
    [2, 4, 2],
  )
  assert.deepEqual([found.daysSinceLastContact, found.lastInteractionAt], [0, now])
})

test('an event is an interaction when it is over, and one without a date counts when it was written', () => {
  const found = signals({
    events: [event(now, 'a'), event(now + 1, 'b'), event(null, 'c', daysAgo(5)), event(daysAgo(100), 'd')],
  })

  assert.deepEqual([found.interactionsLast90Days, found.interactionsPrevious90Days], [2, 1])
  assert.deepEqual(
    found.upcomingDates.map(({ eventId }) => eventId),
    ['b'],
  )
})

test('a conversation from after the given time counts as today, because the clock was set back', () => {
  const found = signals({ conversations: talks(-400) })

  assert.deepEqual([found.daysSinceLastContact, found.lastInteractionAt, found.interactionsLast30Days], [0, now, 1])
})

for (const [last, previous, trend] of [
  [0, 0, 'silent'],
  [0, 9, 'silent'],
  [1, 0, 'steady'],
  [2, 0, 'rising'],
  [2, 1, 'rising'],
  [3, 2, 'rising'],
  [4, 3, 'steady'],
  [1, 1, 'steady'],
  [3, 4, 'steady'],
  [2, 3, 'falling'],
  [1, 2, 'falling'],
] as const) {
  test(`${last} interactions in the last 90 days after ${previous} in the 90 days before are ${trend}`, () => {
    const conversations = [...talks(...Array<number>(last).fill(5)), ...talks(...Array<number>(previous).fill(100))]

    assert.equal(signals({ conversations }).trend, trend)
  })
}

test('a to-do is open while it is pending, and overdue from the day after it is due', () => {
  const found = signals({
    todos: [
      todo('pending', null),
      todo('pending', daysAgo(1)),
      todo('pending', now - 9 * hour),
      todo('pending', now + day),
      todo('completed', daysAgo(9)),
      todo('canceled', daysAgo(9)),
    ],
  })

  assert.deepEqual([found.openTodos, found.overdueTodos], [4, 1])
  assert.equal(isOverdue(todo('completed', daysAgo(9)), now), false)
})

test('dates of the next 30 days are upcoming, the nearest first, with the age that a birthday brings', () => {
  const found = signals({
    contact: { createdAt: now, profile: { birthday: '1990-11-18' } },
    events: [event(now + 30 * day, 'late'), event(now + 31 * day, 'too late'), event(now + hour, 'today')],
  })

  assert.deepEqual(found.upcomingDates, [
    { kind: 'event', eventId: 'today', title: 'Dinner', date: '2026-11-16', daysUntil: 0, age: null },
    { kind: 'birthday', eventId: null, title: '', date: '2026-11-18', daysUntil: 2, age: 36 },
    { kind: 'event', eventId: 'late', title: 'Dinner', date: '2026-12-16', daysUntil: 30, age: null },
  ])
})

test('a birthday counts on its day, over the end of the year, and on 28 February if the 29th is missing', () => {
  const next = (birthday: unknown, at: number) => {
    const [date] = signals({ contact: { createdAt: 0, profile: { birthday: birthday as string } } }, at).upcomingDates
    return date === undefined ? null : [date.date, date.daysUntil, date.age]
  }

  assert.deepEqual(next('--11-16', now), ['2026-11-16', 0, null])
  assert.deepEqual(next('2000-01-02', Date.UTC(2026, 11, 20)), ['2027-01-02', 13, 27])
  assert.deepEqual(next('2000-02-29', Date.UTC(2026, 1, 20)), ['2026-02-28', 8, 26])
  assert.deepEqual(next('2000-02-29', Date.UTC(2028, 1, 20)), ['2028-02-29', 9, 28])
  assert.deepEqual(next('2030-11-20', now), ['2026-11-20', 4, null])
  for (const wrong of ['1990', '1990-13-01', '1990-00-10', 17, null, { a: 1 }]) assert.equal(next(wrong, now), null)
})

test('the priority score is the sum of the points of its reasons, and its tags begin with the most points', () => {
  const cases: [Partial<SignalRecords>, number, string[]][] = [
    [{ conversations: talks(13) }, 2, ['active_relationship']],
    [{ conversations: talks(14) }, 12, ['getting_quiet', 'active_relationship']],
    [{ conversations: talks(30) }, 22, ['getting_quiet', 'active_relationship']],
    [{ conversations: talks(60) }, 27, ['long_silence', 'active_relationship']],
    [{ conversations: talks(90) }, 47, ['long_silence', 'interactions_stopped', 'active_relationship']],
    [{ conversations: talks(400) }, 30, ['long_silence']],
    [{ conversations: talks(1, 2) }, 9, ['interactions_rising', 'active_relationship']],
    [{ conversations: talks(1, 100, 101) }, 21, ['interactions_falling', 'active_relationship']],
    [{ conversations: talks(1), todos: [todo('pending', null)] }, 7, ['open_todos', 'active_relationship']],
    [{ conversations: talks(1), todos: [todo('pending', daysAgo(3))] }, 12, ['overdue_todos', 'active_relationship']],
    [{ conversations: talks(1), events: [event(now + 7 * day)] }, 17, ['date_this_week', 'active_relationship']],
    [{ conversations: talks(1), events: [event(now + 8 * day)] }, 10, ['date_this_month', 'active_relationship']],
  ]
  for (const [records, score, tags] of cases) {
    const found = signals(records)
    assert.deepEqual([found.priorityScore, found.reasonTags], [score, tags])
  }
})

test('the priority score is at most 100', () => {
  const found = signals({
    conversations: talks(...Array<number>(50).fill(95)),
    todos: Array(30)
      .fill(0)
      .flatMap(() => [todo('pending', daysAgo(3)), todo('pending', null)]),
    events: [event(now + day)],
  })

  assert.equal(found.priorityScore, 100)
  assert.deepEqual([59, 60, 29, 30].map(priorityLevel), ['medium', 'high', 'low', 'medium'])
})

test('the risk grows with the silence, with falling interactions and with overdue to-dos', () => {
  const risk = (records: Partial<SignalRecords>) => signals(records).relationshipRiskLevel

  assert.equal(risk({ conversations: talks(44) }), 'low')
  assert.equal(risk({ conversations: talks(45) }), 'medium')
  assert.equal(risk({ conversations: talks(89) }), 'medium')
  assert.equal(risk({ conversations: talks(90) }), 'high')
  assert.equal(risk({ conversations: talks(1, 100, 101) }), 'medium')
  assert.equal(risk({ conversations: talks(59, 100, 101) }), 'medium')
  assert.equal(risk({ conversations: talks(60, 100, 101) }), 'high')
  assert.equal(risk({ conversations: talks(1), todos: [todo('pending', daysAgo(2))] }), 'medium')
})
