// Drives one claimed run until it ends, parks, is drained, or loses its lease.
//
//   resume ─▶ ┌─ open calls? ─▶ tool phase ─▶ all done ─┐
//             │                     └─ a person is needed ─▶ parked (lease released)
//             ├─ last step final? ─▶ checked ─▶ succeeded │
//             │                     └─ wrong, for the first time ─▶ asked once more
//             └─ otherwise ─▶ model step ◀────────────────┘
//
// The loop writes an ending for every error (`failed`) and cancel (`canceled`). It
// writes none in two cases: a drain (the next start resumes the run) and a lost
// lease (the new owner resumes it).

import type { AgentCard } from '../agents/agent-definition.ts'
import type { StepEngine, TurnEngine } from '../engines/engine.ts'
import { AppError, toAppError } from '../errors/app-error.ts'
import { diagnosticCodes } from '../journal/diagnostic-codes.ts'
import type { JsonValue, NewEvent, RunSpec } from '../journal/event.ts'
import {
  type CallState,
  callsToRun,
  deathsAtOnePlace,
  engineOf,
  nextModel,
  nextStepNumber,
  openInteractions,
  type RunState,
  type StepState,
  specOf,
  questionOf,
} from '../journal/run-state.ts'
import type { FileKind } from '../journal/media-type.ts'
import { atPlace } from '../kit/activity.ts'
import { elapsedMs, type Timer } from '../kit/clock.ts'
import { defined } from '../kit/defined.ts'
import { type Expiring, sharedTimers } from '../kit/shared-timers.ts'
import type { ModelMessage, WantedAnswer } from '../models/model.ts'
import type { RunRow } from '../stores/run-store.ts'
import type { Tool } from '../tools/tool.ts'
import { checkStepBudgets } from './budgets.ts'
import { questionFromText, journalDecisions } from './interactions.ts'
import { CancelInterrupt, DrainInterrupt } from './interrupts.ts'
import { runStep, type StepContext } from './model-step.ts'
import { PromptBuilder } from './prompt-builder.ts'
import { loadPromptFiles, readsKind, withFilesAsText } from './prompt-files.ts'
import { judgeAnswer } from './output-check.ts'
import { abortRemoteTurn, handleOfPreviousRun } from './remote-turn.ts'
import { nextDeadline } from './row-folds.ts'
import { type Ending, endingEvents } from './run-ending.ts'
import type { RunKind } from './run-kind.ts'
import type { RunDependencies } from './run-dependencies.ts'
import { recordRun } from './run-trace.ts'
import { RunSignal } from './run-signal.ts'
import { offeredTool, toolOfCall, toolsOf } from './run-tools.ts'
import { RunWriter } from './run-writer.ts'
import { ToolPhase } from './tool-phase.ts'
import { isTurnFinished, runTurn } from './turn-phase.ts'

/** Stops what is still running when a run ends. It is never reported, so it needs no stack of its own. */
const runEnded = new CancelInterrupt()

/** A run that was active at this many process deaths, at the same place in its work, is ended instead of retried. */
export const deathsMax = 2

export type LoopResult = 'ended' | 'parked' | 'drained' | 'lost'

/** The next step: who is asked, and with what. */
type StepPlan = {
  engine: StepEngine
  tools: Tool[]
  messages: ModelMessage[]
  /** The provider refused the prompt before it as too long. */
  isShortened: boolean
}

export interface LeaseHolder {
  /** Throws if this node may no longer own the run. */
  confirmLease(): Promise<void>
}

