// The dependencies of the code that runs and accepts runs; `app/` injects them.

import type { Catalogue } from '../agents/catalogue.ts'
import type { ClusterBus } from '../bus/cluster-bus.ts'
import type { LiveBus } from '../bus/live-bus.ts'
import type { RunStatus, ToolOutcome, Usage } from '../journal/event.ts'
import type { Engines } from '../engines/engine.ts'
import type { FileService } from '../files/file-service.ts'
import type { Clock } from '../kit/clock.ts'
import type { Ids } from '../kit/ids.ts'
import type { Tracer } from '../kit/tracer.ts'
import type { ModelConfigs, Models, ModelTable } from '../models/model.ts'
import type { Store } from '../stores/store.ts'
import type { ToolRegistry } from '../tools/tool.ts'
import type { BudgetLimits } from './budgets.ts'
import type { Placement } from './placement.ts'
import type { KindOf } from './run-kind.ts'

export type RunLimits = {
  stepsMax: number
  runMaxMs: number
  stallMs: number
  /** How many runs may be executed at the same time, over all nodes. */
  concurrency: number
  /** How many of them this node may execute. */
  nodeConcurrency: number
  /** How long a run waits for a node that can execute it. */
  unplaceableMs: number
  /** How long a node owns a run after its last heartbeat. */
  leaseMs: number
  queueMax: number
  confirmationTtlMs: number
  /** How many tools of one run may execute in parallel. */
  toolsAtOnce: number
  /** The context window of models that are not in the table of models; absent means a default. */
  contextTokens?: number | undefined
  /** Absent: nothing is limited. */
  budgets?: BudgetLimits | undefined
}

export interface RunLog {
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}

/** A process death that happened while this run was executing on the main thread. */
export type ProcessDeath = {
  id: string
  at: number
  runId: string
  /** What the run was doing: `load`, `step 2`, `tool search (call-1)`. */
  place: string
  how: 'frozen' | 'crashed' | 'exited'
}

export interface ProcessDeaths {
  /** The deaths that are not in the run's journal yet. */
  of(runId: string): ProcessDeath[]
  /** Forgets the deaths of a run, because its journal holds them now or the run has ended. */
  settled(runId: string): void
}

export type EndedRun = { runId: string; family: string; engine: string; status: RunStatus }

/** `model` is `provider/model`. */
export type MeteredUsage = { model: string; usage: Usage | undefined; costMicroUsd: number | undefined }

/** Measures the work in runs. */
export interface RunMeter {
  /** `firstPartSeconds` is undefined if the answer had no part before its end. */
  stepDone(step: MeteredUsage & { seconds: number; firstPartSeconds: number | undefined }): void
  /** The provider reported tokens for an answer that is not used. */
  answerDiscarded(answer: MeteredUsage): void
  /** A run was taken up for the first time, this long after its acceptance. */
  runStarted(waitedSeconds: number): void
  modelRetried(model: string): void
  /** A run asks another model, because this one could not answer. `reason` is an error code. */
  modelFellBack(model: string, reason: string): void
  toolDone(call: { tool: string; outcome: ToolOutcome; seconds: number }): void
}

/** Measures who owns runs. */
export interface LeaseMeter {
  /** Runs were claimed; `takenOver` of them from nodes whose leases had run out. */
  runsClaimed(count: number, takenOver: number): void
  /** The work on a run stopped because its lease could not be renewed in time. */
  leaseLost(): void
  /** An append was refused because another node owns the run. */
  appendFenced(): void
}

/** Measures commits to the journal: how long they take, and how many are under way. */
export type CommitMeter = {
  /** A commit was asked for. */
  commitStarted(): void
  /** It was done, or it failed. */
  commitDone(ms: number): void
}

export type RunDependencies = {
  store: Store
  bus: LiveBus
  /** The bus between nodes. Absent if this server is alone. */
  cluster?: ClusterBus
  /** Absent if this server is alone. */
  placement?: Placement
  clock: Clock
  ids: Ids
  models: Models
  configs: ModelConfigs
  modelTable: ModelTable
  engines: Engines
  tools: ToolRegistry
  files: Pick<FileService, 'read' | 'put'>
  catalogue: Catalogue
  kindOf: KindOf
  limits: RunLimits
  log: RunLog
  countEvents?: (count: number) => void
  commitMeter?: CommitMeter
  /** The database may crash while this process lives on, and lose deltas that readers have seen. */
  databaseMayCrash?: boolean
  meter?: Pick<RunMeter, 'stepDone' | 'answerDiscarded' | 'toolDone' | 'modelFellBack' | 'runStarted'>
  leaseMeter?: LeaseMeter
  deaths?: ProcessDeaths
  /** Absent if no traces are recorded. */
  tracer?: Tracer
  /** Called and awaited after the ending is committed, so that its consequences are done before the next run of the conversation starts. */
  runEnded?: (run: EndedRun) => void | Promise<void>
}
