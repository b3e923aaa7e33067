// A request that goes on with a run which waits for its client: it answers interrupts, or brings the
// results of tools that the client runs. Of an answer only the id and the decision are believed; what
// the call is, and whose, is in the stored rows.

import { AppError } from '../../errors/app-error.ts'
import { eventPages } from '../../journal/event-pages.ts'
import type { EventData, JsonValue } from '../../journal/event.ts'
import type { Caller } from '../../kit/caller.ts'
import type { ClientToolResult } from '../../runs/client-tool-service.ts'
import type { ConversationRow } from '../../stores/conversation-store.ts'
import type { InteractionRow } from '../../stores/interaction-store.ts'
import type { RunRow } from '../../stores/run-store.ts'
import type { Services } from '../routes.ts'
import type { ResumeAnswer } from './ag-ui-body.ts'

/** The run that a request goes on with, and the event at which its last stream ended. */
export type ContinuedRun = { run: RunRow; seq: number }

export type BroughtAnswers = {
  interrupts: readonly ResumeAnswer[]
  /** Also of calls that the server ran; those are skipped. */
  results: readonly ClientToolResult[]
}

type AnswerServices = Pick<Services, 'runs' | 'confirmations' | 'clientTools' | 'journal'>

/**
 * Stores the answers. An interrupt that was decided before stays as it is, so a request that is sent again gets the same
 * stream; the stream tells the client which decision counts. Undefined if no run waited for any of them.
 */
export async function continueRun(
  services: AnswerServices,
  caller: Caller,
  conversation: ConversationRow,
  { interrupts, results }: BroughtAnswers,
): Promise<ContinuedRun | undefined> {
  const rows = await Promise.all(interrupts.map(({ interruptId }) => services.confirmations.get(caller, interruptId)))
  const wrong = rows.find((row) => row.conversationId !== conversation.id || row.runId !== rows[0]?.runId)
  if (wrong !== undefined) {
    throw new AppError(
      'tool_confirmation_not_found',
      `The thread has no interrupt ${JSON.stringify(wrong.id)} in its last run.`,
    )
  }
  const decisions = interrupts.map((answer, index) => decisionOf(answer, rows[index] as InteractionRow))
  const run =
    rows[0] === undefined ? await newestRun(services, conversation) : await services.runs.get(caller, rows[0].runId)
  if (run === undefined) return undefined
  const decided = new Set(interrupts.map(({ interruptId }) => interruptId))
  const returned = new Set(results.map(({ toolCallId }) => toolCallId))
  const isAnswered = ({ interactionId, kind, callId }: Asked) =>
    decided.has(interactionId) || (kind === 'client_tool' && callId !== undefined && returned.has(callId))
  const parked = await lastParkFor(services, run, isAnswered)
  if (parked === undefined) return undefined
  await refuseUnanswered(
    services,
    caller,
    parked.open.filter((asked) => !isAnswered(asked)),
  )
  const ownCalls = new Set(parked.open.flatMap(({ kind, callId }) => (kind === 'client_tool' ? [callId] : [])))
  await services.clientTools.resolve(
    caller,
    run.id,
    results.filter(({ toolCallId }) => ownCalls.has(toolCallId)),
  )
  for (const decision of decisions) await decide(services, caller, decision)
  return { run, seq: parked.seq }
}

/** The run that waits for results, or the newest one: the results may have been sent before. */
async function newestRun(
  { runs, clientTools }: AnswerServices,
  { id, owner }: ConversationRow,
): Promise<RunRow | undefined> {
  return (await clientTools.waitingRun(id)) ?? (await runs.list({ owner, conversationId: id, limit: 1 })).rows[0]
}

type AnswerDecision =
  | { id: string; confirmed: true; changes: Record<string, JsonValue> | undefined }
  | { id: string; confirmed: false; reason: string | undefined }

const reasonCharsMax = 2000

