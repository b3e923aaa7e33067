// Executes the tool calls of one step until each call has a result, or until every
// remaining call waits for a person. Calls run in parallel. A call that needs consent
// asks for it immediately, and a decision is applied as soon as it arrives, even while
// other calls are still running. `planCall` decides what each call needs next.

import { clientToolSource } from '../journal/client-tool.ts'
import type { EventData, JsonValue, NewEvent } from '../journal/event.ts'
import { type CallState, callsToRun, specOf } from '../journal/run-state.ts'
import type { Tool, ToolFile } from '../tools/tool.ts'
import { withActivity } from '../kit/activity.ts'
import { defined } from '../kit/defined.ts'
import { closedCallEvent } from './closed-call.ts'
import { answerWithoutConsent } from './consent.ts'
import { type CallPlan, planCall } from './plan-call.ts'
import { replyDeadlineOf, journalDecisions } from './interactions.ts'
import { DrainInterrupt } from './interrupts.ts'
import type { RunDependencies } from './run-dependencies.ts'
import type { RunWriter } from './run-writer.ts'
import { toolEndAttributes, toolSpan } from './span-attributes.ts'
import { executeCall } from './tool-execution.ts'
import { outputText } from '../journal/tool-outcome.ts'

const summaryCharsMax = 500

type Start = { call: CallState; tool: Tool; input: JsonValue }

export class ToolPhase {
  private readonly writer: RunWriter
  private readonly dependencies: RunDependencies
  private readonly toolOf: (call: CallState) => Tool | undefined
  private readonly signal: AbortSignal
  private readonly confirmLease: () => Promise<void>
  // Every open call is in exactly one of these four collections. A call is planned only when it changes, so the work of a
  // step grows linearly with its number of calls.
  private readonly toPlan = new Set<CallState>()
  private readonly waiting = new Set<CallState>()
  private readonly ready: Start[] = []
  private readonly running = new Map<string, Promise<void>>()
  private wake: (() => void) | null = null
  private poked = false
  private failure: { error: unknown } | null = null

  constructor(
    writer: RunWriter,
    dependencies: RunDependencies,
    toolOf: (call: CallState) => Tool | undefined,
    signal: AbortSignal,
    confirmLease: () => Promise<void>,
  ) {
    this.writer = writer
    this.dependencies = dependencies
    this.toolOf = toolOf
    this.signal = signal
    this.confirmLease = confirmLease
  }

  /** Tells the phase that a decision may have been stored. */
  poke(): void {
    this.poked = true
    this.wake?.()
  }

  /**
   * Returns true when all calls have results, and false when every remaining call waits for a person. `mayStart` returns
   * false while the server drains.
   */
  async settle(mayStart: () => boolean): Promise<boolean> {
    for (const call of callsToRun(this.writer.state)) this.toPlan.add(call)
    await this.awaitToolSources()
    for (;;) {
      if (this.failure !== null) throw this.failure.error
      if (this.signal.aborted) throw this.signal.reason
      if (mayStart()) await this.advance()
      if (this.running.size === 0) {
        if (!mayStart()) throw new DrainInterrupt()
        if (this.waiting.size === 0) return true
        if (!(await this.takeDecisions())) {
          this.waiting.clear()
          return false
        }
        continue
      }
      await this.nextChange()
      if (this.poked) {
        this.poked = false
        await this.takeDecisions()
      }
    }
  }

  /**
   * Waits, up to a time limit, for the MCP servers of calls whose tool is unknown, because a server may be connected later
   * than the run continues. A call whose tool was unknown from the start names no server, so it waits for those
   * that are being connected for the first time.
   */
  private async awaitToolSources(): Promise<void> {
    const sources = new Set<string | undefined>()
    for (const call of this.toPlan)
      if (
        call.source !== clientToolSource &&
        needsTool(call) &&
        this.dependencies.tools.find(call.name, call.source) === undefined
      )
        sources.add(call.source)
    await Promise.all([...sources].map((source) => this.dependencies.tools.awaitSource(source, this.signal)))
  }

  private async takeDecisions(): Promise<boolean> {
    const any = await journalDecisions(this.writer, this.dependencies)
    if (!any) return false
    for (const call of this.waiting) {
      if (call.decision === undefined) continue
      this.waiting.delete(call)
      this.toPlan.add(call)
    }
    return true
  }

  /** Plans all calls that changed, then starts calls that are ready, up to `toolsAtOnce` in parallel. */
  private async advance(): Promise<void> {
    const { state } = this.writer
    const events: NewEvent[] = []
    let number = state.interactions.size
    for (const call of this.toPlan) {
      const tool = this.toolOf(call)
      const plan = answerWithoutConsent(planCall(call, tool, this.dependencies.tools), specOf(state), tool)
      if (plan.do === 'wait') {
        this.waiting.add(call)
        // It was asked before this phase, so the decision may be stored already, and no poke for it will come.
        this.poked = true
      } else if (plan.do === 'close') events.push(closedCallEvent(call.callId, plan, this.dependencies.ids))
      else if (plan.do === 'answer') events.push(answeredCallEvent(call, plan.output, this.dependencies.ids))
      else if (plan.do === 'run') this.ready.push({ call, tool: plan.tool, input: plan.input })
      else {
        number += 1
        this.waiting.add(call)
        events.push({ type: 'input.required', data: this.question(call, plan, number) })
      }
    }
    this.toPlan.clear()
    const starts = this.ready.splice(0, Math.max(0, this.dependencies.limits.toolsAtOnce - this.running.size))
    for (const { call, input } of starts) {
      events.push({ type: 'tool.started', data: { callId: call.callId, input, idempotencyKey: this.keyOf(call) } })
    }
    // `tool.started` is on disk before a tool runs, so that recovery after a crash knows which calls may have happened.
    if (events.length > 0) await this.writer.write(...events)
    // The process may have been frozen since: another node may own the run now, although the commit was still ours.
    if (starts.length > 0) await this.confirmLease()
    if (this.signal.aborted) throw this.signal.reason
    for (const start of starts) this.start(start.call, start.tool, start.input)
  }

