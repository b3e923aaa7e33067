// The data source `contact_brief`: one contact and the interactions of the last 30 days, for
// a brief before a meeting. Its computed answer is the brief as Markdown.

import { dateOf, dayOf } from '../../contacts/utc-days.ts'
import { citationOf } from './contact-answer.ts'
import {
  citableOf,
  contactJson,
  type ContactSourceStore,
  pastInteractions,
  type ReadContact,
  readContactRecords,
  type ReadLimits,
  type ReadRecord,
  recordsJson,
} from './contact-records.ts'
import { dateSentence, joinSentences, lastContactSentence, todoSentence, trendSentence } from './signal-words.ts'
import type { Collected, DataSource, JsonObject } from './source.ts'
import { computedNote, type Say, sayIn, shorten } from './wording.ts'

const limits: ReadLimits = { conversations: 20, records: 20, messages: 4 }
const interactionDays = 30
const interactionsMax = 10
/** Of each list in the computed brief, which has at most 10,000 characters. */
const factsMax = 10
const todosMax = 10
const comingMax = 5
const lineChars = 100

export function contactBriefSource(store: ContactSourceStore): DataSource {
  return {
    async collect(caller, input, at, language): Promise<Collected> {
      const key = { owner: caller.userId, contactId: String(input['contactId'] ?? '') }
      const all = await readContactRecords(store, key, limits, at, (record) => isWanted(record, at))
      const older = new Set(pastInteractions(all.records, at).slice(interactionsMax))
      const read = { ...all, records: all.records.filter((record) => !older.has(record)) }
      return {
        data: {
          today: dateOf(at),
          contact: contactJson(read.contact),
          signals: read.signals,
          records: recordsJson(read.records),
        },
        hashed: read.hashed,
        citable: citableOf(read.records),
        computedAnswer: briefAnswer(read, at, language),
      }
    },
  }
}

/** Interactions of the last 30 days and coming events, facts, and open to-dos. */
function isWanted({ type, at, open }: ReadRecord, now: number): boolean {
  if (type === 'todo') return open === true
  if (type === 'fact') return true
  return at !== null && dayOf(now) - dayOf(at) < interactionDays
}

function briefAnswer({ contact, signals, records }: ReadContact, now: number, language: string): JsonObject {
  const say = sayIn(language)
  const past = pastInteractions(records, now)
  const facts = records.filter(({ type }) => type === 'fact').slice(0, factsMax)
  const coming = records.filter(({ type, at }) => type === 'event' && at !== null && at > now).slice(0, comingMax)
  const todos = records.filter(({ type }) => type === 'todo').slice(0, todosMax)
  const { name, company, position } = contact
  const who = [name, company, position].filter((part) => part !== null).map((part) => shorten(part, 80))
  const background = [
    joinSentences(
      [
        say(`${who.join('，')}。`, `${who.join(', ')}.`),
        lastContactSentence(signals, say),
        signals.lastInteractionAt === null ? '' : trendSentence(signals, say),
        todoSentence(signals, say),
      ],
      say,
    ),
    ...facts.map(({ label }) => `- ${inline(label)}`),
  ]
  const topics = [
    ...todos.map((todo) => `- ${todoTopic(todo, say)}`),
    ...coming.map(({ label, at }) => `- ${dateOf(at ?? 0)} ${inline(label)}`),
    ...signals.upcomingDates.filter(({ kind }) => kind === 'birthday').map((date) => `- ${dateSentence(date, say)}`),
  ]
  const none = (text: string) => [text]
  const content = [
    section(say('关系背景', 'Background'), background),
    section(
      say('最近交互', 'Latest interactions'),
      past.length > 0
        ? past.map(({ type, label, at }) => `- ${dateOf(at ?? 0)} ${kindName(type, say)}${inline(label)}`)
        : none(say('最近 30 天没有互动记录。', 'No interaction is recorded in the last 30 days.')),
    ),
    section(
      say('建议话题', 'Topics to raise'),
      topics.length > 0
        ? topics
        : none(say('记录中没有待办或即将到来的日期。', 'The records hold no to-do and no upcoming date.')),
    ),
    `> ${computedNote(say)}\n`,
  ].join('\n')
  return { content, citations: records.map((record) => citationOf(record, say)), computed: true }
}

function section(title: string, lines: readonly string[]): string {
  return `## ${title}\n\n${lines.join('\n')}\n`
}

function kindName(type: ReadRecord['type'], say: Say): string {
  return type === 'conversation' ? say('对话：', 'Conversation: ') : say('事件：', 'Event: ')
}

function todoTopic({ label, at, overdue }: ReadRecord, say: Say): string {
  const due =
    at === null
      ? ''
      : say(
          `（到期日 ${dateOf(at)}${overdue === true ? '，已逾期' : ''}）`,
          ` (due ${dateOf(at)}${overdue === true ? ', overdue' : ''})`,
        )
  return `${say('待办：', 'To-do: ')}${inline(label)}${due}`
}

/** One line of text. Characters that Markdown would read as markup are escaped. */
function inline(text: string): string {
  return shorten(text, lineChars).replaceAll(/[\\`*_[\]<>#|]/g, String.raw`\$&`)
}
