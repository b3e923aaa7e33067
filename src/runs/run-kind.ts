// The interface for everything that differs between kinds of run (chat, job). The loop, the
// tool phase and the row folds are the same code for all kinds and call these methods. A
// kind is pure: it reads the spec or the state of a run, and only runs/ writes.

import type { AppError } from '../errors/app-error.ts'
import type { JsonValue, RunSpec } from '../journal/event.ts'
import type { RunState } from '../journal/run-state.ts'
import type { RunWrite } from '../stores/run-store.ts'
import type { Audience } from '../tools/tool.ts'
import type { OutputRule } from './output-check.ts'

export interface RunKind {
  readonly name: string
  /** Replaces the instructions of the agent. Undefined if the agent's own are used. */
  systemPrompt(spec: RunSpec): string | undefined
  /** Whether this run may use tools for `audience`. Not called for tools that do not depend on the kind. */
  isAudience(audience: Exclude<Audience, 'all' | 'large_outputs'>, state: RunState): boolean
  /** The rule that the final answer must satisfy. Undefined if any text is an answer. */
  outputRule(spec: RunSpec): OutputRule | undefined
  /** The answer that code alone can give. Real models ignore it; the demo model answers with it. */
  computedAnswer(spec: RunSpec): Record<string, JsonValue> | undefined
  /** How long a question waits for a reply before the model decides by itself. Undefined if there is no limit. */
  replyTimeoutMs(spec: RunSpec): number | undefined
  /** The error that ends a held run whose upload did not come in time. */
  uploadExpired(): AppError
  /** Row changes at the end of a run, in addition to those of every kind. `state` already includes `run.ended`. */
  changesAtEnd(runId: string, state: RunState): EndChanges
}

export type EndChanges = Pick<NonNullable<RunWrite['run']>, 'cacheKey'> &
  Pick<RunWrite, 'dropBlobs' | 'snapshot' | 'describeConversation'>

/** The kind of a run. It depends only on the spec, so it never changes. */
export type KindOf = (spec: RunSpec) => RunKind
