// The kind of a one-shot run: one question to an agent over collected data, an answer that
// fits the output schema of its operation and cites only records that were given, and a
// snapshot of the result that is written with the end of the run.

import { AppError } from '../errors/app-error.ts'
import type { OneShotSpec, RunSpec } from '../journal/event.ts'
import type { RunState } from '../journal/run-state.ts'
import { defined } from '../kit/defined.ts'
import { isValueDeeperThan } from '../kit/json-depth.ts'
import type { OutputRule } from '../runs/output-check.ts'
import type { EndChanges, RunKind } from '../runs/run-kind.ts'
import type { NewSnapshot } from '../stores/snapshot-store.ts'
import { citationErrors } from './citations.ts'
import { resultOf } from './one-shot-result.ts'

/** Recursive code walks the result: the JSON writer, the comparison of snapshots, and clients. */
const depthMax = 64

export const oneShotKind: RunKind = {
  name: 'one-shot',
  // Rendered at acceptance, so that a change of the definition does not change a run under way.
  systemPrompt: (spec) => spec.systemPrompt,
  isAudience: () => false,
  outputRule: ({ agentId, oneShot }) => outputRuleOf(agentId, oneShot),
  computedAnswer: ({ oneShot }) => oneShot?.computedAnswer,
  replyTimeoutMs: () => undefined,
  uploadExpired: () => new AppError('internal_error', 'A one-shot run never waits for an upload.'),
  changesAtEnd: (runId, state) =>
    defined({ snapshot: snapshotOf(runId, state), describeConversation: descriptionOf(state) }),
}

function outputRuleOf(agentId: string, oneShot: OneShotSpec | undefined): OutputRule | undefined {
  if (oneShot?.outputSchema === undefined) return undefined
  const { outputSchema, citable, citationsRequired } = oneShot
  return {
    schema: outputSchema,
    mayAsk: false,
    check(value) {
      if (isValueDeeperThan(value, depthMax)) return [`it is nested more than ${depthMax} levels deep`]
      return citable === undefined ? [] : citationErrors(value, citable, citationsRequired)
    },
    invalid: (errors, repaired) => outputInvalid(agentId, errors, repaired),
  }
}

function outputInvalid(agentId: string, errors: readonly string[], repaired: boolean): AppError {
  const again = repaired ? ', also after it was asked once more' : ''
  return new AppError(
    'output_validation_failed',
    `The model’s answer is not what the agent ${agentId} promises${again}: ${errors[0]}. Try again, or use another model.`,
    { details: { errors: [...errors] } },
  )
}

function snapshotOf(runId: string, { accepted, ended, endedAt }: RunState): NewSnapshot | undefined {
  if (accepted === undefined || ended?.status !== 'succeeded') return undefined
  const spec: RunSpec = accepted.spec
  const { oneShot } = spec
  if (oneShot?.snapshot == null) return undefined
  const createdAt = endedAt ?? 0
  const { id, ttlMs } = oneShot.snapshot
  return {
    id,
    owner: accepted.owner,
    agentId: spec.agentId,
    operation: oneShot.operation,
    scopeType: oneShot.scope.type,
    scopeId: oneShot.scope.id,
    sourceHash: oneShot.sourceHash,
    promptVersion: oneShot.promptVersion,
    model: spec.model,
    runId,
    output: resultOf(oneShot, ended.output ?? ''),
    createdAt,
    expiresAt: ttlMs === null ? null : createdAt + ttlMs,
    scopeMustExist: oneShot.scope.mustExist,
  }
}

/** Written in the commit that ends the run, so that it happens exactly once, also after a crash. */
function descriptionOf({ accepted, ended }: RunState): EndChanges['describeConversation'] {
  const oneShot = accepted?.spec.oneShot
  if (oneShot?.describes === undefined || ended?.status !== 'succeeded') return undefined
  const { title, summary } = resultOf(oneShot, ended.output ?? '')
  if (typeof title !== 'string' || typeof summary !== 'string') return undefined
  return { id: oneShot.describes, title, summary }
}
