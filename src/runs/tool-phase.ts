// The calls of one step, until each has a result or all that are left wait for a
// person. Calls run side by side; those that need consent are put to a person at
// once, not after the others; a decision that comes while others still run is
// taken up right away.
//
// What a call needs next is decided by `planCall`, which is pure: the same
// decision serves a fresh call, one that was just confirmed, and one that a crash
// interrupted.

import { agentAllowsTool, type AgentCard } from '../agents/agent-definition.ts'
import type { EventData, JsonValue, NewEvent } from '../journal/event.ts'
import { type CallState, openInteractions, type RunState, specOf } from '../journal/run-state.ts'
import type { Decision, InteractionRow } from '../stores/store.ts'
import type { Tool, ToolRegistry } from '../tools/tool.ts'
import type { Clock } from '../kit/clock.ts'
import type { CallPlan } from './call-plan.ts'
import { answerWithoutConsent } from './consent.ts'
import type { RunParts } from './run-parts.ts'
import type { RunWriter } from './run-writer.ts'
import { executeCall } from './tool-execution.ts'
import { textOf } from './tool-outcome.ts'

/** Who decides where nobody replied. */
export const autoDecidePolicy = 'engine_judgement'

const summaryCharsMax = 500

export function planCall(call: CallState, tool: Tool | undefined, tools: Pick<ToolRegistry, 'check'>): CallPlan {
  if (call.interactionId !== undefined && call.decision === undefined) return { do: 'wait' }
  if (call.decision === 'rejected' || call.decision === 'expired' || call.decision === 'closed')
    return refusedPlan(call)
  if (call.invalidInput !== undefined) {
    return {
      do: 'close',
      outcome: 'failed',
      code: 'tool_input_invalid',
      message: 'The arguments are not valid JSON, or longer than 256 KiB.',
    }
  }
  if (tool === undefined) {
    return {
      do: 'close',
      outcome: 'failed',
      code: 'tool_not_found',
      message: `There is no tool ${call.name} that this agent may use.`,
    }
  }
  if (call.started && tool.effect === 'unsafe') {
    // Started, and then the process died: it may have happened. A person decides, never we.
    const prompt = `${describe(tool, call.input)} (this may already have happened before a restart: confirm to run it again, reject to leave it)`
    return { do: 'ask', outcome: 'unknown', prompt }
  }
  const wrong = tools.check(tool, call.input)
  if (wrong !== null)
    return {
      do: 'close',
      outcome: 'failed',
      code: 'tool_input_invalid',
      message: `The arguments do not fit: ${wrong}.`,
    }
  if (tool.ask !== undefined) {
    if (call.decision !== undefined) return { do: 'answer', output: call.reply ?? null }
    const question = tool.ask(call.input)
    return { do: 'ask', outcome: undefined, prompt: question.prompt, question }
  }
  if (call.decision === undefined && !call.started) {
    const confirm = typeof tool.confirm === 'function' ? tool.confirm(call.input) : tool.confirm
    if (confirm === 'always') return { do: 'ask', outcome: undefined, prompt: describe(tool, call.input) }
  }
  return { do: 'run', tool, input: call.input }
}

function refusedPlan(call: CallState): CallPlan {
  if (call.askedUnknown) {
    return {
      do: 'close',
      outcome: 'unknown',
      code: 'tool_outcome_unknown',
      message: 'Nobody knows whether this call happened; it was not run again.',
    }
  }
  if (call.decision === 'expired')
    return { do: 'close', outcome: 'denied', code: 'tool_expired', message: 'Nobody decided in time.' }
  if (call.decision === 'closed')
    return { do: 'close', outcome: 'cancelled', code: 'tool_cancelled', message: 'The question was closed.' }
  return { do: 'close', outcome: 'denied', code: 'tool_denied', message: call.decisionReason ?? 'The user said no.' }
}

function describe(tool: Tool, input: JsonValue): string {
  try {
    return tool.describe(input)
  } catch {
    return `Call ${tool.name}`
  }
}

/**
 * The tools a run may use: available, allowed by its agent, not filtered out by the request, and fit for its workspace:
 * those that need one only where there is one, and in mode `ask` only those that read.
 */
export function toolsOf(parts: Pick<RunParts, 'tools'>, card: AgentCard, state: RunState): Tool[] {
  const spec = specOf(state)
  return parts.tools
    .available()
    .filter((tool) => offeredTo(tool, state))
    .filter((tool) => tool.audience !== undefined || agentAllowsTool(card, tool.name))
    .filter((tool) => tool.audience !== undefined || spec.tools === undefined || spec.tools.includes(tool.name))
    .filter((tool) => spec.workspace !== undefined || tool.needsWorkspace !== true)
    .filter((tool) => spec.workspace?.mode !== 'ask' || tool.effect === 'read')
}

