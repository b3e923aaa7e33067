// Drives a turn engine and writes what it proposes to the journal, as the same events that
// a local run has. It is idempotent: an engine that re-attaches after a crash may repeat its
// remote turn from the start, and what is already in the journal is not written again.
//
//   text ─▶ step.started, text.delta…      call ─▶ message.done, tool.called, tool.started, step.done
//   approval ─▶ tool.called, input.required, and the run waits      finish ─▶ message.done, step.done
//
// The remote side executes its own calls, so a call that is open when the turn breaks off
// has the outcome `unknown`.

import type { Decisions, TurnDecision, TurnEngine, TurnPart, TurnRequest } from '../engines/engine.ts'
import { AppError } from '../errors/app-error.ts'
import type { EventData, JsonValue, NewEvent, Usage } from '../journal/event.ts'
import { type CallState, nextStepNumber, openCalls, type RunState, specOf } from '../journal/run-state.ts'
import { type Clock, elapsedMs } from '../kit/clock.ts'
import { defined } from '../kit/defined.ts'
import type { Ids } from '../kit/ids.ts'
import { type ClosedCall, closedCallEvent, refusedCall } from './closed-call.ts'
import { DeltaEmitter } from './delta-emitter.ts'
import type { RunSignal } from './run-signal.ts'
import type { RunWriter } from './run-writer.ts'
import { StallWatch } from './stall-watch.ts'
import { inlineOutputCharsMax, storeOutput } from './stored-output.ts'
import { outputText } from '../journal/tool-outcome.ts'

export type TurnContext = {
  clock: Clock
  ids: Ids
  stallMs: number
  confirmationTtlMs: number
  /** Aborted when the run is cancelled, drained or out of time. */
  signal: RunSignal
  putBlob(id: string, body: string): Promise<void>
}

/** `waiting`: a person has to decide; afterwards the turn is driven again with the same handle. */
export type TurnResult = 'finished' | 'waiting'

// The remote side chooses all sizes, so each is bounded before it reaches the journal.
const backlogMax = 64
const answerCharsMax = 64 * 1024 * 1024
const callsMax = 512
const inputCharsMax = 256 * 1024
const handleCharsMax = 64 * 1024
const patchCharsMax = 256 * 1024
const promptCharsMax = 8000
const summaryCharsMax = 500
const progressCharsMax = 8000
const progressMax = 2000
const nameCharsMax = 200

/** The finish reason of a step that ends because the remote side asks a question. */
const inputRequired = 'input-required'

/** Whether the remote side has given its final answer. */
export function isTurnFinished(state: RunState): boolean {
  const last = state.steps.at(-1)
  return last?.finished === true && last.callIds.length === 0 && last.finishReason !== inputRequired
}

export async function runTurn(
  writer: RunWriter,
  engine: TurnEngine,
  request: TurnRequest,
  context: TurnContext,
): Promise<TurnResult> {
  const recorder = new TurnRecorder(writer, engine, context)
  await recorder.applyDecisions()
  const watch = new StallWatch(context.clock, context.stallMs, context.signal, engineStalled)
  try {
    for await (const batch of engine.turn(request, writer.state.handle, recorder.decisions, watch.signal)) {
      watch.alive()
      for (const part of batch) await recorder.take(part)
      recorder.flush()
      if (recorder.result === 'waiting' || recorder.result === 'finished') break
      if (writer.backlog > backlogMax) await writer.committed()
    }
  } catch (error) {
    throw watch.reason() ?? error
  } finally {
    watch.stop()
  }
  if (context.signal.aborted) throw context.signal.reason
  if (recorder.result === undefined) {
    throw new AppError('engine_stream_incomplete', `The engine ${engine.name} ended the turn without a final event.`)
  }
  await writer.committed()
  return recorder.result
}

class TurnRecorder {
  readonly decisions: Decisions
  result: TurnResult | undefined
  private readonly writer: RunWriter
  private readonly engine: TurnEngine
  private readonly context: TurnContext
  private readonly events: NewEvent[] = []
  /** Text and reasoning of finished steps that a replay repeats; what is left of it is not shown again. */
  private replayedText = ''
  private replayedReasoning = ''
  private replays = false
  private emitter: DeltaEmitter | undefined
  private stepStartedAt = 0
  private answerChars = 0
  private progressCount = 0
  /** Approvals that were refused without asking, because the wire of this run cannot ask a person. */
  private readonly refused = new Set<string>()

  constructor(writer: RunWriter, engine: TurnEngine, context: TurnContext) {
    this.writer = writer
    this.engine = engine
    this.context = context
    this.decisions = { of: (key) => this.decisionOf(key) }
  }

  private get state(): RunState {
    return this.writer.state
  }

