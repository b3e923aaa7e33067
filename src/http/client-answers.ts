// The answers that a client sends with the next request of a chat: decisions on approval requests,
// and results of its own tools. They go to the run that waits for them, and the reply is the rest
// of that run. What the client says about the arguments of a call is never read.

import type { Cursor } from '../dialects/cursor.ts'
import { AppError } from '../errors/app-error.ts'
import type { Caller } from '../kit/caller.ts'
import type { ClientToolResult } from '../runs/client-tool-service.ts'
import type { InteractionRow } from '../stores/interaction-store.ts'
import type { RunRow } from '../stores/run-store.ts'
import type { Services } from './routes.ts'
import { parkedAfter } from './parked-runs.ts'

export type ApprovalAnswer = { id: string; approved: boolean; reason: string | undefined }

/** The answer of a client that knows the call, but not the request for its approval. */
export type CallApproval = { toolCallId: string; approved: boolean; reason: string | undefined }

export type ClientAnswers = {
  approvals: readonly ApprovalAnswer[]
  /** An answer about a call that does not wait for an approval is ignored. */
  callApprovals?: readonly CallApproval[]
  /** Results for calls that no tool of the client has are ignored: the client also lists the results of server tools. */
  results: readonly ClientToolResult[]
  /** The id of the message with the answers, if it is that of its run. */
  runId?: string | undefined
}

/** Each of them is read from the store. */
const approvalsMax = 200

type AnswerServices = Pick<Services, 'runs' | 'confirmations' | 'clientTools' | 'journal'>

/** The run that asked, and the event after which its stream goes on. */
export type TakenAnswers = {
  run: RunRow
  cursor: Cursor
  /** Set if the run still waits for another answer: the newest interaction that these answers were for. */
  lastAnswered: string | undefined
}

/**
 * Stores the answers. An answer that was given before stays as it is: the stream tells the client which one counts, so a
 * client that repeats a request gets the same rest. Undefined if nothing in the conversation waits, or waited, for them.
 */
export async function takeAnswers(
  services: AnswerServices,
  caller: Caller,
  conversationId: string,
  answers: ClientAnswers,
): Promise<TakenAnswers | undefined> {
  const { confirmations, clientTools } = services
  if (answers.approvals.length > approvalsMax) {
    throw new AppError(
      'batch_size_exceeded',
      `The message answers ${answers.approvals.length} approval requests; at most ${approvalsMax} are allowed at once.`,
    )
  }
  const given = [...answers.approvals, ...(await approvalsOfCalls(services, caller, conversationId, answers))]
  const approvals = await approvalRows(services, caller, conversationId, given)
  const found = await runOfAnswers(services, caller, conversationId, approvals, answers)
  if (found === undefined) return undefined
  const { run, calls } = found
  const steps = [
    ...calls.map(({ row, result }) => ({ row, decide: () => clientTools.resolve(caller, run.id, [result]) })),
    ...approvals.map((row, index) => ({ row, decide: () => decideApproval(given[index] as ApprovalAnswer) })),
  ].toSorted((left, right) => left.row.number - right.row.number)
  // In the order of the questions, so that the journal gets the answer to the last one last.
  for (const { row, decide } of steps) if (row.status === 'pending') await unlessDecided(decide)
  const asked = new Set(steps.map(({ row }) => row.id))
  const cursor = { seq: await parkedAfter(services.journal, run.id, asked), index: null }
  const isAwaited = (await services.runs.openInteractions(run)).length > 0
  return { run, cursor, lastAnswered: isAwaited ? steps.at(-1)?.row.id : undefined }

  function decideApproval({ id, approved, reason }: ApprovalAnswer): Promise<InteractionRow> {
    return approved ? confirmations.confirm(caller, id, undefined) : confirmations.reject(caller, id, reason)
  }
}

async function approvalsOfCalls(
  services: AnswerServices,
  caller: Caller,
  conversationId: string,
  { callApprovals = [], runId }: ClientAnswers,
): Promise<ApprovalAnswer[]> {
  if (callApprovals.length === 0) return []
  const named = runId === undefined ? undefined : await services.runs.find(caller, runId)
  const newest = await services.runs.list({ owner: caller.userId, conversationId, limit: 1 })
  const run = named?.conversationId === conversationId ? named : newest.rows[0]
  if (run === undefined) return []
  const asked = await services.confirmations.byCall(run)
  return callApprovals.flatMap(({ toolCallId, approved, reason }) => {
    const row = asked.get(toolCallId)
    return row === undefined ? [] : [{ id: row.id, approved, reason }]
  })
}

/** All approvals of a request belong to one run of the conversation. */
async function approvalRows(
  { confirmations }: Pick<Services, 'confirmations'>,
  caller: Caller,
  conversationId: string,
  approvals: readonly ApprovalAnswer[],
): Promise<InteractionRow[]> {
  const rows = await Promise.all(approvals.map(({ id }) => confirmations.get(caller, id)))
  const wrong = rows.find((row) => row.conversationId !== conversationId || row.runId !== rows[0]?.runId)
  if (wrong !== undefined) {
    throw new AppError(
      'tool_confirmation_not_found',
      `The chat has no approval request ${JSON.stringify(wrong.id)} in its last run.`,
    )
  }
  return rows
}

type AnsweredCall = { row: InteractionRow; result: ClientToolResult }

async function runOfAnswers(
  services: AnswerServices,
  caller: Caller,
  conversationId: string,
  approvals: readonly InteractionRow[],
  { results, runId }: ClientAnswers,
): Promise<{ run: RunRow; calls: AnsweredCall[] } | undefined> {
  const { runs, clientTools } = services
  const callsIn = async (run: RunRow): Promise<AnsweredCall[]> => {
    const rows = new Map((await clientTools.callsOf(run)).map((row) => [row.callId, row]))
    return results.flatMap((result) => {
      const row = rows.get(result.toolCallId)
      return row === undefined ? [] : [{ row, result }]
    })
  }
  const [approval] = approvals
  if (approval !== undefined) {
    const run = await runs.get(caller, approval.runId)
    return { run, calls: await callsIn(run) }
  }
  if (results.length === 0) return undefined
  const named = runId === undefined ? undefined : await runs.find(caller, runId)
  const newest = await runs.list({ owner: caller.userId, conversationId, limit: 1 })
  for (const run of [named, await clientTools.waitingRun(conversationId), newest.rows[0]]) {
    if (run?.conversationId !== conversationId) continue
    const calls = await callsIn(run)
    if (calls.length > 0) return { run, calls }
  }
  return undefined
}

async function unlessDecided(decide: () => Promise<unknown>): Promise<void> {
  try {
    await decide()
  } catch (error) {
    if (!(error instanceof AppError) || error.kind !== 'conflict') throw error
  }
}