function offeredTo(tool: Tool, state: RunState): boolean {
  const { job } = specOf(state)
  switch (tool.audience ?? 'all') {
    case 'all':
      return true
    case 'jobs':
      return job !== undefined
    case 'interactive_jobs':
      return job?.mode === 'interactive'
    case 'jobs_with_files':
      return job !== undefined && state.files.length > 0
    case 'jobs_with_skill_files':
      return (specOf(state).skill?.files ?? []).length > 0
  }
}

export class ToolPhase {
  private readonly writer: RunWriter
  private readonly parts: RunParts
  private readonly allowed: ReadonlyMap<string, Tool>
  private readonly signal: AbortSignal
  private readonly running = new Map<string, Promise<void>>()
  private wake: (() => void) | null = null
  private poked = false
  private failure: { error: unknown } | null = null

  constructor(writer: RunWriter, parts: RunParts, tools: Tool[], signal: AbortSignal) {
    this.writer = writer
    this.parts = parts
    this.allowed = new Map(tools.map((tool) => [tool.name, tool]))
    this.signal = signal
  }

  /** Somebody may have decided something. */
  poke(): void {
    this.poked = true
    this.wake?.()
  }

  /** True: all calls have results. False: what is left waits for a person. `mayStart` turns false while the server drains. */
  async settle(mayStart: () => boolean): Promise<boolean> {
    for (;;) {
      if (this.failure !== null) throw this.failure.error
      if (this.signal.aborted) throw this.signal.reason
      const waiting = mayStart() ? await this.advance() : []
      if (this.running.size === 0) {
        if (!mayStart()) throw new DrainInterrupt()
        if (waiting.length === 0) return true
        if (!(await resolveDecided(this.writer, this.parts))) return false
        continue
      }
      await this.somethingHappens()
      if (this.poked) {
        this.poked = false
        await resolveDecided(this.writer, this.parts)
      }
    }
  }

  /** Starts, asks and closes whatever can be; returns the calls that wait for a person. */
  private async advance(): Promise<CallState[]> {
    const { state } = this.writer
    const waiting: CallState[] = []
    const events: NewEvent[] = []
    const starts: { call: CallState; tool: Tool; input: JsonValue }[] = []
    let number = state.interactions.size
    for (const call of state.calls.values()) {
      if (call.done !== undefined || this.running.has(call.callId)) continue
      const tool = this.allowed.get(call.name)
      const plan = answerWithoutConsent(planCall(call, tool, this.parts.tools), specOf(state), tool)
      if (plan.do === 'wait') waiting.push(call)
      else if (plan.do === 'close') events.push(closing(call, plan, this.parts.ids))
      else if (plan.do === 'answer') events.push(answered(call, plan.output, this.parts.ids))
      else if (plan.do === 'run') starts.push({ call, tool: plan.tool, input: plan.input })
      else {
        number += 1
        waiting.push(call)
        events.push({ type: 'input.required', data: this.question(call, plan, number) })
      }
    }
    for (const { call, input } of starts) {
      events.push({ type: 'tool.started', data: { callId: call.callId, input, idempotencyKey: this.keyOf(call) } })
    }
    // On disk before anything happens: a crash from here on knows that the calls may have happened.
    if (events.length > 0) await this.writer.write(...events)
    if (this.signal.aborted) throw this.signal.reason
    for (const start of starts) this.start(start.call, start.tool, start.input)
    return waiting
  }

