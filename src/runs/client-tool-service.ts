// Takes the results of tool calls that clients execute. A result is stored as a row, once; the
// node that owns the run writes it into the journal, and the run goes on when all open calls
// have their results.

import { AppError } from '../errors/app-error.ts'
import type { JsonValue } from '../journal/event.ts'
import { type Caller, owns } from '../kit/caller.ts'
import type { Clock } from '../kit/clock.ts'
import { sortedJson } from '../kit/sorted-json.ts'
import type { Decision, InteractionRow, InteractionStore } from '../stores/interaction-store.ts'
import type { RunRow, RunStore } from '../stores/run-store.ts'
import type { Scheduler } from './scheduler.ts'

export type ClientToolDependencies = {
  store: InteractionStore & Pick<RunStore, 'readRun' | 'openRuns'>
  clock: Clock
}

/** `toolCallId` is the id of the call in the journal, or the id of its interaction. */
export type ClientToolResult = { toolCallId: string; output: JsonValue } | { toolCallId: string; error: string }

/** For one output as JSON: it is copied to the journal and to the next prompt. */
export const clientOutputCharsMax = 256 * 1024
export const clientErrorCharsMax = 8_000

export class ClientToolService {
  private readonly dependencies: ClientToolDependencies
  private readonly scheduler: Pick<Scheduler, 'poke'>

  constructor(dependencies: ClientToolDependencies, scheduler: Pick<Scheduler, 'poke'>) {
    this.dependencies = dependencies
    this.scheduler = scheduler
  }

  /** Throws `tool_call_not_found` if the interaction does not belong to the caller, or is not a call of a client's tool. */
  async find(caller: Caller, interactionId: string): Promise<InteractionRow> {
    const row = await this.dependencies.store.readInteraction(interactionId)
    if (row === undefined || !owns(caller, row) || row.kind !== 'client_tool') throw notFound(interactionId)
    return row
  }

  /** The calls of the run that were handed over to the client, in the order in which the model made them. */
  async callsOf({ id }: Pick<RunRow, 'id'>): Promise<InteractionRow[]> {
    const rows = await this.dependencies.store.interactionsOf(id)
    return rows.filter(({ kind }) => kind === 'client_tool').toSorted((left, right) => left.number - right.number)
  }

  /** Those of them that wait for a result. */
  async openOf(run: Pick<RunRow, 'id'>): Promise<InteractionRow[]> {
    return (await this.callsOf(run)).filter(({ status }) => status === 'pending')
  }

  /** The run of the conversation that waits for results of the client; the newest if there are several. */
  async waitingRun(conversationId: string): Promise<RunRow | undefined> {
    const open = await this.dependencies.store.openRuns(conversationId)
    for (const run of open.toReversed()) if ((await this.openOf(run)).length > 0) return run
    return undefined
  }

  /**
   * Stores results of a run. All are checked before any is stored. The same result may be sent again; another one for the
   * same call is refused, because a call has one result. Returns the rows in the order of `results`.
   */
  async resolve(caller: Caller, runId: string, results: readonly ClientToolResult[]): Promise<InteractionRow[]> {
    const run = await this.dependencies.store.readRun(runId)
    if (run === undefined || !owns(caller, run))
      throw new AppError('run_not_found', `There is no run ${JSON.stringify(runId)}.`)
    const calls = await this.callsOf(run)
    const planned = results.map((result) => {
      const { toolCallId } = result
      const row = calls.find(({ id, callId }) => callId === toolCallId || id === toolCallId)
      if (row === undefined) throw notFound(toolCallId)
      checkSize(result)
      if (row.status !== 'pending') checkSame(row, result)
      return { row, result }
    })
    const stored: InteractionRow[] = []
    for (const { row, result } of planned) stored.push(await this.store(row, result))
    this.scheduler.poke(runId)
    return stored
  }

  private async store(row: InteractionRow, result: ClientToolResult): Promise<InteractionRow> {
    const decision: Pick<Decision, 'status' | 'response' | 'reason'> =
      'error' in result ? { status: 'rejected', reason: result.error } : { status: 'replied', response: result.output }
    const at = this.dependencies.clock.now()
    const decided = await this.dependencies.store.decide(row.id, { ...decision, by: row.owner, at })
    if (decided === undefined) throw notFound(result.toolCallId)
    if (!decided.decided) checkSame(decided.row, result)
    return decided.row
  }
}

function checkSize(result: ClientToolResult): void {
  const length = 'error' in result ? result.error.length : JSON.stringify(result.output).length
  const max = 'error' in result ? clientErrorCharsMax : clientOutputCharsMax
  if (length <= max) return
  throw new AppError(
    'tool_result_too_large',
    `The result of the call ${JSON.stringify(result.toolCallId)} has ${length} characters; at most ${max} are allowed. Send a shorter one.`,
  )
}

/** Throws unless `result` is the one that the row has. */
function checkSame(row: InteractionRow, result: ClientToolResult): void {
  const { status } = row
  const same =
    'error' in result
      ? status === 'rejected' && row.reason === result.error
      : status === 'replied' && sortedJson(row.response) === sortedJson(result.output)
  if (same) return
  const details = { toolCallId: result.toolCallId, status }
  if (status === 'replied' || status === 'rejected') {
    throw new AppError(
      'tool_result_already_given',
      `The call ${JSON.stringify(result.toolCallId)} has another result already.`,
      { details },
    )
  }
  throw new AppError(
    'tool_result_too_late',
    `The call ${JSON.stringify(result.toolCallId)} no longer waits for a result; ask the agent again.`,
    { details: { ...details, status: status === 'pending' ? 'expired' : status } },
  )
}

function notFound(id: string): AppError {
  return new AppError('tool_call_not_found', `No call ${JSON.stringify(id)} waits for a result of the client.`)
}
