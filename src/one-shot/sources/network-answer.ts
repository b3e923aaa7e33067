// The plan for a whole network that code alone can give: the contacts with the highest
// priority with the signals that make them urgent, introductions with what the two contacts
// share, and totals. Without contacts it says so and asks to add some.

import type { Introduction } from '../../contacts/introductions.ts'
import { type ContactSignals, priorityLevel } from '../../contacts/signals.ts'
import { joinSentences, reasonSentences } from './signal-words.ts'
import type { JsonObject } from './source.ts'
import { computedNote, plural, type Say, sayIn, shorten } from './wording.ts'

/** What is kept of each contact while all are read. */
export type ScoredContact = {
  id: string
  name: string
  company: string | null
  position: string | null
  tags: string[]
  signals: ContactSignals
  /** The open to-do that is due first. */
  nextTodo: { content: string; dueAt: number | null } | null
  /** The newest conversation with a title. */
  lastSubject: string | null
}

export type NetworkTotals = {
  contacts: number
  contactedLast30Days: number
  neverContacted: number
  rising: number
  steady: number
  falling: number
  silent: number
  highPriority: number
  openTodos: number
  overdueTodos: number
  datesInNext7Days: number
}

export type NamedIntroduction = Introduction & { names: [string, string] }

export type ReadNetwork = {
  totals: NetworkTotals
  /** The contacts that need attention, the most urgent first. */
  candidates: ScoredContact[]
  introductions: NamedIntroduction[]
}

const recommendationsMax = 10
/** The estimated time of an action is this many minutes for each contact or to-do, and at most a day of work. */
const minutesEach = 10
const minutesMax = 480

export function networkAnswer({ totals, candidates, introductions }: ReadNetwork, language: string): JsonObject {
  const say = sayIn(language)
  if (totals.contacts === 0) return emptyNetwork(say)
  return {
    followUps: candidates.map((contact) => followUp(contact, say)),
    recommendations: introductions.slice(0, recommendationsMax).map((pair) => recommendation(pair, say)),
    synthesis: synthesis(totals, candidates.length, say),
    nextActions: nextActions(totals, candidates, introductions, say),
    computed: true,
  }
}

function emptyNetwork(say: Say): JsonObject {
  const none = say(
    '还没有联系人，所以没有可以跟进的对象。',
    'There are no contacts yet, so there is nobody to follow up with.',
  )
  return {
    followUps: [],
    recommendations: [],
    synthesis: joinSentences([none, computedNote(say)], say),
    nextActions: [{ action: say('添加联系人', 'Add contacts'), priority: 'high', estimatedTime: minutes(1, say) }],
    computed: true,
  }
}

function followUp(contact: ScoredContact, say: Say): JsonObject {
  return {
    contactId: contact.id,
    contactName: shorten(contact.name, 200),
    reason: shorten(joinSentences(reasonSentences(contact.signals, say).slice(0, 3), say), 500),
    priority: priorityLevel(contact.signals.priorityScore),
    suggestedAction: shorten(suggestedAction(contact, say), 200),
  }
}

/** What is promised comes first, then a date, then a greeting. */
function suggestedAction({ signals, nextTodo, lastSubject }: ScoredContact, say: Say): string {
  const [date] = signals.upcomingDates
  if (nextTodo !== null && signals.overdueTodos > 0) {
    return say(`完成已逾期的待办：${nextTodo.content}`, `Finish the overdue to-do: ${nextTodo.content}`)
  }
  if (date?.kind === 'birthday') return say(`在 ${date.date} 送上生日祝福`, `Send birthday wishes on ${date.date}`)
  if (date?.kind === 'event')
    return say(`为 ${date.date} 的“${date.title}”做准备`, `Prepare for “${date.title}” on ${date.date}`)
  if (isQuiet(signals)) {
    return lastSubject === null
      ? say('发一条问候消息', 'Send a greeting')
      : say(`发一条问候，接着上次的“${lastSubject}”聊`, `Send a greeting and take up “${lastSubject}” again`)
  }
  if (nextTodo !== null) return say(`完成待办：${nextTodo.content}`, `Finish the to-do: ${nextTodo.content}`)
  return say('发一条问候消息', 'Send a greeting')
}

