// Signals about one contact, computed from its records and a given time. Pure: no clock, no
// store. docs/contacts-signals.md has the same formulas for people who use the results.
//
// Days are UTC calendar days: `dayOf(now) - dayOf(at)`. So day counts change at midnight UTC
// and not with the hour, and do not depend on the time zone of the server.

import type { ContactEventRow, ContactRow, ContactTodoRow } from '../stores/contact-store.ts'
import { type UpcomingDate, upcomingDates } from './upcoming-dates.ts'
import { dayOf } from './utc-days.ts'

/** A conversation that is linked to the contact, at the time of its last message (of its creation if it has none). */
export type LinkedConversation = { id: string; at: number }

export type SignalRecords = {
  contact: Pick<ContactRow, 'createdAt' | 'profile'>
  conversations: readonly LinkedConversation[]
  events: readonly Pick<ContactEventRow, 'id' | 'title' | 'eventDate' | 'createdAt'>[]
  todos: readonly Pick<ContactTodoRow, 'status' | 'dueAt'>[]
}

export type Trend = 'rising' | 'steady' | 'falling' | 'silent'
export type RiskLevel = 'low' | 'medium' | 'high'

export type ReasonTag =
  | 'never_contacted'
  | 'long_silence'
  | 'getting_quiet'
  | 'interactions_stopped'
  | 'interactions_falling'
  | 'interactions_rising'
  | 'overdue_todos'
  | 'open_todos'
  | 'date_this_week'
  | 'date_this_month'
  | 'active_relationship'

export type ContactSignals = {
  /** Null if there was no interaction; so is `daysSinceLastContact`. */
  lastInteractionAt: number | null
  daysSinceLastContact: number | null
  interactionsLast30Days: number
  interactionsLast90Days: number
  /** The 90 days before the last 90 days. */
  interactionsPrevious90Days: number
  trend: Trend
  /** Pending, the overdue ones included. */
  openTodos: number
  overdueTodos: number
  /** In the next 30 days, the nearest first. */
  upcomingDates: UpcomingDate[]
  /** 0..100: how much the contact needs attention. */
  priorityScore: number
  /** What the score counts, the most points first. */
  reasonTags: ReasonTag[]
  relationshipRiskLevel: RiskLevel
}

type Counts = Omit<ContactSignals, 'lastInteractionAt' | 'priorityScore' | 'reasonTags' | 'relationshipRiskLevel'>

/** Linear in the number of records. */
export function contactSignals(records: SignalRecords, now: number): ContactSignals {
  const today = dayOf(now)
  let lastInteractionAt: number | null = null
  let last30 = 0
  let last90 = 0
  let previous90 = 0
  for (const at of interactionTimes(records, now)) {
    if (lastInteractionAt === null || at > lastInteractionAt) lastInteractionAt = at
    const days = today - dayOf(at)
    if (days < 30) last30 += 1
    if (days < 90) last90 += 1
    else if (days < 180) previous90 += 1
  }
  const open = records.todos.filter(({ status }) => status === 'pending')
  const counts: Counts = {
    daysSinceLastContact: lastInteractionAt === null ? null : today - dayOf(lastInteractionAt),
    interactionsLast30Days: last30,
    interactionsLast90Days: last90,
    interactionsPrevious90Days: previous90,
    trend: trendOf(last90, previous90),
    openTodos: open.length,
    overdueTodos: open.filter((todo) => isOverdue(todo, now)).length,
    upcomingDates: upcomingDates(records, now),
  }
  const reasons = reasonsOf(counts)
  return {
    lastInteractionAt,
    ...counts,
    priorityScore: reasons.reduce((sum, { points }) => sum + points, 0),
    reasonTags: reasons.map(({ tag }) => tag),
    relationshipRiskLevel: riskOf(counts, today - dayOf(records.contact.createdAt)),
  }
}

/**
 * An interaction is a linked conversation, or an event that is not in the future. A conversation with a time after `now` was
 * written before the clock was set back, and counts as today.
 */
function* interactionTimes({ conversations, events }: SignalRecords, now: number): Generator<number> {
  for (const { at } of conversations) yield Math.min(at, now)
  for (const { eventDate, createdAt } of events) {
    if (eventDate === null) yield Math.min(createdAt, now)
    else if (eventDate <= now) yield eventDate
  }
}