  private start(call: CallState, tool: Tool, input: JsonValue): void {
    const { state } = this.writer
    const { workspace } = specOf(state)
    const execution = executeCall(tool, call, input, {
      clock: this.parts.clock,
      ids: this.parts.ids,
      owner: state.accepted?.owner ?? 'anonymous',
      runId: this.writer.runId,
      conversationId: state.accepted?.conversationId ?? null,
      idempotencyKey: this.keyOf(call),
      signal: this.signal,
      progress: (message) => {
        if (call.done === undefined && !this.signal.aborted && this.writer.lost === undefined) {
          this.writer.push({ type: 'tool.progress', data: { callId: call.callId, message: message.slice(0, 8000) } })
        }
      },
      ...(workspace === undefined ? {} : { workspace: { dir: workspace.dir } }),
      putBlob: (id, body) => this.parts.store.putBlob(id, this.writer.runId, body),
    })
      .then((done) => {
        if (this.signal.aborted) throw this.signal.reason
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
    plan: Extract<CallPlan, { do: 'ask' }>,
    number: number,
  ): EventData<'input.required'> {
    const { clock, ids, limits } = this.parts
    // Consent to a call is never invented: it expires.
    const aloneAt = aloneFrom(this.writer.state, clock)
    const common = { interactionId: ids(), number, callId: call.callId, prompt: plan.prompt, input: call.input }
    if (plan.question === undefined) {
      return {
        ...common,
        kind: 'confirmation',
        ...(plan.outcome === undefined ? {} : { outcome: plan.outcome }),
        deadlineAt: Math.min(aloneAt ?? Infinity, clock.now() + limits.confirmationTtlMs),
        atDeadline: 'expire',
      }
    }
    const { style, options, fields } = plan.question
    return {
      ...common,
      kind: 'question',
      style,
      ...(options.length === 0 ? {} : { options }),
      ...(fields.length === 0 ? {} : { fields }),
      ...(aloneAt === undefined ? {} : { deadlineAt: aloneAt, atDeadline: 'auto_decide' }),
    }
  }

  private somethingHappens(): Promise<void> {
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

/** A job that does not insist on a reply goes on alone after a while. */
function aloneFrom(state: RunState, clock: Clock): number | undefined {
  const { job } = specOf(state)
  return job?.requireReply === false ? clock.now() + job.replyTimeoutMs : undefined
}

const promptCharsMax = 8000

/** What the model asked without its tool, as a question like any other. */
export function wordsAsQuestion(
  state: RunState,
  text: string,
  { clock, ids }: Pick<RunParts, 'clock' | 'ids'>,
): EventData<'input.required'> {
  const aloneAt = aloneFrom(state, clock)
  return {
    interactionId: ids(),
    number: state.interactions.size + 1,
    kind: 'question',
    style: 'open_text',
    prompt: text.trim().slice(0, promptCharsMax),
    ...(aloneAt === undefined ? {} : { deadlineAt: aloneAt, atDeadline: 'auto_decide' }),
  }
}

/** The server is going down: leave the run as it is, it goes on at the next start. */
export class DrainInterrupt extends Error {
  override name = 'DrainInterrupt'
}

function closing(call: CallState, plan: Extract<CallPlan, { do: 'close' }>, ids: () => string): NewEvent {
  return {
    type: 'tool.done',
    data: {
      callId: call.callId,
      messageId: ids(),
      outcome: plan.outcome,
      summary: plan.message,
      error: { code: plan.code, message: plan.message },
      durationMs: 0,
      fullLength: 0,
      truncated: false,
    },
  }
}

/** What a model is told where nobody answered in time. */
function aloneReply(row: InteractionRow): JsonValue {
  return {
    source: 'auto_decide_timeout',
    interaction_id: row.number,
    reason: 'user_no_reply',
    policy: autoDecidePolicy,
    instruction: 'Nobody replied in time. Decide by your own judgement, say what you assumed, and go on.',
  }
}

function aloneDecision(row: InteractionRow): Pick<Decision, 'response' | 'reply'> {
  const response = aloneReply(row)
  return { response, reply: { key: `auto-timeout:${row.number}`, fingerprint: '' } }
}

function answered(call: CallState, output: JsonValue, ids: () => string): NewEvent {
  return {
    type: 'tool.done',
    data: {
      callId: call.callId,
      messageId: ids(),
      outcome: 'succeeded',
      output,
      summary: textOf(output).slice(0, summaryCharsMax),
      durationMs: 0,
      fullLength: textOf(output).length,
      truncated: false,
    },
  }
}

/**
 * Writes down what people (or deadlines) decided since. True when anything was: decisions are rows that any
 * node may have taken, and only the owner of the run tells the journal.
 */
export async function resolveDecided(writer: RunWriter, parts: Pick<RunParts, 'store' | 'clock'>): Promise<boolean> {
  const open = openInteractions(writer.state)
  if (open.length === 0) return false
  const rows = new Map((await parts.store.interactionsOf(writer.runId)).map((row) => [row.id, row]))
  const now = parts.clock.now()
  const events: NewEvent[] = []
  for (const interaction of open) {
    let row = rows.get(interaction.interactionId)
    if (row?.status === 'pending' && row.deadlineAt !== null && row.deadlineAt <= now) {
      const status = row.atDeadline === 'auto_decide' ? 'auto_decided' : 'expired'
      const alone = status === 'auto_decided' ? aloneDecision(row) : {}
      row = (await parts.store.decide(row.id, { status, by: 'system', at: now, ...alone }))?.row
    }
    if (row === undefined || row.status === 'pending') continue
    events.push({ type: 'input.resolved', data: resolutionOf(row) })
  }
  if (events.length > 0) await writer.write(...events)
  return events.length > 0
}

function resolutionOf(row: InteractionRow): EventData<'input.resolved'> {
  const status = row.status === 'pending' ? 'closed' : row.status
  return {
    interactionId: row.id,
    number: row.number,
    resolution: status,
    by: row.decidedBy ?? 'system',
    ...(row.kind === 'confirmation' && status === 'confirmed' && row.response !== null ? { input: row.response } : {}),
    ...(row.kind !== 'confirmation' && row.response !== null ? { response: row.response } : {}),
    ...(row.reason === null ? {} : { reason: row.reason }),
  }
}
