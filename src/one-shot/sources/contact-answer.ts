// The insight about a contact that code alone can give. Every statement repeats a signal or
// a record and cites the records behind it. A statement without such a record is left out,
// so a contact without records has an insight with empty lists.

import type { ContactSignals } from '../../contacts/signals.ts'
import { dateOf, dayOf } from '../../contacts/utc-days.ts'
import type { JsonValue } from '../../journal/event.ts'
import { pastInteractions, type ReadContact, type ReadRecord } from './contact-records.ts'
import {
  dateSentence,
  daysAhead,
  joinSentences,
  lastContactSentence,
  todoSentence,
  trendSentence,
} from './signal-words.ts'
import type { JsonObject } from './source.ts'
import { computedNote, plural, type Say, sayIn, shorten } from './wording.ts'

/** Statements of one kind, and records that one statement cites. */
const statementsMax = 5
const citedMax = 5

type Facts = {
  say: Say
  now: number
  name: string
  signals: ContactSignals
  /** Interactions that are over, the newest first. */
  past: ReadRecord[]
  /** Events to come, the nearest first. */
  coming: ReadRecord[]
  openTodos: ReadRecord[]
  overdueTodos: ReadRecord[]
}

export function contactAnswer({ contact, signals, records }: ReadContact, now: number, language: string): JsonObject {
  const say = sayIn(language)
  const openTodos = records.filter(({ open }) => open === true)
  const facts: Facts = {
    say,
    now,
    name: shorten(contact.name, 60),
    signals,
    past: pastInteractions(records, now),
    coming: records
      .filter(({ type, at }) => type === 'event' && at !== null && at > now)
      .toSorted((left, right) => (left.at ?? 0) - (right.at ?? 0)),
    openTodos,
    overdueTodos: openTodos.filter(({ overdue }) => overdue === true),
  }
  const lists = {
    relationshipSignals: signalStatements(facts),
    opportunities: opportunities(facts),
    risks: risks(facts),
    suggestedActions: actions(facts),
  }
  const cited = new Set(Object.values(lists).flatMap((list) => list.flatMap((item) => item['citations'] as string[])))
  // An insight without statements still says what it has read.
  const mentioned = cited.size > 0 ? records.filter(({ id }) => cited.has(id)) : records.slice(0, citedMax)
  return {
    profileSummary: profileSummary(contact, facts),
    ...lists,
    openingLines: openingLines(facts),
    citations: mentioned.map((record) => citationOf(record, say)),
    computed: true,
  }
}

/** An entry of a `citations` list. */
export function citationOf({ id, type, label, at }: ReadRecord, say: Say): JsonObject {
  const kind = {
    conversation: say('对话', 'Conversation'),
    event: say('事件', 'Event'),
    fact: say('事实', 'Fact'),
    todo: say('待办', 'To-do'),
  }[type]
  const date = at === null ? '' : say(`（${dateOf(at)}）`, ` (${dateOf(at)})`)
  const text = shorten(label, 200)
  return { source: id, type, reference: `${kind}${date}${text === '' ? '' : say(`：${text}`, `: ${text}`)}` }
}

function profileSummary(contact: ReadContact['contact'], { say, signals }: Facts): string {
  const { company, position, tags } = contact
  const work = [company, position].filter((part) => part !== null).map((part) => shorten(part, 80))
  const who = [shorten(contact.name, 100), ...work].join(say('，', ', '))
  const tagged = tags.slice(0, 5).map((tag) => shorten(tag, 30))
  const birthday = signals.upcomingDates.find(({ kind }) => kind === 'birthday')
  return joinSentences(
    [
      say(`${who}。`, `${who}.`),
      tagged.length === 0 ? '' : say(`标签：${tagged.join('、')}。`, `Tags: ${tagged.join(', ')}.`),
      lastContactSentence(signals, say),
      signals.lastInteractionAt === null ? '' : trendSentence(signals, say),
      todoSentence(signals, say),
      birthday === undefined ? '' : dateSentence(birthday, say),
      computedNote(say),
    ],
    say,
  )
}

function ids(records: readonly ReadRecord[]): JsonValue {
  return records.slice(0, citedMax).map(({ id }) => id)
}

function signalStatements({ say, signals, past, coming, openTodos, overdueTodos }: Facts): JsonObject[] {
  const { trend, interactionsLast90Days: last, interactionsPrevious90Days: previous } = signals
  const type = { rising: 'positive_trend', steady: 'steady_trend', falling: 'negative_trend', silent: 'long_silence' }[
    trend
  ]
  const doubled = trend === 'rising' ? last >= 2 * previous : previous >= 2 * last
  const strength = trend === 'steady' ? 'weak' : trend === 'silent' || doubled ? 'strong' : 'moderate'
  return [
    ...(past.length === 0 ? [] : [{ type, description: trendSentence(signals, say), strength, citations: ids(past) }]),
    ...(openTodos.length === 0
      ? []
      : [
          {
            type: 'open_commitment',
            description: todoSentence(signals, say),
            strength: overdueTodos.length > 0 ? 'strong' : 'moderate',
            citations: ids(overdueTodos.length > 0 ? overdueTodos : openTodos),
          },
        ]),
    ...coming.slice(0, 1).map((event) => ({
      type: 'upcoming_date',
      description: comingSentence(event, say, signals),
      strength: 'moderate',
      citations: ids([event]),
    })),
  ]
}