function decisionOf({ interruptId: id, status, payload }: ResumeAnswer, row: InteractionRow): AnswerDecision {
  if (status === 'cancelled') return { id, confirmed: false, reason: undefined }
  const fields = isRecord(payload) ? payload : {}
  if (row.kind === 'question') return { id, confirmed: true, changes: answerOf(payload) }
  const approved = typeof payload === 'boolean' ? payload : fields['approved']
  if (typeof approved !== 'boolean') {
    throw new AppError(
      'confirmation_payload_invalid',
      `The answer to the interrupt ${JSON.stringify(id)} does not say yes or no. Send the payload {"approved": true} or {"approved": false}.`,
    )
  }
  const { reason, editedArgs } = fields
  if (approved) return { id, confirmed: true, changes: isRecord(editedArgs) ? editedArgs : undefined }
  return { id, confirmed: false, reason: typeof reason === 'string' ? reason.slice(0, reasonCharsMax) : undefined }
}

function answerOf(payload: unknown): Record<string, JsonValue> | undefined {
  if (payload == null || isRecord(payload)) return payload ?? undefined
  return { answer: payload as JsonValue }
}

function isRecord(value: unknown): value is Record<string, JsonValue> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

async function decide({ confirmations }: AnswerServices, caller: Caller, decision: AnswerDecision): Promise<void> {
  try {
    if (decision.confirmed) await confirmations.confirm(caller, decision.id, decision.changes)
    else await confirmations.reject(caller, decision.id, decision.reason)
  } catch (error) {
    if (!(error instanceof AppError) || error.kind !== 'conflict') throw error
  }
}

type Asked = EventData<'input.required'>

/** A run goes on only when it has everything that it waits for, so a request has to bring all of it. */
async function refuseUnanswered(
  { confirmations, clientTools }: AnswerServices,
  caller: Caller,
  others: readonly Asked[],
): Promise<void> {
  const rows = await Promise.all(
    others.map(({ kind, interactionId }) =>
      kind === 'client_tool' ? clientTools.find(caller, interactionId) : confirmations.get(caller, interactionId),
    ),
  )
  const pending = rows.filter(({ status }) => status === 'pending')
  if (pending.length > 0) throw unanswered(pending)
}

/** The refusal of a request that does not answer all that the run waits for. */
export function unanswered(pending: readonly InteractionRow[]): AppError {
  const interruptIds = pending.filter(({ kind }) => kind !== 'client_tool').map(({ id }) => id)
  const toolCallIds = pending.flatMap(({ kind, callId }) => (kind === 'client_tool' && callId !== null ? [callId] : []))
  return new AppError(
    'interrupts_unanswered',
    `The run waits for more. Send all of it in one request: a resume entry for each interrupt (${interruptIds.join(', ') || 'none'}) and a tool message for each call (${toolCallIds.join(', ') || 'none'}).`,
    { details: { interruptIds, toolCallIds } },
  )
}

/** The last time that the run waited for one of these answers: the event, and everything that the run waited for then. */
async function lastParkFor(
  { journal }: AnswerServices,
  run: RunRow,
  isAnswered: (asked: Asked) => boolean,
): Promise<{ seq: number; open: Asked[] } | undefined> {
  const open = new Map<string, Asked>()
  let found: { seq: number; open: Asked[] } | undefined
  const keep = (seq: number) => {
    if ([...open.values()].some(isAnswered)) found = { seq, open: [...open.values()] }
  }
  for await (const { events } of eventPages(journal, run.id)) {
    for (const event of events) {
      if (event.type === 'input.resolved') open.delete(event.data.interactionId)
      if (event.type === 'run.state' && event.data.to === 'waiting_user') keep(event.seq)
      if (event.type === 'input.required') {
        open.set(event.data.interactionId, event.data)
        // The run may have asked and not have parked yet.
        keep(event.seq)
      }
    }
  }
  return found
}