export class RunLoop implements Expiring {
  readonly runId: string
  readonly writer: RunWriter
  private readonly row: RunRow
  private readonly dependencies: RunDependencies
  /** Aborted by a cancel, the time limit, a drain or a lost lease. */
  private readonly modelSignal = new RunSignal()
  /** Made with the tool phase. Not aborted when a drain begins, because tools get time to finish; see `abortTools`. */
  private toolAbort: AbortController | undefined
  /** Why model and tools were stopped, if they were. */
  private stopped: { reason: unknown } | undefined
  private cancelled: { by: string; reason: string | null } | undefined
  private draining = false
  /** In milliseconds of the monotonic clock. */
  private runningSince = 0
  /** Made for the first calls. */
  private phase: ToolPhase | undefined
  private card: AgentCard | undefined
  private readonly owner: LeaseHolder
  private readonly prompts: PromptBuilder
  /** The run was accepted as running, and perhaps with the start of its first step; see `immediate-start.ts`. */
  private startedAtAcceptance: boolean

  constructor(
    row: RunRow,
    state: RunState,
    dependencies: RunDependencies,
    owner: LeaseHolder,
    { startedAtAcceptance = false }: { startedAtAcceptance?: boolean } = {},
  ) {
    this.runId = row.id
    this.startedAtAcceptance = startedAtAcceptance
    this.row = row
    this.dependencies = dependencies
    this.owner = owner
    this.writer = new RunWriter(row.id, row.epoch, state, dependencies)
    // The start of the first step is accepted with the run only if there are no earlier messages.
    this.prompts = new PromptBuilder(this.writer, dependencies, startedAtAcceptance && state.steps.length > 0)
    this.writer.onLost = (error) => this.stop(error)
    if (row.cancel !== null) this.cancelled = row.cancel
  }

  /** Stops model and tool work at once; the loop then writes the ending. */
  cancel(request: { by: string; reason: string | null }): void {
    this.cancelled ??= request
    this.stop(new CancelInterrupt())
  }

  drain(): void {
    this.draining = true
    this.modelSignal.abort(new DrainInterrupt())
  }

  /** Aborts running tools when the drain's deadline passes. Their results are discarded, so recovery treats the calls as after a crash. */
  abortTools(): void {
    this.toolAbort?.abort(new DrainInterrupt())
  }

  /** Stops model and tools and writes nothing more, because another node owns the run or may own it. */
  loseLease(reason: AppError): void {
    void this.writer.retire(reason)
    this.stop(reason)
  }

  /** Tells the loop that a decision about this run may have been stored. A tool phase that begins later reads it by itself. */
  poke(): void {
    this.phase?.poke()
  }

  async drive(): Promise<LoopResult> {
    let timer: Timer | undefined
    try {
      if (this.cancelled !== undefined) return await this.end({ status: 'canceled', ...this.cancelled })
      // A held run is claimed only when its upload deadline has passed. A late upload then fails, because the run is claimed.
      if (this.writer.state.held) return await this.giveUpUpload()
      if (!(await this.resume())) return 'parked'
      this.runningSince = this.dependencies.clock.monotonic()
      const leftMs = this.dependencies.limits.runMaxMs - this.writer.state.activeMs
      timer = sharedTimers(this.dependencies.clock).after(leftMs, this)
      let again: StepPlan | undefined
      for (;;) {
        const next = again ?? (await this.advance())
        if (typeof next === 'string') return next
        again = undefined
        const context = this.stepContext(next)
        // The model is waited for here, because a function in between would stay in memory as long as the model is silent.
        try {
          await runStep(this.writer, await this.withFiles(next.messages), context)
        } catch (error) {
          again = await this.planAgain(next, context.answering, error)
        }
      }
    } catch (error) {
      return await this.finishAfterError(error)
    } finally {
      timer?.cancel()
    }
  }

  /** The run has used up its time. */
  expired(): void {
    this.stop(this.timedOut())
  }

  private kind(): RunKind {
    return this.dependencies.kindOf(specOf(this.writer.state))
  }

  private stop(reason: unknown): void {
    this.stopped ??= { reason }
    this.modelSignal.abort(reason)
    this.toolAbort?.abort(reason)
  }

  private async giveUpUpload(): Promise<LoopResult> {
    const error = this.kind().uploadExpired()
    return await this.end({ status: 'failed', error: error.toValue(), trigger: 'upload.expired' })
  }

