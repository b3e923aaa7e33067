// The data source `network`: all contacts of the user. Every contact is read and scored, in
// batches with a pause between them. The model is given the totals, the contacts with the
// highest priority and the best introductions: as many whole entries as fit the budget.

import { createHash } from 'node:crypto'
import { type Introduction, introductions } from '../../contacts/introductions.ts'
import { type ContactSignals, contactSignals, priorityLevel } from '../../contacts/signals.ts'
import { dateOf } from '../../contacts/utc-days.ts'
import { sortedJson } from '../../kit/sorted-json.ts'
import { nextTurn } from '../../kit/turns.ts'
import type { ContactActivity, ContactActivityStore } from '../../stores/contact-activity-store.ts'
import type { ContactCursor, ContactRow, ContactStore } from '../../stores/contact-store.ts'
import { takeThatFit } from './fit-tokens.ts'
import {
  type NamedIntroduction,
  networkAnswer,
  type NetworkTotals,
  type ReadNetwork,
  type ScoredContact,
} from './network-answer.ts'
import type { Collected, DataSource, JsonObject } from './source.ts'
import { shorten } from './wording.ts'

export type NetworkStore = Pick<ContactStore, 'pageOfContacts'> & ContactActivityStore

/** Contacts that are read before the next pause. Each has at most some hundred records. */
const batch = 25
const limitDefault = 10
const limitMax = 100
const introductionsMax = 20
/** Of the candidates, and of the introductions. Together with the prompt they fit a context of 16,000 tokens. */
const candidateTokens = 7_000
const introductionTokens = 2_000
const tagsShown = 5

export function networkSource(store: NetworkStore): DataSource {
  return {
    async collect(caller, input, at, language): Promise<Collected> {
      const asked = typeof input['limit'] === 'number' ? input['limit'] : limitDefault
      const limit = Math.max(1, Math.min(limitMax, Math.floor(asked)))
      const { totals, scored, digest } = await readAll(store, caller.userId, at)
      const urgent = scored.filter(needsAttention).sort(byPriority).slice(0, limit)
      const { taken: candidates, omitted } = takeThatFit(urgent, candidateTokens, candidateJson)
      await nextTurn()
      const best = introductions(scored, introductionsMax)
      await nextTurn()
      const { taken: pairs } = takeThatFit(named(best, scored), introductionTokens, pairJson)
      const read: ReadNetwork = { totals, candidates, introductions: pairs }
      const shown = new Set([...candidates.map(({ id }) => id), ...pairs.flatMap((pair) => pair.contacts)])
      return {
        data: {
          today: dateOf(at),
          totals,
          candidates: candidates.map(candidateJson),
          omittedCandidates: omitted,
          introductions: pairs.map(pairJson),
        },
        hashed: { contacts: totals.contacts, digest },
        citable: [...shown].map((source) => ({ source, type: 'contact' })),
        computedAnswer: networkAnswer(read, language),
      }
    },
  }
}

/** The digest covers the records of all contacts, also of those that the model is not shown. */
async function readAll(
  store: NetworkStore,
  owner: string,
  now: number,
): Promise<{ totals: NetworkTotals; scored: ScoredContact[]; digest: string }> {
  const hash = createHash('sha256')
  const scored: ScoredContact[] = []
  let after: ContactCursor | null = null
  do {
    const page: { rows: ContactRow[]; next: ContactCursor | null } = await store.pageOfContacts(owner, {
      limit: batch,
      ...(after === null ? {} : { after }),
    })
    const activities = await store.contactActivity(
      owner,
      page.rows.map(({ id }) => id),
    )
    for (const [index, contact] of page.rows.entries()) {
      const activity = activities[index] ?? { contactId: contact.id, conversations: [], events: [], todos: [] }
      hash.update(sortedJson([fieldsOf(contact), activity]))
      scored.push(scoredContact(contact, activity, now))
    }
    after = page.next
    await nextTurn()
  } while (after !== null)
  return { totals: totalsOf(scored), scored, digest: hash.digest('hex') }
}

