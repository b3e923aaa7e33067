// Rows and run state → the JSON of the job routes: status, open question, result, artifacts.

import { z } from 'zod'
import { pendingKind, policyOf } from '../../dialects/fcmp/pending-kind.ts'
import { type JsonValue, type RunSpec, type RunStatus, isTerminal } from '../../journal/event.ts'
import type { RunState } from '../../journal/run-state.ts'
import { isoTime } from '../../kit/clock.ts'
import { defined } from '../../kit/defined.ts'
import { artifactsOf } from '../../jobs/job-artifacts.ts'
import { outputData, repairLevelOf } from '../../jobs/job-output.ts'
import { type EventReader, readRunState } from '../../journal/event-pages.ts'
import type { InteractionRow } from '../../stores/interaction-store.ts'
import type { RunRow } from '../../stores/run-store.ts'
import type { ToolRegistry } from '../../tools/tool.ts'
import { jsonValue } from '../json-value.ts'

export const errorView = z
  .object({
    code: z.string(),
    message: z.string(),
    details: z.record(z.string(), z.unknown()).optional(),
    detail: z.unknown(),
  })
  .meta({ id: 'JobError', description: 'An error. `detail` repeats it in the shape of the job API.' })

const jobError = z.object({ code: z.string(), message: z.string() }).nullable()

export const statusView = z
  .object({
    request_id: z.string(),
    status: z.string(),
    skill_id: z.string().nullable(),
    engine: z.string(),
    created_at: z.string(),
    updated_at: z.string(),
    warnings: z.array(z.string()),
    error: jobError,
    auto_decision_count: z.number(),
    last_auto_decision_at: z.string().nullable(),
    pending_interaction_id: z.number().nullable(),
    interaction_count: z.number(),
    recovery_state: z.enum(['none', 'recovered_waiting', 'failed_reconciled']),
    recovered_at: z.string().nullable(),
    recovery_reason: z.string().nullable(),
  })
  .meta({ id: 'JobStatus' })

export const jobSummary = statusView.pick({
  request_id: true,
  status: true,
  skill_id: true,
  created_at: true,
  updated_at: true,
  error: true,
})

/** `rows` are the questions of the job; they matter only while it waits for a person. */
export function toSummary(run: RunRow, rows: readonly InteractionRow[]): z.infer<typeof jobSummary> {
  return {
    request_id: run.id,
    status: jobStatus(run, rows),
    skill_id: run.skillId,
    created_at: isoTime(run.createdAt),
    updated_at: isoTime(updatedAt(run, rows)),
    error: errorOf(run),
  }
}

function updatedAt(run: RunRow, rows: readonly InteractionRow[]): number {
  return Math.max(run.createdAt, run.startedAt ?? 0, run.endedAt ?? 0, ...rows.map((row) => row.updatedAt))
}

/** `queued` if all questions are answered: the run waits for a slot then, and its row is updated a moment later. */
export function jobStatus(run: RunRow, rows: readonly InteractionRow[]): RunStatus {
  return run.status === 'waiting_user' && !rows.some((row) => row.status === 'pending') ? 'queued' : run.status
}

export function toStatus(
  run: RunRow,
  rows: readonly InteractionRow[],
  /** Undefined if the first event of the job can no longer be read; the other fields are still filled in. */
  spec: RunSpec | undefined,
  ended: RunState | undefined,
): z.infer<typeof statusView> {
  const status = jobStatus(run, rows)
  // For each of these the event stream has an `interaction.auto_decide.timeout`. If nobody answers a confirmation in time, it expires and the call is denied.
  const autoDecided = rows.filter((row) => row.status === 'auto_decided' || row.status === 'expired')
  const lastAutoDecidedAt = autoDecided.at(-1)?.decidedAt ?? null
  const lost = run.error?.code === 'run_unrecoverable'
  return {
    request_id: run.id,
    status,
    skill_id: spec?.skill?.id ?? run.skillId,
    engine: spec?.engine ?? 'unknown',
    created_at: isoTime(run.createdAt),
    updated_at: isoTime(updatedAt(run, rows)),
    warnings: ended === undefined ? [] : warningsOf(ended),
    error: errorOf(run),
    auto_decision_count: autoDecided.length,
    last_auto_decision_at: lastAutoDecidedAt === null ? null : isoTime(lastAutoDecidedAt),
    pending_interaction_id:
      status === 'waiting_user' ? (rows.find((row) => row.status === 'pending')?.number ?? null) : null,
    interaction_count: rows.length,
    recovery_state: lost ? 'failed_reconciled' : 'none',
    recovered_at: lost && run.endedAt !== null ? isoTime(run.endedAt) : null,
    recovery_reason: lost ? (run.error?.code ?? null) : null,
  }
}