  /** Pushes what was collected as one batch, so that the deltas of one remote message share a commit. */
  flush(): void {
    if (this.events.length === 0) return
    this.writer.push(...this.events.splice(0))
  }

  /** Closes calls that a person did not allow, and marks allowed ones as started, before the engine acts on the decision. */
  async applyDecisions(): Promise<void> {
    for (const call of openCalls(this.state)) {
      if (call.interactionId === undefined || call.decision === undefined) continue
      // A call that was reported as started before the remote side asked for consent is denied as any other.
      if (call.decision === 'confirmed' && call.started) continue
      const decision = this.decisionAbout(call)
      if (decision?.resolution === 'confirmed')
        this.events.push(startedEvent(this.writer.runId, call.callId, call.input))
      else this.events.push(deniedEvent(call, decision, this.context.ids))
    }
    this.flush()
    await this.writer.committed()
  }

  async take(part: TurnPart): Promise<void> {
    // The remote side may wait for several decisions at once.
    const asksMore = this.result === 'waiting' && (part.type === 'approval' || part.type === 'question')
    if (this.result !== undefined && !asksMore) return
    switch (part.type) {
      case 'attached':
        return this.attach(part.replays)
      case 'text':
        return this.text(part.text)
      case 'reasoning':
        return this.reasoning(part.text)
      case 'handle':
        return await this.handle(part.handle)
      case 'tool-called':
        return this.call(part)
      case 'tool-progress':
        return this.progress(part.callId, part.message)
      case 'tool-done':
        return await this.done(part)
      case 'approval':
        return this.ask(part)
      case 'question':
        return this.question(part)
      case 'context':
        return this.patch(part)
      case 'spent':
        return this.spent(part.usage)
      case 'finish':
        return this.finish(part)
    }
  }

  private attach(replays: 'turn' | 'nothing'): void {
    this.replays = replays === 'turn'
    if (!this.replays) return
    const finished = this.state.steps.filter((step) => step.finished)
    this.replayedText = finished.map((step) => step.text).join('')
    this.replayedReasoning = finished.map((step) => step.reasoning).join('')
  }

  private async handle(handle: JsonValue): Promise<void> {
    if (JSON.stringify(handle).length > handleCharsMax) {
      throw new AppError(
        'engine_failed',
        `The engine ${this.engine.name} asked for a handle that is larger than 64 KiB.`,
      )
    }
    this.flush()
    await this.writer.write({ type: 'engine.handle', data: { engine: this.engine.name, handle } })
  }

  private text(text: string): void {
    this.count(text)
    const fresh = this.skipReplayed(text)
    if (fresh !== '') this.open().text(fresh, this.events)
  }

  private reasoning(text: string): void {
    this.count(text)
    const repeated = commonLength(this.replayedReasoning, text)
    this.replayedReasoning = this.replayedReasoning.slice(repeated)
    const fresh = text.slice(repeated)
    if (fresh !== '') this.open().reasoning(fresh, this.events)
  }

  /** Throws if the replay differs from a finished message, because that message cannot be superseded any more. */
  private skipReplayed(text: string): string {
    if (this.replayedText === '') return text
    const length = Math.min(this.replayedText.length, text.length)
    if (commonLength(this.replayedText, text) < length) {
      throw new AppError(
        'engine_outcome_unknown',
        `The engine ${this.engine.name} reports another text than before the interruption, so its turn cannot be continued.`,
      )
    }
    this.replayedText = this.replayedText.slice(length)
    return text.slice(length)
  }

  private count(text: string): void {
    this.answerChars += text.length
    if (this.answerChars > answerCharsMax)
      throw new AppError(
        'engine_failed',
        `The answer of the engine ${this.engine.name} is longer than 64 MiB and was stopped.`,
      )
  }

  /** The emitter of the current step; starts a step if none is open. */
  private open(): DeltaEmitter {
    if (this.emitter !== undefined) return this.emitter
    this.flush()
    const { state, context } = this
    const last = state.steps.at(-1)
    const interrupted = last !== undefined && !last.finished ? last : undefined
    const step = interrupted?.step ?? (last?.step ?? 0) + 1
    this.stepStartedAt = context.clock.monotonic()
    this.writer.push({
      type: 'step.started',
      data: { step, messageId: interrupted?.messageId || context.ids(), model: this.engine.name },
    })
    // Text that the engine does not repeat continues the message that was shown.
    const shown = this.replays && interrupted !== undefined ? interrupted : { text: '', reasoning: '' }
    this.emitter = new DeltaEmitter(state, step, shown.text, shown.reasoning, context.ids)
    return this.emitter
  }

