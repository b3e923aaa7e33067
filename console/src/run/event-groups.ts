// The events of the journal in groups that people filter by, which of them are problems, and one line about each.

import type { EventType } from '@polylog/client'
import { errorSentence } from '../i18n/chinese-errors.ts'
import type { Language } from '../i18n/language.ts'
import type { JournalRow } from './journal-row.ts'

export const eventGroups = ['state', 'model', 'text', 'tool', 'person', 'other'] as const
export type EventGroup = (typeof eventGroups)[number]

const groups: Record<EventType, EventGroup> = {
  'run.accepted': 'state',
  'run.prepared': 'state',
  'run.state': 'state',
  'run.ended': 'state',
  'step.started': 'model',
  'step.done': 'model',
  'answer.discarded': 'model',
  'output.rejected': 'model',
  'context.cut': 'model',
  'context.summarised': 'model',
  'text.delta': 'text',
  'reasoning.delta': 'text',
  'source.found': 'text',
  'message.done': 'text',
  'tool.called': 'tool',
  'tool.started': 'tool',
  'tool.progress': 'tool',
  'tool.done': 'tool',
  'input.required': 'person',
  'input.resolved': 'person',
  'engine.handle': 'other',
  'context.patch': 'other',
  diagnostic: 'other',
}

/** An event of a newer server belongs to no group that is known here. */
export function groupOf({ type }: Pick<JournalRow, 'type'>): EventGroup {
  return (groups as Partial<Record<string, EventGroup>>)[type] ?? 'other'
}

/** A list shows no more of an event. */
const summaryCharsMax = 240

/** What an event says, in one line. */
export function summaryOf(row: JournalRow, language: Language): string {
  const text = longSummaryOf(row, language)
  return text.length > summaryCharsMax ? `${text.slice(0, summaryCharsMax)}…` : text
}

function longSummaryOf(row: JournalRow, language: Language): string {
  switch (row.type) {
    case 'run.accepted':
      return row.data.input
    case 'run.state':
      return `${row.data.from} → ${row.data.to} · ${row.data.trigger}`
    case 'run.ended': {
      const { status, error, reason } = row.data
      return joined(status, error?.code, errorSentence(error?.code, language), error?.message ?? reason)
    }
    case 'step.started':
      return `${row.data.step} · ${row.data.model}`
    case 'step.done':
      return joined(`${row.data.step}`, row.data.finishReason, tokensText(row))
    case 'text.delta':
    case 'reasoning.delta':
    case 'message.done':
      return JSON.stringify(row.data.text.slice(0, summaryCharsMax))
    case 'tool.called':
      return `${row.data.name}(${json(row.data.input)})`
    case 'tool.started':
      return json(row.data.input)
    case 'tool.progress':
      return row.data.message
    case 'tool.done': {
      const { outcome, error, summary } = row.data
      return joined(outcome, error?.code, errorSentence(error?.code, language), summary)
    }
    case 'input.required':
      return row.data.prompt
    case 'input.resolved':
      return `${row.data.resolution} · ${row.data.by}`
    case 'output.rejected':
      return row.data.errors.join(' ')
    case 'diagnostic':
      return `${row.data.code} · ${row.data.message}`
    default:
      return json(row.data)
  }
}

function joined(...parts: (string | undefined)[]): string {
  return parts.filter((part) => part !== undefined).join(' · ')
}

function tokensText({ data: { usage } }: JournalRow & { type: 'step.done' }): string | undefined {
  return usage === undefined ? undefined : `${usage.inputTokens ?? 0} + ${usage.outputTokens ?? 0} tokens`
}

function json(value: unknown): string {
  const text = JSON.stringify(value)
  return text === undefined ? '' : text.slice(0, summaryCharsMax + 1)
}

export type Severity = 'error' | 'warning'

/** Whether something went wrong here. */
export function severityOf(row: JournalRow): Severity | null {
  switch (row.type) {
    case 'tool.done':
      return row.data.outcome === 'failed' || row.data.outcome === 'threw' || row.data.outcome === 'unknown'
        ? 'error'
        : null
    case 'run.ended':
      return row.data.status === 'failed' ? 'error' : null
    case 'output.rejected':
      return 'error'
    case 'diagnostic':
      return 'warning'
    case 'message.done':
      return row.data.state === 'active' ? null : 'warning'
    case 'run.state':
      return row.data.trigger === 'restart.requeued' ? 'warning' : null
    default:
      return null
  }
}