function errorOf(run: RunRow): z.infer<typeof jobError> {
  if (run.status === 'canceled') {
    return { code: 'CANCELED_BY_USER', message: run.cancel?.reason ?? 'The job was cancelled.' }
  }
  return run.error === null ? null : { code: run.error.code, message: run.error.message }
}

function warningsOf(state: RunState): string[] {
  const rejected = [...state.rejectedOutputs.values()].map(
    (errors) => `An answer was rejected and asked for once more: ${errors.join('; ')}`,
  )
  const calls = [...state.calls.values()].flatMap((call) =>
    call.done !== undefined && call.done.outcome !== 'succeeded' && call.done.outcome !== 'cancelled'
      ? [`${call.name}: ${call.done.error?.message ?? call.done.summary}`]
      : [],
  )
  return [...rejected, ...calls]
}

export const pendingView = z
  .object({
    interaction_id: z.number(),
    kind: z.string(),
    prompt: z.string(),
    options: z.array(z.object({ label: z.string(), value: jsonValue })),
    ui_hints: z.record(z.string(), jsonValue),
    default_decision_policy: z.string(),
    required_fields: z.array(z.string()),
    context: z.record(z.string(), jsonValue).nullable(),
  })
  .meta({ id: 'JobQuestion' })

export function toPending(row: InteractionRow, tools: Pick<ToolRegistry, 'get'>): z.infer<typeof pendingView> {
  const question = row.kind === 'question' ? tools.get(row.toolName ?? '')?.ask?.(row.input) : undefined
  const kind = pendingKind({
    kind: row.kind,
    ...defined({ style: question?.style, outcome: row.outcome ?? undefined }),
  })
  const consent = [
    { label: 'Confirm', value: true },
    { label: 'Reject', value: false },
  ]
  return {
    interaction_id: row.number,
    kind,
    prompt: row.prompt,
    options: row.kind === 'confirmation' ? consent : (question?.options ?? []),
    ui_hints: row.deadlineAt === null ? {} : { deadline_at: isoTime(row.deadlineAt) },
    default_decision_policy: policyOf(row.atDeadline ?? undefined),
    required_fields: question?.fields ?? [],
    context: row.kind === 'confirmation' ? { confirmation_id: row.id, tool: row.toolName, arguments: row.input } : null,
  }
}

export const artifactView = z.object({ path: z.string(), size: z.number() }).meta({ id: 'Artifact' })

export const resultView = z
  .object({
    status: z.string(),
    data: jsonValue,
    artifacts: z.array(z.string()),
    repair_level: z
      .enum(['none', 'deterministic_generic', 'model_round'])
      .describe(
        'deterministic_generic: the JSON was extracted from a code fence or from surrounding text. model_round: the model was asked again.',
      ),
    validation_warnings: z.array(z.string()),
    error: jobError,
    pending_interaction: z.null(),
  })
  .meta({ id: 'JobResult' })

export function toResult(run: RunRow, state: RunState): z.infer<typeof resultView> {
  const { ended, accepted } = state
  const data: JsonValue = ended?.status === 'succeeded' ? outputData(accepted?.spec.skill, ended.output ?? '') : null
  return {
    status: run.status,
    data,
    artifacts: artifactsOf(state).map(({ path }) => path),
    repair_level: repairLevelOf(state),
    validation_warnings: warningsOf(state),
    error: errorOf(run),
    pending_interaction: null,
  }
}

export async function endedState(journal: EventReader, run: RunRow): Promise<RunState | undefined> {
  return isTerminal(run.status) ? await readRunState(journal, run.id) : undefined
}