/** An event that is further away than the upcoming dates is stated with its date alone. */
function comingSentence(event: ReadRecord, say: Say, { upcomingDates }: ContactSignals): string {
  const near = upcomingDates.find(({ eventId }) => eventId === event.id)
  if (near !== undefined) return dateSentence(near, say)
  const [title, date] = [shorten(event.label, 60), dateOf(event.at ?? 0)]
  return say(`${date} 有“${title}”。`, `“${title}” is on ${date}.`)
}

function opportunities({ say, now, coming, signals }: Facts): JsonObject[] {
  return coming.slice(0, statementsMax).map((event) => ({
    title: shorten(say(`即将到来：${event.label}`, `Coming up: ${event.label}`), 80),
    description: comingSentence(event, say, signals),
    priority: dayOf(event.at ?? 0) - dayOf(now) <= 7 ? 'high' : 'medium',
    citations: ids([event]),
  }))
}

function risks({ say, now, signals, past, overdueTodos }: Facts): JsonObject[] {
  const { daysSinceLastContact: days, relationshipRiskLevel: level, trend } = signals
  const silent = days !== null && days >= 45 && past.length > 0
  const falling = trend === 'falling' && past.length > 0
  return [
    ...(silent
      ? [
          {
            title: say('互动间隔较长', 'Long time without contact'),
            description: lastContactSentence(signals, say),
            severity: level,
            citations: ids(past.slice(0, 1)),
          },
        ]
      : []),
    ...(falling
      ? [
          {
            title: say('互动减少', 'Fewer interactions'),
            description: trendSentence(signals, say),
            severity: level,
            citations: ids(past),
          },
        ]
      : []),
    ...overdueTodos.slice(0, statementsMax - 2).map((todo) => ({
      title: shorten(say(`待办逾期：${todo.label}`, `Overdue: ${todo.label}`), 80),
      description: overdueSentence(todo, now, say),
      severity: overdueDays(todo, now) > 14 ? 'high' : 'medium',
      citations: ids([todo]),
    })),
  ]
}

function overdueDays({ at }: ReadRecord, now: number): number {
  return at === null ? 0 : dayOf(now) - dayOf(at)
}

function overdueSentence(todo: ReadRecord, now: number, say: Say): string {
  const [date, days, text] = [dateOf(todo.at ?? 0), overdueDays(todo, now), shorten(todo.label, 150)]
  return say(
    `待办“${text}”应于 ${date} 完成，已逾期 ${days} 天。`,
    `The to-do “${text}” was due on ${date}, ${plural(days, 'day')} ago.`,
  )
}

function actions({ say, now, signals, past, coming, openTodos, overdueTodos }: Facts): JsonObject[] {
  const { daysSinceLastContact: days } = signals
  const finish = (todo: ReadRecord) => shorten(say(`完成待办：${todo.label}`, `Finish the to-do: ${todo.label}`), 150)
  const others = openTodos.filter(({ overdue }) => overdue !== true)
  const all = [
    ...overdueTodos.map((todo) => ({
      action: finish(todo),
      reason: overdueSentence(todo, now, say),
      urgency: 'high',
      citations: ids([todo]),
    })),
    ...(days !== null && days >= 30 && past.length > 0
      ? [
          {
            action: say('发一条问候消息', 'Send a greeting'),
            reason: lastContactSentence(signals, say),
            urgency: days >= 60 ? 'high' : 'medium',
            citations: ids(past.slice(0, 1)),
          },
        ]
      : []),
    ...coming.slice(0, 2).map((event) => ({
      action: shorten(say(`为“${event.label}”做准备`, `Prepare for “${event.label}”`), 150),
      reason: comingSentence(event, say, signals),
      urgency: dayOf(event.at ?? 0) - dayOf(now) <= 7 ? 'high' : 'medium',
      citations: ids([event]),
    })),
    ...others.map((todo) => ({
      action: finish(todo),
      reason: openSentence(todo, now, say),
      urgency: 'low',
      citations: ids([todo]),
    })),
  ]
  return all.slice(0, statementsMax)
}

function openSentence(todo: ReadRecord, now: number, say: Say): string {
  if (todo.at === null) return say('该待办尚未完成，没有到期日。', 'The to-do is open and has no due date.')
  const when = daysAhead(dayOf(todo.at) - dayOf(now), say)
  return say(`该待办到期日为 ${dateOf(todo.at)}（${when}）。`, `The to-do is due on ${dateOf(todo.at)} (${when}).`)
}

/** Lines to send. They name only what the records say: the last subject, the next event, a birthday. */
function openingLines({ say, name, signals, past, coming }: Facts): string[] {
  const talk = past.find(({ label }) => label.trim() !== '')
  const [event] = coming
  const birthday = signals.upcomingDates.find(({ kind, daysUntil }) => kind === 'birthday' && daysUntil <= 7)
  const lines = [
    talk === undefined
      ? ''
      : say(
          `${name}，你好！上次的“${shorten(talk.label, 60)}”之后，最近怎么样？`,
          `Hi ${name}, how have you been since “${shorten(talk.label, 60)}”?`,
        ),
    event === undefined
      ? ''
      : say(
          `${name}，你好！${dateOf(event.at ?? 0)} 的“${shorten(event.label, 60)}”还方便吗？`,
          `Hi ${name}, does “${shorten(event.label, 60)}” on ${dateOf(event.at ?? 0)} still suit you?`,
        ),
    birthday === undefined ? '' : say(`${name}，生日快乐！`, `Happy birthday, ${name}!`),
  ].filter((line) => line !== '')
  return lines.length > 0 ? lines : [say(`${name}，你好！最近怎么样？`, `Hi ${name}, how are you?`)]
}