  private timedOut(): AppError {
    const seconds = Math.round(this.dependencies.limits.runMaxMs / 1000)
    return new AppError(
      'run_timed_out',
      `The run took longer than ${seconds} s and was stopped. Ask for less at once, or raise POLYLOG_RUN_MAX_MS.`,
    )
  }

  /** Moves the run from its stored state to `running`. Returns false if it still waits for a person. */
  private async resume(): Promise<boolean> {
    const { writer } = this
    if (this.startedAtAcceptance) {
      this.dependencies.countEvents?.(writer.state.steps.length + 1)
      this.dependencies.meter?.runStarted(0)
      return true
    }
    if (writer.state.phase === 'running') {
      writer.push({ type: 'run.state', data: { from: 'running', to: 'queued', trigger: 'restart.requeued' } })
    }
    await this.journalDeaths()
    if (deathsAtOnePlace(writer.state) >= deathsMax) {
      throw new AppError(
        'run_unrecoverable',
        `The server died ${deathsMax} times while it worked on this run at the same place; it is not tried again.`,
      )
    }
    if (writer.state.phase === 'waiting_user') {
      // The store woke the run for a deadline by its own clock. The clock of this node may be behind, and the run would park again.
      const now = Math.max(this.dependencies.clock.now(), this.row.wakeAt ?? 0)
      await journalDecisions(writer, this.dependencies, now)
      if (openInteractions(writer.state).length > 0) {
        await writer.park(nextDeadline(writer.state))
        return false
      }
      const { lastResolution } = writer.state
      const atDeadline = lastResolution === 'expired' || lastResolution === 'auto_decided'
      const trigger = atDeadline ? 'interaction.auto_decide.timeout' : 'interaction.reply.accepted'
      writer.push({ type: 'run.state', data: { from: 'waiting_user', to: 'queued', trigger } })
    }
    const isFirst = writer.state.startedAt === undefined
    await writer.write({ type: 'run.state', data: { from: 'queued', to: 'running', trigger: 'turn.started' } })
    const { acceptedAt, startedAt = acceptedAt } = writer.state
    if (isFirst) this.dependencies.meter?.runStarted(Math.max(0, startedAt - acceptedAt) / 1000)
    return true
  }

  /** Writes the process deaths that the watchdog recorded to the journal before the run is retried, so that they are counted. */
  private async journalDeaths(): Promise<void> {
    const deaths = this.dependencies.deaths?.of(this.runId) ?? []
    if (deaths.length === 0) return
    const verbs = { frozen: 'was frozen', crashed: 'crashed', exited: 'ended' }
    await this.writer.write(
      ...deaths.map(({ id, at, place, how }): NewEvent => ({
        type: 'diagnostic',
        data: {
          code: diagnosticCodes.processDied,
          message: `The server ${verbs[how]} while it worked on this run (${place}).`,
          details: { id, at, place, how },
        },
      })),
    )
    this.dependencies.deaths?.settled(this.runId)
  }

  /** Works until the run has ended or parked, or the model has to be asked. */
  private async advance(): Promise<LoopResult | StepPlan> {
    const { writer, dependencies } = this
    const { reused } = writer.state
    if (reused !== undefined) return await this.end({ status: 'succeeded', output: reused.output })
    const engine = dependencies.engines.get(engineOf(writer.state))
    if (engine.kind === 'turn') {
      const result = await this.advanceTurn(engine)
      if (result !== undefined) return result
      // Another engine took over.
      return await this.advance()
    }
    this.card ??= dependencies.catalogue.lastWorking(specOf(writer.state).agentId).card
    for (;;) {
      this.modelSignal.throwIfAborted()
      if (callsToRun(writer.state).length > 0) {
        atPlace(`calls of step ${writer.state.steps.at(-1)?.step ?? 0}`)
        this.phase ??= this.toolPhase(this.card)
        if (!(await this.phase.settle(() => !this.draining))) return await this.parkForPerson()
        continue
      }
      const last = writer.state.steps.at(-1)
      if (last?.finished === true && last.callIds.length === 0) {
        const result = await this.settleAnswer(last)
        if (result !== undefined) return result
      }
      const finished = writer.state.steps.filter((step) => step.finished).length
      if (finished >= dependencies.limits.stepsMax) {
        throw new AppError(
          'max_steps',
          `The run reached its limit of ${dependencies.limits.stepsMax} steps without a final answer.`,
        )
      }
      const tools = toolsOf(dependencies, this.card, writer.state, await this.prompts.hasCutOutputs())
      return await this.planStep(engine, tools)
    }
  }