  private start(call: CallState, tool: Tool, input: JsonValue): void {
    const { state } = this.writer
    const { workspace } = specOf(state)
    const parent = state.accepted?.trace?.traceparent
    const { tracer, clock } = this.dependencies
    const span =
      parent === undefined ? undefined : tracer?.start({ ...toolSpan(this.writer.runId, call, clock.now()), parent })
    const traceparent = span?.traceparent ?? parent
    const activity = {
      run: this.writer.runId,
      place: `tool ${call.name} (${call.callId})`,
      ...defined({ traceparent }),
    }
    const context = {
      clock: this.dependencies.clock,
      ids: this.dependencies.ids,
      owner: state.accepted?.owner ?? 'anonymous',
      runId: this.writer.runId,
      conversationId: state.accepted?.conversationId ?? null,
      idempotencyKey: this.keyOf(call),
      ...defined({ traceparent }),
      signal: this.signal,
      progress: (message: string) => {
        if (call.done === undefined && !this.signal.aborted && this.writer.lost === undefined) {
          this.writer.push({ type: 'tool.progress', data: { callId: call.callId, message: message.slice(0, 8000) } })
        }
      },
      ...defined({ workspace: workspace === undefined ? undefined : { dir: workspace.dir } }),
      putBlob: (id: string, body: string) => this.dependencies.store.putBlob(id, this.writer.runId, body),
      putFile: (file: ToolFile) => this.dependencies.files.put(state.accepted?.owner ?? 'anonymous', file),
    }
    const execution = withActivity(activity, () => executeCall(tool, call, input, context))
      .then((done) => {
        span?.end({
          at: this.dependencies.clock.now(),
          attributes: toolEndAttributes(done.outcome),
          error: done.error === undefined ? undefined : { type: done.error.code },
        })
        if (this.signal.aborted) throw this.signal.reason
        this.dependencies.meter?.toolDone({
          tool: tool.name,
          outcome: done.outcome,
          seconds: done.durationMs / 1000,
        })
        return this.writer.write({ type: 'tool.done', data: done })
      })
      .catch((error: unknown) => {
        this.failure ??= { error }
      })
      .finally(() => {
        this.running.delete(call.callId)
        this.wake?.()
      })
    this.running.set(call.callId, execution)
  }

  private keyOf(call: CallState): string {
    return `${this.writer.runId}:${call.callId}`
  }

  private question(
    call: CallState,
    plan: Extract<CallPlan, { do: 'ask' | 'hand_over' }>,
    number: number,
  ): EventData<'input.required'> {
    const { clock, ids, limits } = this.dependencies
    const replyDeadline = replyDeadlineOf(this.writer.state, this.dependencies)
    const common = { interactionId: ids(), number, callId: call.callId, prompt: plan.prompt, input: call.input }
    if (plan.do === 'hand_over') {
      return {
        ...common,
        kind: 'client_tool',
        deadlineAt: clock.now() + limits.confirmationTtlMs,
        atDeadline: 'expire',
      }
    }
    if (plan.question === undefined) {
      // A confirmation expires at its deadline; only questions are auto-decided, because consent must come from a person.
      return {
        ...common,
        kind: 'confirmation',
        ...defined({ outcome: plan.outcome }),
        deadlineAt: Math.min(replyDeadline ?? Infinity, clock.now() + limits.confirmationTtlMs),
        atDeadline: 'expire',
      }
    }
    const { style, options, fields } = plan.question
    return {
      ...common,
      kind: 'question',
      style,
      ...defined({
        options: options.length === 0 ? undefined : options,
        fields: fields.length === 0 ? undefined : fields,
      }),
      ...(replyDeadline === undefined ? {} : { deadlineAt: replyDeadline, atDeadline: 'auto_decide' }),
    }
  }

  /** Resolves when a call finishes, a decision may have been stored, or the signal is aborted. */
  private nextChange(): Promise<void> {
    if (this.poked || this.failure !== null || this.signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const done = () => {
        this.wake = null
        this.signal.removeEventListener('abort', done)
        resolve()
      }
      this.wake = done
      this.signal.addEventListener('abort', done, { once: true })
    })
  }
}

/** Whether the plan of this call depends on its tool. It does not while a person is asked, nor after a refusal. */
function needsTool(call: CallState): boolean {
  return call.interactionId === undefined || call.decision === 'confirmed'
}

function answeredCallEvent(call: CallState, output: JsonValue, ids: () => string): NewEvent {
  return {
    type: 'tool.done',
    data: {
      callId: call.callId,
      messageId: ids(),
      outcome: 'succeeded',
      output,
      summary: outputText(output).slice(0, summaryCharsMax),
      durationMs: 0,
      fullLength: outputText(output).length,
      truncated: false,
    },
  }
}
