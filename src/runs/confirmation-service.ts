// Lists the confirmations of tool calls, and stores the decisions of the users who own them,
// and their answers to the questions of remote agents.
// A decision is stored as a row; the node that owns the run writes it into the journal.

import { AppError } from '../errors/app-error.ts'
import type { JsonValue } from '../journal/event.ts'
import { type Caller, owns } from '../kit/caller.ts'
import type { Clock } from '../kit/clock.ts'
import { defined } from '../kit/defined.ts'
import type { InteractionFilter, InteractionRow, InteractionStore } from '../stores/interaction-store.ts'
import type { RowPage } from '../stores/row-page.ts'
import type { RunRow } from '../stores/run-store.ts'
import type { ToolRegistry } from '../tools/tool.ts'
import type { Scheduler } from './scheduler.ts'

export type ConfirmationDependencies = { store: InteractionStore; tools: ToolRegistry; clock: Clock }

/** Higher than the number of confirmations that one run has open at once. */
const openOfRunMax = 100

export class ConfirmationService {
  private readonly dependencies: ConfirmationDependencies
  private readonly scheduler: Pick<Scheduler, 'poke'>

  constructor(dependencies: ConfirmationDependencies, scheduler: Pick<Scheduler, 'poke'>) {
    this.dependencies = dependencies
    this.scheduler = scheduler
  }

  /** Newest first. `before` is the last id of the previous page; throws if the owner has no confirmation with that id. */
  async list(owner: string, filter: Omit<InteractionFilter, 'owner' | 'kind'>): Promise<RowPage<InteractionRow>> {
    if (filter.before !== undefined) {
      const last = await this.dependencies.store.readInteraction(filter.before)
      if (last?.owner !== owner || last.kind !== 'confirmation') throw notFound(filter.before)
    }
    return await this.dependencies.store.listInteractions({ ...filter, owner, kind: 'confirmation' })
  }

  /** The pending confirmations of a run. */
  async openOf({ id, owner }: RunRow): Promise<InteractionRow[]> {
    return (await this.list(owner, { runId: id, status: ['pending'], limit: openOfRunMax })).rows
  }

  /** The newest confirmation of each call of the run that people were asked about, by the id of the call. */
  async byCall({ id, owner }: RunRow): Promise<Map<string, InteractionRow>> {
    const { rows } = await this.list(owner, { runId: id, limit: openOfRunMax })
    return new Map(rows.toReversed().flatMap((row) => (row.callId === null ? [] : [[row.callId, row] as const])))
  }

  /** Throws `tool_confirmation_not_found` if the confirmation does not belong to the caller. */
  async get(caller: Caller, id: string): Promise<InteractionRow> {
    const row = await this.dependencies.store.readInteraction(id)
    if (row === undefined || !owns(caller, row) || !isDecidedHere(row)) throw notFound(id)
    return row
  }

  /**
   * `changes` are merged into the arguments that the user saw; the merged arguments must fit the tool's schema. For a
   * question they are the answer.
   */
  async confirm(caller: Caller, id: string, changes: Record<string, JsonValue> | undefined): Promise<InteractionRow> {
    const row = await this.get(caller, id)
    if (row.kind === 'question') return await this.decide(row, { status: 'replied', response: answerIn(changes) })
    let response: JsonValue | undefined
    if (changes !== undefined && Object.keys(changes).length > 0) {
      response = { ...(row.input as Record<string, JsonValue>), ...changes }
      const tool = row.toolName === null ? undefined : this.dependencies.tools.get(row.toolName)
      const wrong = tool === undefined ? null : this.dependencies.tools.check(tool, response)
      if (wrong !== null)
        throw new AppError(
          'confirmation_payload_invalid',
          `The changed arguments do not fit ${row.toolName}: ${wrong}.`,
        )
    }
    return await this.decide(row, { status: 'confirmed', ...defined({ response }) })
  }

  async reject(caller: Caller, id: string, reason: string | undefined): Promise<InteractionRow> {
    const row = await this.get(caller, id)
    return await this.decide(row, { status: 'rejected', ...defined({ reason }) })
  }

  private async decide(
    { id, owner, runId }: InteractionRow,
    decision: { status: 'confirmed' | 'rejected' | 'replied'; response?: JsonValue; reason?: string },
  ): Promise<InteractionRow> {
    const result = await this.dependencies.store.decide(id, {
      ...decision,
      by: owner,
      at: this.dependencies.clock.now(),
    })
    if (result === undefined) throw notFound(id)
    if (!result.decided) {
      const expired = result.row.status === 'pending' || result.row.status === 'expired'
      throw new AppError(
        expired ? 'tool_confirmation_expired' : 'tool_confirmation_resolved',
        expired
          ? 'This confirmation has expired; ask the agent again.'
          : `This confirmation was decided before: ${result.row.status}.`,
        { details: { confirmationId: id, status: expired ? 'expired' : result.row.status } },
      )
    }
    this.scheduler.poke(runId)
    return result.row
  }
}

/** The questions of jobs, which have no conversation, are answered with the API of jobs. */
function isDecidedHere({ kind, conversationId }: InteractionRow): boolean {
  return kind === 'confirmation' || (kind === 'question' && conversationId !== null)
}

/** `{"answer": …}` is the answer itself; any other object is an answer with several fields. */
function answerIn(payload: Record<string, JsonValue> | undefined): JsonValue {
  const names = Object.keys(payload ?? {})
  if (payload === undefined || names.length === 0) {
    throw new AppError(
      'confirmation_payload_invalid',
      'This is a question. Send the answer as payload, for example {"answer": "Tuesday"}.',
    )
  }
  return names.length === 1 && names[0] === 'answer' ? (payload['answer'] ?? null) : payload
}

function notFound(id: string): AppError {
  return new AppError('tool_confirmation_not_found', `There is no confirmation ${JSON.stringify(id)}.`)
}