  private toolPhase(card: AgentCard): ToolPhase {
    const { writer, dependencies } = this
    const toolOf = (call: CallState) => toolOfCall(dependencies, card, writer.state, call)
    const abort = new AbortController()
    if (this.stopped !== undefined) abort.abort(this.stopped.reason)
    this.toolAbort = abort
    return new ToolPhase(writer, dependencies, toolOf, abort.signal, () => this.owner.confirmLease())
  }

  /** Returns undefined if the engine is not available and another one took over. */
  private async advanceTurn(engine: TurnEngine): Promise<LoopResult | undefined> {
    const { writer, dependencies } = this
    const { state } = writer
    const { accepted } = state
    if (isTurnFinished(state)) return await this.end({ status: 'succeeded' })
    atPlace(`turn of ${engine.name}`)
    // A turn that has begun at the remote side goes on: stopping it saves nothing that was used.
    if (state.handle === undefined) await this.checkBudgets()
    const signal = this.modelSignal
    const messages = (await this.prompts.build({ tools: [], withoutReplies: true, signal })) ?? []
    const request = {
      runId: this.runId,
      spec: specOf(state),
      owner: accepted?.owner ?? 'anonymous',
      conversationId: accepted?.conversationId ?? null,
      messages: withFilesAsText(await this.withFiles(messages)),
      ...defined({ previous: await this.previousHandle(engine.name) }),
    }
    try {
      const result = await runTurn(writer, engine, request, {
        clock: dependencies.clock,
        ids: dependencies.ids,
        stallMs: dependencies.limits.stallMs,
        confirmationTtlMs: dependencies.limits.confirmationTtlMs,
        signal: this.modelSignal,
        putBlob: (id, body) => dependencies.store.putBlob(id, this.runId, body),
      })
      return result === 'waiting' ? await this.parkForPerson() : await this.end({ status: 'succeeded' })
    } catch (error) {
      const to = dependencies.engines.fallbackOf(engine.name)
      const began = state.handle !== undefined || state.steps.length > 0
      if (!(error instanceof AppError) || error.code !== 'engine_unavailable' || began || to === undefined) throw error
      await writer.write({
        type: 'diagnostic',
        data: {
          code: diagnosticCodes.engineFallback,
          message: `The engine ${engine.name} is not available, so ${to} answers. ${error.message}`,
          details: { from: engine.name, to },
        },
      })
      return undefined
    }
  }

  private async previousHandle(engine: string): Promise<JsonValue | undefined> {
    return await handleOfPreviousRun(engine, this.runId, await this.prompts.historyRows(), this.dependencies.store)
  }

  /** Checks the final answer of a step, and ends or parks the run. Returns undefined if the model has to be asked again. */
  private async settleAnswer({ step, text, messageId, finishReason }: StepState): Promise<LoopResult | undefined> {
    const { writer, dependencies } = this
    const { state } = writer
    if (state.rejectedOutputs.has(step)) return undefined
    const rule = this.kind().outputRule(specOf(state))
    const repaired = state.rejectedOutputs.size > 0
    const verdict = judgeAnswer(rule, text, { repaired, cutOff: finishReason === 'length' })
    if (verdict.is === 'answer') return await this.end({ status: 'succeeded', output: verdict.output })
    if (verdict.is === 'question') {
      const asked = questionOf(state, step)
      if (asked === undefined)
        writer.push({ type: 'input.required', data: questionFromText(state, text, dependencies) })
      return asked?.resolved === undefined ? await this.parkForPerson() : undefined
    }
    const stepsLeft = state.steps.filter(({ finished }) => finished).length < dependencies.limits.stepsMax
    if (rule !== undefined && (repaired || !stepsLeft)) throw rule.invalid(verdict.errors, repaired)
    // Committed before the model is asked again, so that a restart does not grant a second repair round.
    await writer.write({ type: 'output.rejected', data: { step, messageId, errors: verdict.errors } })
    return undefined
  }