function isQuiet({ daysSinceLastContact: days }: ContactSignals): boolean {
  return days === null || days >= 14
}

function recommendation({ contacts, names, company, tags, confidence }: NamedIntroduction, say: Say): JsonObject {
  const [first, second] = [shorten(names[0], 60), shorten(names[1], 60)]
  const shared = [
    company === null ? '' : say(`同在“${shorten(company, 80)}”`, `both are at “${shorten(company, 80)}”`),
    tags.length === 0 ? '' : say(`共同标签：${tagList(tags, '、')}`, `both have the tags ${tagList(tags, ', ')}`),
  ].filter((text) => text !== '')
  return {
    type: 'introduction',
    description: say(
      `可以介绍${first}和${second}认识：${shared.join('，')}。`,
      `${first} and ${second} could be introduced: ${shared.join(', and ')}.`,
    ),
    contacts: [...contacts],
    confidence,
  }
}

function tagList(tags: readonly string[], separator: string): string {
  return tags
    .slice(0, 3)
    .map((tag) => shorten(tag, 40))
    .join(separator)
}

function synthesis(totals: NetworkTotals, selected: number, say: Say): string {
  const { contacts, contactedLast30Days, falling, silent, neverContacted, openTodos, overdueTodos } = totals
  return joinSentences(
    [
      say(
        `共有 ${contacts} 位联系人，近 30 天与其中 ${contactedLast30Days} 位有过互动。`,
        `There are ${plural(contacts, 'contact')}; ${contactedLast30Days} of them had an interaction in the last 30 days.`,
      ),
      say(
        `互动减少的有 ${falling} 位，近 90 天没有互动的有 ${silent} 位（其中 ${neverContacted} 位从未有过互动记录）。`,
        `Interactions are falling for ${falling}, and ${silent} had none in the last 90 days (${neverContacted} of them never had one).`,
      ),
      openTodos === 0
        ? ''
        : say(
            `未完成待办 ${openTodos} 项，其中 ${overdueTodos} 项已逾期。`,
            `${plural(openTodos, 'to-do')} open, ${overdueTodos} of them overdue.`,
          ),
      selected === 0
        ? say('目前没有需要跟进的联系人。', 'No contact needs a follow-up now.')
        : say(
            `按优先级选出 ${selected} 位跟进对象。`,
            `${plural(selected, 'contact')} selected by priority to follow up with.`,
          ),
      computedNote(say),
    ],
    say,
  )
}

function nextActions(
  totals: NetworkTotals,
  candidates: readonly ScoredContact[],
  introductions: readonly NamedIntroduction[],
  say: Say,
): JsonObject[] {
  const high = candidates.filter(({ signals }) => priorityLevel(signals.priorityScore) === 'high').length
  const others = candidates.length - high
  const { overdueTodos, datesInNext7Days } = totals
  const actions: [count: number, action: string, priority: string][] = [
    [high, say(`跟进 ${high} 位高优先级联系人`, `Follow up with ${plural(high, 'high-priority contact')}`), 'high'],
    [overdueTodos, say(`处理 ${overdueTodos} 项逾期待办`, `Settle ${plural(overdueTodos, 'overdue to-do')}`), 'high'],
    [
      datesInNext7Days,
      say(
        `准备 7 天内的 ${datesInNext7Days} 个日期`,
        `Prepare for ${plural(datesInNext7Days, 'date')} in the next 7 days`,
      ),
      'medium',
    ],
    [
      others,
      say(`跟进其余 ${others} 位选出的联系人`, `Follow up with the other ${plural(others, 'selected contact')}`),
      'medium',
    ],
    [Math.min(1, introductions.length), say('考虑一次引荐', 'Consider an introduction'), 'low'],
  ]
  return actions
    .filter(([count]) => count > 0)
    .map(([count, action, priority]) => ({ action, priority, estimatedTime: minutes(count, say) }))
}

function minutes(count: number, say: Say): string {
  const time = Math.min(minutesMax, minutesEach * count)
  return say(`${time} 分钟`, `${time} min`)
}
