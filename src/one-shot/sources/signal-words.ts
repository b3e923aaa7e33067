// Sentences that state the signals of a contact, shared by the computed answers.

import type { ContactSignals, ReasonTag } from '../../contacts/signals.ts'
import type { UpcomingDate } from '../../contacts/upcoming-dates.ts'
import { dateOf } from '../../contacts/utc-days.ts'
import { plural, type Say, shorten } from './wording.ts'

const titleChars = 60

export function lastContactSentence(
  { lastInteractionAt, daysSinceLastContact: days }: ContactSignals,
  say: Say,
): string {
  if (lastInteractionAt === null || days === null) return say('还没有互动记录。', 'No interaction is recorded.')
  const date = dateOf(lastInteractionAt)
  return say(
    `最近一次互动在 ${date}（${daysAgo(days, say)}）。`,
    `The last interaction was on ${date} (${daysAgo(days, say)}).`,
  )
}

export function daysAgo(days: number, say: Say): string {
  return days === 0 ? say('今天', 'today') : say(`${days} 天前`, `${plural(days, 'day')} ago`)
}

export function daysAhead(days: number, say: Say): string {
  return days === 0 ? say('今天', 'today') : say(`${days} 天后`, `in ${plural(days, 'day')}`)
}

export function trendSentence(signals: ContactSignals, say: Say): string {
  const { interactionsLast90Days: last, interactionsPrevious90Days: previous, trend } = signals
  const word = {
    rising: say('频率上升', 'the frequency is rising'),
    steady: say('频率平稳', 'the frequency is steady'),
    falling: say('频率下降', 'the frequency is falling'),
    silent: say('近期没有互动', 'there was no recent interaction'),
  }[trend]
  return say(
    `近 90 天互动 ${last} 次，此前 90 天 ${previous} 次，${word}。`,
    `${plural(last, 'interaction')} in the last 90 days, ${previous} in the 90 days before: ${word}.`,
  )
}

export function todoSentence({ openTodos, overdueTodos }: ContactSignals, say: Say): string {
  if (openTodos === 0) return ''
  if (overdueTodos === 0) return say(`未完成待办 ${openTodos} 项。`, `${plural(openTodos, 'to-do')} open.`)
  return say(
    `未完成待办 ${openTodos} 项，其中 ${overdueTodos} 项已逾期。`,
    `${plural(openTodos, 'to-do')} open, ${overdueTodos} of them overdue.`,
  )
}

export function dateSentence({ kind, title, date, daysUntil, age }: UpcomingDate, say: Say): string {
  const when = `${date}（${daysAhead(daysUntil, say)}）`
  const whenEnglish = `${date} (${daysAhead(daysUntil, say)})`
  if (kind === 'event') {
    return say(`${when}有“${shorten(title, titleChars)}”。`, `“${shorten(title, titleChars)}” is on ${whenEnglish}.`)
  }
  const years = age === null ? '' : say(`，满 ${age} 岁`, `, turning ${age}`)
  return say(`${when}生日${years}。`, `Birthday on ${whenEnglish}${years}.`)
}

/** Why a contact is selected: the signals behind its reason tags, in the order of their points. */
export function reasonSentences(signals: ContactSignals, say: Say): string[] {
  const days = signals.daysSinceLastContact ?? 0
  const [next] = signals.upcomingDates
  const silence = () => say(`距上次互动已 ${days} 天。`, `The last interaction was ${plural(days, 'day')} ago.`)
  const words: Record<ReasonTag, () => string> = {
    never_contacted: () => say('还没有互动记录。', 'No interaction is recorded.'),
    long_silence: silence,
    getting_quiet: silence,
    interactions_stopped: () => trendSentence(signals, say),
    interactions_falling: () => trendSentence(signals, say),
    interactions_rising: () => trendSentence(signals, say),
    overdue_todos: () =>
      say(`${signals.overdueTodos} 项待办已逾期。`, `${plural(signals.overdueTodos, 'to-do')} overdue.`),
    open_todos: () => say(`${signals.openTodos} 项待办未完成。`, `${plural(signals.openTodos, 'to-do')} open.`),
    date_this_week: () => (next === undefined ? '' : dateSentence(next, say)),
    date_this_month: () => (next === undefined ? '' : dateSentence(next, say)),
    active_relationship: () => '',
  }
  return [...new Set(signals.reasonTags.map((tag) => words[tag]()))].filter((sentence) => sentence !== '')
}

/** Chinese sentences follow each other without a space. */
export function joinSentences(sentences: readonly string[], say: Say): string {
  return sentences.filter((sentence) => sentence !== '').join(say('', ' '))
}