  /** Closes the open step. `calls` become part of it; with calls the step has a message only if it has text. */
  private close(
    calls: EventData<'tool.called'>[],
    finish: Pick<EventData<'step.done'>, 'finishReason' | 'usage'>,
  ): void {
    const emitter = this.open()
    emitter.end(this.events)
    this.flush()
    const step = this.state.steps.at(-1)
    const text = step?.text ?? ''
    const number = step?.step ?? 1
    if (text !== '' || calls.length === 0) {
      this.events.push({
        type: 'message.done',
        data: { messageId: emitter.messageId, role: 'assistant', text, step: number, state: 'active' },
      })
    }
    for (const [index, call] of calls.entries()) {
      this.events.push({ type: 'tool.called', data: { ...call, step: number, index } })
    }
    this.events.push({
      type: 'step.done',
      data: {
        step: number,
        messageId: emitter.messageId,
        toolCalls: calls.length,
        durationMs: elapsedMs(this.context.clock, this.stepStartedAt),
        ...finish,
      },
    })
    this.emitter = undefined
  }

  private call(part: { callId: string; name: string; input: JsonValue; note?: string }): void {
    if (this.addCall(part)) {
      const { input } = boundedInput(part.input)
      this.events.push(startedEvent(this.writer.runId, part.callId, input))
      this.flush()
    }
  }

  /** Returns false if the journal has the call already. */
  private addCall(part: { callId: string; name: string; input: JsonValue; note?: string }): boolean {
    const { callId, name } = part
    if (this.state.calls.has(callId)) return false
    if (callId === '' || callId.length > nameCharsMax || name === '' || name.length > nameCharsMax) {
      throw new AppError('engine_failed', `The engine ${this.engine.name} reported a call with a bad id or name.`)
    }
    if (this.state.calls.size >= callsMax) {
      throw new AppError(
        'engine_failed',
        `The engine ${this.engine.name} made more than ${callsMax} calls in one turn.`,
      )
    }
    const { input, invalidInput } = boundedInput(part.input)
    this.close(
      [
        {
          callId,
          name,
          step: 1,
          index: 0,
          input,
          note: (part.note ?? `Call ${name}`).slice(0, summaryCharsMax),
          effect: 'unsafe',
          source: `engine:${this.engine.name}`,
          ...defined({ invalidInput }),
        },
      ],
      { finishReason: 'tool-calls' },
    )
    this.flush()
    return true
  }

  private spent(usage: Usage): void {
    const { steps, usage: counted } = this.state
    // After a crash the remote side tells once more how the turn failed. Only finished steps and discarded answers are counted.
    if (counted.steps > steps.filter(({ finished }) => finished).length) return
    const model = this.engine.name
    this.events.push({ type: 'answer.discarded', data: { step: nextStepNumber(this.state), model, usage } })
  }

  private progress(callId: string, message: string): void {
    const call = this.state.calls.get(callId)
    if (call === undefined || call.done !== undefined) return
    this.progressCount += 1
    if (this.progressCount > progressMax) return
    const last = this.progressCount === progressMax
    this.events.push({
      type: 'tool.progress',
      data: { callId, message: last ? 'More progress is not shown.' : message.slice(0, progressCharsMax) },
    })
  }

  private async done(part: Extract<TurnPart, { type: 'tool-done' }>): Promise<void> {
    const call = this.state.calls.get(part.callId)
    if (call === undefined || call.done !== undefined) return
    this.flush()
    const decision = this.decisionAbout(call)
    if (part.outcome === 'failed' && decision !== undefined && decision.resolution !== 'confirmed') {
      // The remote side reports a call that a person did not allow as a failure.
      await this.writer.write(deniedEvent(call, decision, this.context.ids))
      return
    }
    const text = outputText(part.output)
    const stored = await storeOutput(part.output, inlineOutputCharsMax, this.context)
    await this.writer.write({
      type: 'tool.done',
      data: {
        callId: part.callId,
        messageId: this.context.ids(),
        outcome: part.outcome,
        ...stored,
        summary: (part.summary ?? part.error?.message ?? text).slice(0, summaryCharsMax),
        ...defined({ error: part.error }),
        durationMs: 0,
      },
    })
  }

  private ask(part: Extract<TurnPart, { type: 'approval' }>): void {
    if (this.wasAsked(part.key)) return
    this.addCall(part)
    const call = this.state.calls.get(part.callId)
    if (specOf(this.state).consent === 'refuse') this.refused.add(part.key)
    if (call === undefined || call.done !== undefined) return
    if (this.refused.has(part.key)) {
      this.writer.push(deniedEvent(call, { resolution: 'rejected', reason: consentUnavailable }, this.context.ids))
      return
    }
    const { clock, ids, confirmationTtlMs } = this.context
    this.writer.push({
      type: 'input.required',
      data: {
        interactionId: ids(),
        key: part.key,
        number: this.state.interactions.size + 1,
        kind: 'confirmation',
        prompt: part.prompt.slice(0, promptCharsMax),
        callId: part.callId,
        input: call.input,
        deadlineAt: Math.min(part.expiresAt ?? Infinity, clock.now() + confirmationTtlMs),
        atDeadline: 'expire',
      },
    })
    this.result = 'waiting'
  }

