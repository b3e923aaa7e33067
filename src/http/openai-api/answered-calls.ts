// The results of tool calls that a request brings back. The id of a call on these wires is the id of
// an interaction, which is global and belongs to its owner, so it finds the run that waits for it.

import { AppError } from '../../errors/app-error.ts'
import type { JsonValue } from '../../journal/event.ts'
import type { Caller } from '../../kit/caller.ts'
import type { InteractionRow } from '../../stores/interaction-store.ts'
import type { RunRow } from '../../stores/run-store.ts'
import type { Services } from '../routes.ts'
import { parkedAfter } from '../parked-runs.ts'

/** `approved` is set if the client can say yes or no by the form of its answer. */
export type CallAnswer = { id: string; output: string; approved?: boolean }

export type AnsweredRun = { run: RunRow; rows: InteractionRow[]; answers: readonly CallAnswer[] }

type AnswerServices = Pick<Services, 'runs' | 'clientTools' | 'journal' | 'clock'>

/** The run that asked for these answers. Undefined if no run of the caller asked for one of them. */
export async function findAnsweredRun(
  { runs }: Pick<Services, 'runs'>,
  caller: Caller,
  answers: readonly CallAnswer[],
): Promise<AnsweredRun | undefined> {
  const rows: InteractionRow[] = []
  for (const { id } of answers) {
    const row = await runs.findInteraction(caller, id)
    if (row === undefined) return undefined
    rows.push(row)
  }
  const [first] = rows
  if (first === undefined || rows.some(({ runId }) => runId !== first.runId)) return undefined
  return { run: await runs.get(caller, first.runId), rows, answers }
}

/**
 * Stores the answers and returns the event after which the run goes on. An answer that was given before is accepted again.
 * Throws if the run waits for more than was sent.
 */
export async function answerRun(
  services: AnswerServices,
  caller: Caller,
  { run, rows, answers }: AnsweredRun,
): Promise<number> {
  const given = new Map(answers.map((answer) => [answer.id, answer]))
  const missing = (await services.runs.openInteractions(run)).filter(({ id }) => !given.has(id))
  if (missing.length > 0) {
    const names = missing.map(({ id }) => JSON.stringify(id)).join(', ')
    throw new AppError('messages_invalid', `The run also waits for the results of ${names}; send all of them at once.`)
  }
  const ofClient = rows.filter(({ kind }) => kind === 'client_tool')
  if (ofClient.length > 0) {
    const results = ofClient.map(({ id }) => ({ toolCallId: id, output: given.get(id)?.output ?? '' }))
    await services.clientTools.resolve(caller, run.id, results)
  }
  for (const row of rows) {
    const answer = given.get(row.id)
    if (row.kind === 'client_tool' || answer === undefined) continue
    await services.runs.answer(row, { ...decisionOf(row, answer), by: row.owner, at: services.clock.now() })
  }
  return await parkedAfter(services.journal, run.id, new Set(given.keys()))
}

/** Whether the answers can still be given, or are the ones that were given. */
export function isAnswerable({ rows, answers }: AnsweredRun): boolean {
  return rows.every((row, index) => {
    if (row.status === 'pending') return true
    const answer = answers[index]
    if (answer === undefined) return false
    if (row.kind === 'confirmation') return row.status === (isApproved(answer) ? 'confirmed' : 'rejected')
    return row.status === 'replied' && row.response === answer.output
  })
}

const reasonCharsMax = 2000

function decisionOf(
  { kind }: InteractionRow,
  answer: CallAnswer,
): { status: 'confirmed' | 'rejected' | 'replied'; response?: JsonValue; reason?: string } {
  if (kind === 'question') return { status: 'replied', response: answer.output }
  if (isApproved(answer)) return { status: 'confirmed' }
  const reason = answer.output.slice(0, reasonCharsMax).toWellFormed()
  return { status: 'rejected', ...(reason === '' ? {} : { reason }) }
}

/** A yes is short. A longer reply is not parsed, because the client chooses its length. */
const approvalCharsMax = 1000

/** Only a clear yes allows a call. A client that does not know the tool answers with an error, for example. */
function isApproved({ approved, output }: CallAnswer): boolean {
  if (approved !== undefined) return approved
  if (output.length > approvalCharsMax) return false
  const text = output.trim()
  if (text.toLowerCase() === 'approved') return true
  try {
    return (JSON.parse(text) as { approved?: unknown } | null)?.approved === true
  } catch {
    return false
  }
}
