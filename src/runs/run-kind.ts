// What differs between kinds of run (a chat, a job). The loop, the tool phase and the row
// folds are the same for all of them and ask the kind where they differ. Pure: a kind
// reads the spec or the state of a run and decides; runs/ writes.

import type { AppError } from '../errors/app-error.ts'
import type { RunSpec } from '../journal/event.ts'
import type { RunState } from '../journal/run-state.ts'
import type { RunWrite } from '../stores/run-store.ts'
import type { Audience } from '../tools/tool.ts'
import type { OutputRule } from './output-check.ts'

export interface RunKind {
  readonly name: string
  /** Replaces the instructions of the agent. Undefined: the agent's own are used. */
  systemPrompt(spec: RunSpec): string | undefined
  /** Whether this run is offered the tools that are meant for `audience`. Tools for all runs are not asked about. */
  isAudience(audience: Exclude<Audience, 'all'>, state: RunState): boolean
  /** What the final answer must be. Undefined: any text is an answer. */
  outputRule(spec: RunSpec): OutputRule | undefined
  /** How long a question waits for a reply before the run decides by itself. Undefined: there is no such limit. */
  replyTimeoutMs(spec: RunSpec): number | undefined
  /** The error that ends a held run whose upload did not come in time. */
  uploadExpired(): AppError
  /** What changes with the end of a run, beside what changes for every run. `state` already holds the end. */
  changesAtEnd(runId: string, state: RunState): EndChanges
}

export type EndChanges = Pick<NonNullable<RunWrite['run']>, 'cacheKey'> & Pick<RunWrite, 'dropBlobs'>

/** Which kind a run is; fixed by what it was accepted with. */
export type KindOf = (spec: RunSpec) => RunKind