/** The fields of a contact that the model may be given or that signals depend on. */
function fieldsOf({ id, name, company, position, tags, profile, createdAt }: ContactRow): JsonObject {
  return { id, name, company, position, tags, birthday: profile['birthday'] ?? null, createdAt }
}

function scoredContact(contact: ContactRow, activity: ContactActivity, now: number): ScoredContact {
  const { id, name, company, position, tags } = contact
  const [todo] = activity.todos
  return {
    id,
    name,
    company,
    position,
    tags,
    signals: contactSignals({ contact, ...activity }, now),
    nextTodo: todo === undefined ? null : { content: todo.content, dueAt: todo.dueAt },
    lastSubject: activity.conversations.find(({ title }) => title !== null)?.title ?? null,
  }
}

function totalsOf(contacts: readonly ScoredContact[]): NetworkTotals {
  const signals = contacts.map((contact) => contact.signals)
  const count = (wanted: (signal: ContactSignals) => boolean) => signals.filter(wanted).length
  const sum = (value: (signal: ContactSignals) => number) => signals.reduce((total, signal) => total + value(signal), 0)
  return {
    contacts: contacts.length,
    contactedLast30Days: count(({ interactionsLast30Days }) => interactionsLast30Days > 0),
    neverContacted: count(({ lastInteractionAt }) => lastInteractionAt === null),
    rising: count(({ trend }) => trend === 'rising'),
    steady: count(({ trend }) => trend === 'steady'),
    falling: count(({ trend }) => trend === 'falling'),
    silent: count(({ trend }) => trend === 'silent'),
    highPriority: count(({ priorityScore }) => priorityLevel(priorityScore) === 'high'),
    openTodos: sum(({ openTodos }) => openTodos),
    overdueTodos: sum(({ overdueTodos }) => overdueTodos),
    datesInNext7Days: sum(({ upcomingDates }) => upcomingDates.filter(({ daysUntil }) => daysUntil <= 7).length),
  }
}

/** Recent or growing contact alone is no reason to follow up. */
function needsAttention({ signals }: ScoredContact): boolean {
  return signals.reasonTags.some((tag) => tag !== 'active_relationship' && tag !== 'interactions_rising')
}

function byPriority(left: ScoredContact, right: ScoredContact): number {
  return right.signals.priorityScore - left.signals.priorityScore || (left.id < right.id ? -1 : 1)
}

function named(pairs: readonly Introduction[], contacts: readonly ScoredContact[]): NamedIntroduction[] {
  const names = new Map(contacts.map(({ id, name }) => [id, name]))
  return pairs.map((pair) => ({
    ...pair,
    names: [names.get(pair.contacts[0]) ?? '', names.get(pair.contacts[1]) ?? ''],
  }))
}

function candidateJson(contact: ScoredContact): JsonObject {
  const { signals, nextTodo } = contact
  return {
    contactId: contact.id,
    name: contact.name,
    company: contact.company,
    position: contact.position,
    tags: contact.tags.slice(0, tagsShown),
    priority: priorityLevel(signals.priorityScore),
    priorityScore: signals.priorityScore,
    reasonTags: signals.reasonTags,
    lastContact: signals.lastInteractionAt === null ? null : dateOf(signals.lastInteractionAt),
    daysSinceLastContact: signals.daysSinceLastContact,
    trend: signals.trend,
    interactionsLast90Days: signals.interactionsLast90Days,
    interactionsPrevious90Days: signals.interactionsPrevious90Days,
    openTodos: signals.openTodos,
    overdueTodos: signals.overdueTodos,
    nextTodo:
      nextTodo === null
        ? null
        : { content: shorten(nextTodo.content, 100), dueOn: nextTodo.dueAt === null ? null : dateOf(nextTodo.dueAt) },
    upcomingDates: signals.upcomingDates
      .slice(0, 3)
      .map(({ kind, title, date, daysUntil }) => ({ kind, title: shorten(title, 80), date, daysUntil })),
    lastSubject: contact.lastSubject === null ? null : shorten(contact.lastSubject, 80),
  }
}

function pairJson({ contacts, names, company, tags, confidence }: NamedIntroduction): JsonObject {
  return { contacts, names, sharedCompany: company, sharedTags: tags.slice(0, tagsShown), confidence }
}