  private async planStep(engine: StepEngine, tools: Tool[]): Promise<StepPlan> {
    atPlace(`step ${nextStepNumber(this.writer.state)}`)
    await this.checkBudgets()
    return { engine, tools, messages: (await this.prompt(engine, tools, false)) ?? [], isShortened: false }
  }

  /** How the model is asked again after a step failed. Throws the error if that would not help. */
  private async planAgain(plan: StepPlan, answering: boolean, error: unknown): Promise<StepPlan> {
    const { engine, tools } = plan
    // The prompt depends on the model: its window, and what its provider needs back.
    if (!answering && (await this.fellBack(error))) return await this.planStep(engine, tools)
    if (plan.isShortened || !(error instanceof AppError) || error.code !== 'model_context_exceeded') throw error
    const { text, reasoning } = this.writer.state.steps.at(-1) ?? { text: '', reasoning: '' }
    if (text !== '' || reasoning !== '') throw error
    // The real window is smaller than the one that was computed with: once more, with at most half of the messages.
    const shorter = await this.prompt(engine, tools, true)
    if (shorter === undefined) throw error
    return { engine, tools, messages: shorter, isShortened: true }
  }

  private stepContext({ engine, tools }: StepPlan): StepContext {
    const { writer, dependencies } = this
    const spec = specOf(writer.state)
    // A name may be offered once, and the provider's own tool was asked for by name.
    const atProvider = spec.providerTools ?? []
    const offered = tools.filter((tool) => !atProvider.some(({ name }) => name === tool.name))
    const isStarted = this.startedAtAcceptance && writer.state.steps.length > 0
    this.startedAtAcceptance = false
    return {
      dependencies,
      engine,
      signal: this.modelSignal,
      tools,
      offered: offered.map(offeredTool),
      answer: this.wantedAnswer(spec, offered.length + atProvider.length > 0),
      isStarted,
      answering: false,
    }
  }

  /** Goes on with the next model of the run, if there is one and the error is one that another model may not have. */
  private async fellBack(error: unknown): Promise<boolean> {
    const { writer, dependencies } = this
    const spec = specOf(writer.state)
    const to = nextModel(spec)
    if (to === undefined || !isWorthFallback(error) || this.modelSignal.aborted) return false
    const { code, message } = error
    await writer.write({
      type: 'diagnostic',
      data: {
        code: diagnosticCodes.modelFallback,
        message: `The model ${spec.model} cannot answer, so ${to} is asked. ${message}`,
        details: { from: spec.model, to, reason: code },
      },
    })
    dependencies.meter?.modelFellBack(spec.model, code)
    return true
  }

  /** With `halve`, undefined if nothing can be left out. */
  private async prompt(engine: StepEngine, tools: Tool[], halve: boolean): Promise<ModelMessage[] | undefined> {
    const { state } = this.writer
    const { usage } = state
    const messages = await this.prompts.build({ tools, engine, halve, signal: this.modelSignal })
    // The summary may have used up the budget.
    if (state.usage !== usage) await this.checkBudgets()
    return messages
  }

  private async checkBudgets(): Promise<void> {
    const warnings = await checkStepBudgets(this.writer.state, this.dependencies)
    if (warnings.length > 0) this.writer.push(...warnings)
  }

  /** The messages with the bytes of their files, as far as the model can read them. */
  private async withFiles(messages: ModelMessage[]): Promise<ModelMessage[]> {
    const { files, modelTable } = this.dependencies
    const { accepted } = this.writer.state
    const { model } = specOf(this.writer.state)
    const reads = (kind: FileKind) => readsKind(model, modelTable.find(model), kind)
    return await loadPromptFiles(messages, { files, owner: accepted?.owner ?? 'anonymous', reads })
  }