/** A to-do is overdue from the day after the day on which it is due. */
export function isOverdue(todo: Pick<ContactTodoRow, 'status' | 'dueAt'>, now: number): boolean {
  return todo.status === 'pending' && todo.dueAt !== null && dayOf(todo.dueAt) < dayOf(now)
}

/**
 * Compares the last 90 days with the 90 days before them.
 *   silent:  no interaction in the last 90 days
 *   rising:  at least 2, and at least one and a half times as many as before
 *   falling: at most two thirds as many as before
 *   steady:  everything else
 */
function trendOf(last90: number, previous90: number): Trend {
  if (last90 === 0) return 'silent'
  if (last90 >= 2 && 2 * last90 >= 3 * previous90) return 'rising'
  if (3 * last90 <= 2 * previous90) return 'falling'
  return 'steady'
}

type Reason = { tag: ReasonTag; points: number }

/**
 * The points of the priority score. At most one reason of each line below applies, so that the sum is at most
 * 30 + 15 + 20 + 10 + 15 + 10 = 100.
 */
function reasonsOf(counts: Counts): Reason[] {
  const notOverdue = counts.openTodos - counts.overdueTodos
  const interactions = counts.interactionsLast90Days + counts.interactionsPrevious90Days
  const reasons: (Reason | null)[] = [
    silenceReason(counts.daysSinceLastContact),
    trendReason(counts),
    counts.overdueTodos > 0 ? { tag: 'overdue_todos', points: Math.min(20, 10 * counts.overdueTodos) } : null,
    notOverdue > 0 ? { tag: 'open_todos', points: Math.min(10, 5 * notOverdue) } : null,
    dateReason(counts.upcomingDates[0]?.daysUntil),
    // A relationship in which something happened is worth more attention than an address that was never used.
    interactions > 0 ? { tag: 'active_relationship', points: Math.min(10, 2 * interactions) } : null,
  ]
  return reasons.filter((reason) => reason !== null).sort((left, right) => right.points - left.points)
}

function silenceReason(days: number | null): Reason | null {
  if (days === null) return { tag: 'never_contacted', points: 15 }
  if (days >= 90) return { tag: 'long_silence', points: 30 }
  if (days >= 60) return { tag: 'long_silence', points: 25 }
  if (days >= 30) return { tag: 'getting_quiet', points: 20 }
  if (days >= 14) return { tag: 'getting_quiet', points: 10 }
  return null
}

function trendReason({ trend, interactionsPrevious90Days }: Counts): Reason | null {
  if (trend === 'silent' && interactionsPrevious90Days > 0) return { tag: 'interactions_stopped', points: 15 }
  if (trend === 'falling') return { tag: 'interactions_falling', points: 15 }
  if (trend === 'rising') return { tag: 'interactions_rising', points: 5 }
  return null
}

function dateReason(daysUntil: number | undefined): Reason | null {
  if (daysUntil === undefined) return null
  return daysUntil <= 7 ? { tag: 'date_this_week', points: 15 } : { tag: 'date_this_month', points: 8 }
}

/**
 * The risk that the relationship is lost.
 *   high:   the last contact was 90 or more days ago; or 60 or more, and the interactions fall
 *   medium: the last contact was 45 or more days ago; or the interactions fall; or a to-do is overdue;
 *           or the contact was added 90 or more days ago and there was never an interaction
 *   low:    everything else
 */
function riskOf(counts: Counts, daysSinceAdded: number): RiskLevel {
  const { daysSinceLastContact: days, trend, overdueTodos } = counts
  if (days !== null && (days >= 90 || (days >= 60 && trend === 'falling'))) return 'high'
  if (days === null ? daysSinceAdded >= 90 : days >= 45 || trend === 'falling') return 'medium'
  return overdueTodos > 0 ? 'medium' : 'low'
}

/** High from 60 points, medium from 30. */
export function priorityLevel(score: number): RiskLevel {
  return score >= 60 ? 'high' : score >= 30 ? 'medium' : 'low'
}
