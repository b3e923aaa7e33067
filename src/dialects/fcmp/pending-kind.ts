// FCMP's names for the kinds of questions and deadline policies. The stream and the
// pending-interaction resource share this file so that they always agree.

import type { EventData } from '../../journal/event.ts'

type PendingKind = 'choose_one' | 'confirm' | 'fill_fields' | 'open_text' | 'risk_ack'

/** Unknown styles fall back to open_text. */
const kinds: Readonly<Record<string, PendingKind>> = {
  choose_one: 'choose_one',
  decision: 'choose_one',
  confirm: 'confirm',
  confirmation: 'confirm',
  fill_fields: 'fill_fields',
  open_text: 'open_text',
  clarification: 'open_text',
  risk_ack: 'risk_ack',
}

type Asked = Pick<EventData<'input.required'>, 'kind'> & { style?: string | null | undefined }

export function pendingKind({ kind, style }: Asked): PendingKind {
  if (kind === 'confirmation') return 'confirm'
  return style != null && Object.hasOwn(kinds, style) ? (kinds[style] as PendingKind) : 'open_text'
}

/** What happens at the deadline: the agent decides for itself, or the call is denied. */
export function policyOf(atDeadline: 'expire' | 'auto_decide' | null | undefined): string {
  return atDeadline === 'expire' ? 'deny' : 'engine_judgement'
}