  private wantedAnswer(spec: RunSpec, hasTools: boolean): WantedAnswer | undefined {
    const rule = this.kind().outputRule(spec)
    if (rule === undefined) return undefined
    // Many of Google's models refuse requests with both tools and a schema.
    const supported = !(hasTools && spec.model.startsWith('google/'))
    const able = this.dependencies.modelTable.find(spec.model)?.structuredOutput === true
    return {
      schema: rule.schema,
      native: supported && able && !rule.mayAsk,
      ...defined({ computed: this.kind().computedAnswer(spec) }),
    }
  }

  private async parkForPerson(): Promise<LoopResult> {
    const open = openInteractions(this.writer.state)
    const awaitsClient = open.some(({ kind }) => kind === 'client_tool') ? (true as const) : undefined
    await this.writer.write({
      type: 'run.state',
      data: {
        from: 'running',
        to: 'waiting_user',
        trigger: 'turn.needs_input',
        activeMs: elapsedMs(this.dependencies.clock, this.runningSince),
        ...defined({ awaitsClient }),
      },
    })
    return 'parked'
  }

  private async finishAfterError(error: unknown): Promise<LoopResult> {
    if (this.writer.lost !== undefined) return 'lost'
    if (this.cancelled !== undefined) return await this.end({ status: 'canceled', ...this.cancelled })
    if (error instanceof DrainInterrupt || (this.draining && this.modelSignal.reason instanceof DrainInterrupt)) {
      // The lease is released, so that the next start (or another node) can claim the run immediately.
      try {
        await this.writer.release()
      } catch (cause) {
        this.dependencies.log.warn({ runId: this.runId, err: cause }, 'a lease could not be given back')
      }
      return 'drained'
    }
    const failure = toAppError(error)
    if (failure.code === 'store_unavailable' || failure.code === 'store_busy' || failure.code === 'store_damaged') {
      // A store failure does not fail the run: the driver retries from the stored journal. `retire` waits for the append in
      // flight, because a journal that is read before it completes gives a stale `afterSeq`, and the next append is fenced.
      this.stop(failure)
      await this.writer.retire(failure)
      return 'lost'
    }
    const details = {
      runId: this.runId,
      code: failure.code,
      err: failure.kind === 'bug' ? (failure.cause ?? failure) : failure.message,
    }
    if (failure.kind === 'bug') this.dependencies.log.error(details, 'a run failed because of a fault of ours')
    else this.dependencies.log.warn(details, 'a run failed')
    return await this.end({ status: 'failed', error: failure.toValue() })
  }

  private async end(ending: Ending): Promise<LoopResult> {
    // No model or tool work may start after this, even if some is still running.
    this.stop(runEnded)
    if (ending.status !== 'succeeded') await abortRemoteTurn(this.runId, this.writer.state, this.dependencies)
    const events: NewEvent[] = endingEvents(this.writer.state, ending, this.dependencies.ids)
    try {
      await this.writer.write(...events)
    } catch (error) {
      if (this.writer.lost !== undefined) return 'lost'
      throw error
    }
    recordRun(this.runId, this.writer.state, this.dependencies)
    await this.dependencies.runEnded?.({
      runId: this.runId,
      family: this.row.family,
      engine: engineOf(this.writer.state),
      status: ending.status,
    })
    return 'ended'
  }
}

/** Errors that say nothing about the request: another provider may be able to answer it. */
function isWorthFallback(error: unknown): error is AppError {
  if (!(error instanceof AppError)) return false
  return error.retryable || fallbackCodes.has(error.code)
}

const fallbackCodes: ReadonlySet<string> = new Set([
  'model_auth_failed',
  'model_rate_limited',
  'model_unavailable',
  'model_stalled',
  // The provider is not configured any more.
  'unknown_model',
])
