// Executes one model step: asks the engine, journals the text as it streams in, and closes
// the step with its message and its tool calls in one commit. A step is finished only by
// that commit; after a crash before it, the step is asked again.

import { AppError } from '../errors/app-error.ts'
import type { Engine } from '../engines/engine.ts'
import type { EventData, NewEvent } from '../journal/event.ts'
import { type RunState, specOf } from '../journal/run-state.ts'
import { type Clock, elapsedMs, type Timer } from '../kit/clock.ts'
import { cutText, pieceCharsMax } from '../kit/cut-text.ts'
import type { Ids } from '../kit/ids.ts'
import {
  type FinishReason,
  type ModelMessage,
  type ModelPart,
  type ModelTool,
  type WantedAnswer,
  toolCallsMax,
  tooManyToolCalls,
} from '../models/model.ts'
import type { Tool } from '../tools/tool.ts'
import type { RunWriter } from './run-writer.ts'
import { TornText } from './torn-text.ts'

export type StepContext = {
  engine: Engine
  clock: Clock
  ids: Ids
  stallMs: number
  /** Aborted when the run is cancelled, drained or out of time. */
  signal: AbortSignal
  toolNamed(name: string): Tool | undefined
  /** Undefined if any text is an answer. */
  answer?: WantedAnswer | undefined
}

/** Back-pressure: with more uncommitted events than this, the step stops reading from the provider until they are committed. */
const backlogMax = 64
const invalidInputCharsMax = 4000
/** Bounded because arguments are copied to the journal, to the confirmation and to the next prompt. */
const inputCharsMax = 256 * 1024
/** The limit for the text, reasoning and arguments of one answer, so that a model that never stops cannot fill the memory. */
const answerCharsMax = 64 * 1024 * 1024

type ToolCallPart = Extract<ModelPart, { type: 'tool-call' }>
type FinishPart = Extract<ModelPart, { type: 'finish' }>

export async function runStep(
  writer: RunWriter,
  messages: ModelMessage[],
  tools: ModelTool[],
  context: StepContext,
): Promise<FinishReason> {
  const { state } = writer
  const open = state.steps.at(-1)
  const torn = open !== undefined && !open.finished ? open : undefined
  const number = torn?.step ?? (open?.step ?? 0) + 1
  const startedAt = context.clock.monotonic()
  writer.push({
    type: 'step.started',
    data: { step: number, messageId: torn?.messageId || context.ids(), model: specOf(state).model },
  })

  const emitter = new DeltaEmitter(writer.state, number, torn?.text ?? '', torn?.reasoning ?? '', context.ids)
  const watch = new StallWatch(context.clock, context.stallMs, context.signal)
  const calls: ToolCallPart[] = []
  let answerChars = 0
  let finish: FinishPart | undefined
  try {
    const { answer } = context
    const request = { runId: writer.runId, spec: specOf(state), messages, tools, ...(answer && { answer }) }
    for await (const batch of context.engine.step(request, watch.signal)) {
      watch.alive()
      const events: NewEvent[] = []
      for (const part of batch) {
        if (part.type === 'text') {
          answerChars += part.text.length
          emitter.text(part.text, events)
        } else if (part.type === 'reasoning') {
          answerChars += part.text.length
          emitter.reasoning(part.text, events)
        } else if (part.type === 'tool-call') {
          answerChars += part.rawInput.length
          calls.push(part)
        } else finish = part
      }
      if (events.length > 0) writer.push(...events)
      if (answerChars > answerCharsMax) {
        throw new AppError('model_error', 'The model’s answer is longer than 64 MiB and was stopped.')
      }
      if (calls.length > toolCallsMax) throw tooManyToolCalls()
      if (writer.backlog > backlogMax) await writer.committed()
      if (finish !== undefined) break
    }
  } catch (error) {
    throw watch.reason() ?? error
  } finally {
    watch.stop()
  }
  if (context.signal.aborted) throw context.signal.reason
  if (finish === undefined) {
    throw new AppError('model_stream_incomplete', 'The model’s answer broke off before its end. Try again.', {
      retryable: true,
    })
  }
  const end: NewEvent[] = []
  emitter.end(end)
  if (end.length > 0) writer.push(...end)
  if (finish.reason === 'content-filter') {
    throw new AppError(
      'model_content_filtered',
      'The provider’s content filter stopped the answer. Rephrase the request.',
    )
  }
  await writer.write(
    ...closingEvents(
      writer.state,
      number,
      emitter.messageId,
      calls,
      finish,
      context,
      elapsedMs(context.clock, startedAt),
    ),
  )
  return finish.reason
}

function closingEvents(
  state: RunState,
  step: number,
  messageId: string,
  calls: ToolCallPart[],
  finish: FinishPart,
  context: StepContext,
  durationMs: number,
): NewEvent[] {
  const text = state.steps.at(-1)?.text ?? ''
  const events: NewEvent[] = []
  // A step that only calls tools has no message. A step without calls always has one, even if its text is empty.
  if (text !== '' || calls.length === 0) {
    events.push({ type: 'message.done', data: { messageId, role: 'assistant', text, step, state: 'active' } })
  }
  const taken = new Set(state.calls.keys())
  for (const [index, call] of calls.entries()) {
    // Some providers restart their call ids in every step, but a call id must be unique within the run.
    const callId = call.callId === '' || taken.has(call.callId) ? `call_${context.ids()}` : call.callId
    taken.add(callId)
    events.push({ type: 'tool.called', data: calledData(call, callId, step, index, context.toolNamed(call.name)) })
  }
  if (finish.reason === 'length') {
    events.push({
      type: 'diagnostic',
      data: { code: 'output_truncated', message: 'The model reached its output limit; the answer is cut off.' },
    })
  }
  events.push({
    type: 'step.done',
    data: {
      step,
      messageId,
      finishReason: finish.reason,
      toolCalls: calls.length,
      durationMs,
      ...(finish.usage === undefined ? {} : { usage: finish.usage }),
    },
  })
  return events
}