  private question(part: Extract<TurnPart, { type: 'question' }>): void {
    if (this.wasAsked(part.key)) return
    if (specOf(this.state).consent === 'refuse') {
      this.refused.add(part.key)
      return
    }
    if (this.emitter !== undefined) this.close([], { finishReason: inputRequired })
    this.flush()
    const { clock, ids, confirmationTtlMs } = this.context
    this.writer.push({
      type: 'input.required',
      data: {
        interactionId: ids(),
        key: part.key,
        number: this.state.interactions.size + 1,
        kind: 'question',
        style: 'open_text',
        prompt: part.prompt.slice(0, promptCharsMax),
        deadlineAt: Math.min(part.expiresAt ?? Infinity, clock.now() + confirmationTtlMs),
        atDeadline: 'auto_decide',
      },
    })
    this.result = 'waiting'
  }

  private patch({ layer, patch }: Extract<TurnPart, { type: 'context' }>): void {
    if (JSON.stringify(patch).length <= patchCharsMax) {
      this.events.push({ type: 'context.patch', data: { layer, patch } })
      return
    }
    this.events.push({
      type: 'diagnostic',
      data: {
        code: 'context_patch_too_large',
        message: `The engine ${this.engine.name} sent a context of more than 256 KiB, which is not kept.`,
      },
    })
  }

  private finish({ reason, usage }: Extract<TurnPart, { type: 'finish' }>): void {
    this.flush()
    for (const call of openCalls(this.state))
      this.events.push(closedCallEvent(call.callId, unreported, this.context.ids))
    this.flush()
    this.close([], { finishReason: reason, ...defined({ usage }) })
    this.flush()
    this.result = 'finished'
  }

  /** Whether the journal has this approval or question. If a crash came between it and the parking of the run, the run waits now. */
  private wasAsked(key: string): boolean {
    if (this.refused.has(key)) return true
    const interaction = interactionWith(this.state, key)
    if (interaction !== undefined && interaction.resolved === undefined) this.result = 'waiting'
    return interaction !== undefined
  }

  private decisionAbout({ interactionId }: CallState): TurnDecision | undefined {
    const key = interactionId === undefined ? undefined : this.state.interactions.get(interactionId)?.key
    return key === undefined ? undefined : this.decisionOf(key)
  }

  private decisionOf(key: string): TurnDecision | undefined {
    if (this.refused.has(key)) return { resolution: 'rejected', reason: consentUnavailable }
    const resolved = interactionWith(this.state, key)?.resolved
    if (resolved === undefined) return undefined
    const { resolution, input, response, reason } = resolved
    if (input !== undefined && !this.engine.canEditInput) {
      return {
        resolution: 'rejected',
        reason: `The engine ${this.engine.name} cannot run a call with changed arguments. Confirm it as it is, or reject it.`,
      }
    }
    return { resolution, ...defined({ input, response, reason }) }
  }
}

const consentUnavailable = 'This call needs the consent of a person, and this API cannot ask for it.'

function interactionWith(state: RunState, key: string) {
  for (const interaction of state.interactions.values()) if (interaction.key === key) return interaction
  return undefined
}

function startedEvent(runId: string, callId: string, input: JsonValue): NewEvent {
  return { type: 'tool.started', data: { callId, input, idempotencyKey: `${runId}:${callId}` } }
}

function deniedEvent({ callId }: CallState, decision: TurnDecision | undefined, ids: Ids): NewEvent {
  return closedCallEvent(callId, refusedCall(decision?.resolution, decision?.reason), ids)
}

const unreported: ClosedCall = {
  outcome: 'unknown',
  code: 'tool_outcome_unknown',
  message: 'The engine ended its turn without the result of this call; it may have happened.',
}

function boundedInput(input: JsonValue): { input: JsonValue; invalidInput?: string } {
  const text = JSON.stringify(input)
  return text.length <= inputCharsMax ? { input } : { input: {}, invalidInput: text.slice(0, 4000) }
}

function commonLength(a: string, b: string): number {
  const max = Math.min(a.length, b.length)
  if (a.startsWith(b.slice(0, max))) return max
  let length = 0
  while (length < max && a[length] === b[length]) length += 1
  return length
}

function engineStalled(seconds: number): AppError {
  return new AppError('engine_stalled', `The engine reported nothing for ${seconds} s, so its turn was given up.`, {
    retryable: true,
  })
}
