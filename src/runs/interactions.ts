// Interactions of a run: the deadline of a reply, a question that the model asks in plain text, and the
// decisions of people and deadlines, which any node stores as rows and the owner of the run journals.

import type { EventData, JsonValue, NewEvent } from '../journal/event.ts'
import { openInteractions, type RunState, specOf } from '../journal/run-state.ts'
import { defined } from '../kit/defined.ts'
import type { Decision, InteractionRow } from '../stores/interaction-store.ts'
import type { RunDependencies } from './run-dependencies.ts'
import type { RunWriter } from './run-writer.ts'

/** The policy recorded when the reply deadline passes: the model decides by itself. */
const autoDecidePolicy = 'engine_judgement'

/** When the model decides a question by itself because no reply came. Undefined if the run waits without a limit. */
export function replyDeadlineOf(
  state: RunState,
  { clock, kindOf }: Pick<RunDependencies, 'clock' | 'kindOf'>,
): number | undefined {
  const spec = specOf(state)
  const timeoutMs = kindOf(spec).replyTimeoutMs(spec)
  return timeoutMs === undefined ? undefined : clock.now() + timeoutMs
}

const promptCharsMax = 8000

/** The question event for a final answer in plain words, which the model wrote instead of calling its ask tool. */
export function questionFromText(
  state: RunState,
  text: string,
  dependencies: Pick<RunDependencies, 'clock' | 'ids' | 'kindOf'>,
): EventData<'input.required'> {
  const replyDeadline = replyDeadlineOf(state, dependencies)
  return {
    interactionId: dependencies.ids(),
    number: state.interactions.size + 1,
    kind: 'question',
    style: 'open_text',
    prompt: text.trim().slice(0, promptCharsMax),
    ...(replyDeadline === undefined ? {} : { deadlineAt: replyDeadline, atDeadline: 'auto_decide' }),
  }
}

/**
 * Writes new decisions of people and of deadlines into the journal, and returns whether there were any. Any node may
 * store a decision as a row, but only the owner of the run writes its journal.
 */
export async function journalDecisions(
  writer: RunWriter,
  dependencies: Pick<RunDependencies, 'store' | 'clock'>,
  now = dependencies.clock.now(),
): Promise<boolean> {
  const open = openInteractions(writer.state)
  if (open.length === 0) return false
  const rows = new Map((await dependencies.store.interactionsOf(writer.runId)).map((row) => [row.id, row]))
  const events: NewEvent[] = []
  for (const interaction of open) {
    let row = rows.get(interaction.interactionId)
    if (row?.status === 'pending' && row.deadlineAt !== null && row.deadlineAt <= now) {
      const status = row.atDeadline === 'auto_decide' ? 'auto_decided' : 'expired'
      const reply = status === 'auto_decided' ? autoDecision(row) : {}
      row = (await dependencies.store.decide(row.id, { status, by: 'system', at: now, ...reply }))?.row
    }
    if (row === undefined || row.status === 'pending') continue
    events.push({ type: 'input.resolved', data: resolutionOf(row) })
  }
  if (events.length > 0) await writer.write(...events)
  return events.length > 0
}

function resolutionOf(row: InteractionRow): EventData<'input.resolved'> {
  const status = row.status === 'pending' ? 'closed' : row.status
  return {
    interactionId: row.id,
    number: row.number,
    resolution: status,
    by: row.decidedBy ?? 'system',
    ...defined({
      input: row.kind === 'confirmation' && status === 'confirmed' ? (row.response ?? undefined) : undefined,
      response: row.kind === 'confirmation' ? undefined : (row.response ?? undefined),
      reason: row.reason ?? undefined,
    }),
  }
}

/** The reply that the model reads when a question was auto-decided at its deadline. */
function autoReply(row: InteractionRow): JsonValue {
  return {
    source: 'auto_decide_timeout',
    interaction_id: row.number,
    reason: 'user_no_reply',
    policy: autoDecidePolicy,
    instruction: 'Nobody replied in time. Decide by your own judgement, say what you assumed, and go on.',
  }
}

function autoDecision(row: InteractionRow): Pick<Decision, 'response' | 'reply'> {
  const response = autoReply(row)
  return { response, reply: { key: `auto-timeout:${row.number}`, fingerprint: '' } }
}