function calledData(
  call: ToolCallPart,
  callId: string,
  step: number,
  index: number,
  tool: Tool | undefined,
): EventData<'tool.called'> {
  const usable = call.input !== undefined && call.rawInput.length <= inputCharsMax
  const input = usable ? (call.input ?? {}) : {}
  let note = `Call ${call.name}`
  try {
    note = tool?.describe(input) ?? note
  } catch {
    // The note is optional. The schema check reports invalid arguments later.
  }
  return {
    callId,
    name: call.name === '' ? 'unnamed' : call.name,
    step,
    index,
    input,
    note,
    effect: tool?.effect ?? 'unsafe',
    ...(tool?.source === undefined ? {} : { source: tool.source }),
    ...(!usable ? { invalidInput: call.rawInput.slice(0, invalidInputCharsMax) } : {}),
  }
}

/** Turns the model's text into delta events, and skips text that was already journaled before a crash (see torn-text.ts). */
class DeltaEmitter {
  /** The message that new text belongs to. */
  messageId: string
  private readonly step: number
  private readonly ids: Ids
  private readonly shownText: string
  private readonly tornText: TornText
  private readonly tornReasoning: TornText
  private reasoningId: string | undefined

  constructor(state: RunState, step: number, shownText: string, shownReasoning: string, ids: Ids) {
    const current = state.steps.at(-1)
    this.step = step
    this.ids = ids
    this.shownText = shownText
    this.tornText = new TornText(shownText)
    this.tornReasoning = new TornText(shownReasoning)
    this.messageId = current?.messageId ?? ids()
    this.reasoningId = current?.reasoningId
  }

  text(text: string, events: NewEvent[]): void {
    const { diverged, fresh } = this.tornText.feed(text)
    if (diverged) this.supersede(events)
    this.emitText(fresh, events)
  }

  reasoning(text: string, events: NewEvent[]): void {
    const { diverged, fresh } = this.tornReasoning.feed(text)
    if (diverged || this.reasoningId === undefined) this.reasoningId = this.ids()
    for (const piece of cutText(fresh)) {
      events.push({ type: 'reasoning.delta', data: { reasoningId: this.reasoningId, text: piece } })
    }
  }

  end(events: NewEvent[]): void {
    const { diverged, fresh } = this.tornText.end()
    if (!diverged) return
    this.supersede(events)
    this.emitText(fresh, events)
  }

  private emitText(fresh: string, events: NewEvent[]): void {
    // One chunk of the provider becomes one delta, unless it is too large for one event.
    if (fresh.length <= pieceCharsMax) {
      if (fresh !== '') events.push({ type: 'text.delta', data: { messageId: this.messageId, text: fresh } })
      return
    }
    for (const piece of cutText(fresh))
      events.push({ type: 'text.delta', data: { messageId: this.messageId, text: piece } })
  }

  private supersede(events: NewEvent[]): void {
    events.push({
      type: 'message.done',
      data: {
        messageId: this.messageId,
        role: 'assistant',
        text: this.shownText,
        step: this.step,
        state: 'superseded',
      },
    })
    this.messageId = this.ids()
  }
}

/** Aborts the step if the model sends nothing for `stallMs`, also before the first token. */
class StallWatch {
  readonly signal: AbortSignal
  private readonly controller = new AbortController()
  private readonly clock: Clock
  private readonly stallMs: number
  private readonly outer: AbortSignal
  private readonly onOuterAbort: () => void
  private timer: Timer
  private lastAliveAt: number

  constructor(clock: Clock, stallMs: number, outer: AbortSignal) {
    this.clock = clock
    this.stallMs = stallMs
    this.outer = outer
    this.signal = this.controller.signal
    this.onOuterAbort = () => this.controller.abort(outer.reason)
    outer.addEventListener('abort', this.onOuterAbort, { once: true })
    if (outer.aborted) this.onOuterAbort()
    this.lastAliveAt = clock.monotonic()
    this.timer = clock.after(stallMs, () => this.check())
  }

  /** Called for every batch of tokens, so it only records the time; the timer compares it when it fires. */
  alive(): void {
    this.lastAliveAt = this.clock.monotonic()
  }

  reason(): unknown {
    return this.signal.aborted ? this.signal.reason : undefined
  }

  stop(): void {
    this.timer.cancel()
    this.outer.removeEventListener('abort', this.onOuterAbort)
  }

  private check(): void {
    const quietMs = this.clock.monotonic() - this.lastAliveAt
    if (quietMs < this.stallMs) {
      this.timer = this.clock.after(this.stallMs - quietMs, () => this.check())
      return
    }
    const seconds = Math.round(this.stallMs / 1000)
    this.controller.abort(
      new AppError('model_stalled', `The model said nothing for ${seconds} s. Try again, or raise POLYLOG_STALL_MS.`, {
        retryable: true,
      }),
    )
  }
}
