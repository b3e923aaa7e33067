// The data source `contact`: one contact, its newest records and its signals, for insights.

import type { ContactSignals } from '../../contacts/signals.ts'
import { dateOf } from '../../contacts/utc-days.ts'
import { contactAnswer } from './contact-answer.ts'
import {
  citableOf,
  contactJson,
  type ContactSourceStore,
  readContactRecords,
  type ReadContact,
  type ReadLimits,
  recordsJson,
} from './contact-records.ts'
import type { Collected, DataSource } from './source.ts'

/** How much is read: conversations, records of each other kind, and messages of each conversation. */
const standard: ReadLimits = { conversations: 10, records: 20, messages: 4 }
const depths: ReadonlyMap<unknown, ReadLimits> = new Map([
  ['brief', { conversations: 5, records: 10, messages: 2 }],
  ['standard', standard],
  ['deep', { conversations: 20, records: 50, messages: 6 }],
])

export function contactSource(store: ContactSourceStore): DataSource {
  return {
    async collect(caller, input, at, language): Promise<Collected> {
      const key = { owner: caller.userId, contactId: String(input['contactId'] ?? '') }
      const read = await readContactRecords(store, key, depths.get(input['depth']) ?? standard, at)
      const { priorityScore, reasonTags, relationshipRiskLevel } = read.signals
      return {
        data: {
          today: dateOf(at),
          contact: contactJson(read.contact),
          signals: read.signals,
          records: recordsJson(read.records),
          omittedRecords: read.omitted,
        },
        hashed: read.hashed,
        citable: citableOf(read.records),
        fields: { confidence: confidenceOf(read), priorityScore, reasonTags, relationshipRiskLevel },
        computedAnswer: contactAnswer(read, at, language),
      }
    },
  }
}

/** 0..1: 0.05 for each record up to 12, plus 0.4 if the last contact was in the last 30 days, 0.25 in 90, 0.1 in 180. */
function confidenceOf({ records, signals }: Pick<ReadContact, 'records' | 'signals'>): number {
  return (5 * Math.min(12, records.length) + recency(signals)) / 100
}

function recency({ daysSinceLastContact: days }: ContactSignals): number {
  if (days === null || days >= 180) return 0
  return days < 30 ? 40 : days < 90 ? 25 : 10
}
