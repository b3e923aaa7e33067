// Executes one model step: asks the engine, journals the text as it streams in, and closes
// the step with its message and its tool calls in one commit. A step is finished only by
// that commit; after a crash before it, the step is asked again. Tools start only after it.

import { AppError } from '../errors/app-error.ts'
import type { StepEngine, StepRequest } from '../engines/engine.ts'
import {
  type EventData,
  type NewEvent,
  type ProviderState,
  providerStateCharsMax,
  type Usage,
} from '../journal/event.ts'
import { nextStepNumber, type RunState, specOf } from '../journal/run-state.ts'
import { type Clock, elapsedMs } from '../kit/clock.ts'
import { defined } from '../kit/defined.ts'
import type { Span } from '../kit/tracer.ts'
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
import { interruptedCallEvents, ProviderCalls } from './provider-calls.ts'
import { providerOf, providerStateBlob } from './provider-states.ts'
import { DeltaEmitter } from './delta-emitter.ts'
import type { RunDependencies } from './run-dependencies.ts'
import type { RunSignal } from './run-signal.ts'
import type { RunWriter } from './run-writer.ts'
import { stepEndAttributes, stepSpan } from './span-attributes.ts'
import { StallWatch } from './stall-watch.ts'
import { outputText } from '../journal/tool-outcome.ts'

export type StepContext = {
  dependencies: Pick<RunDependencies, 'clock' | 'ids' | 'limits' | 'store' | 'modelTable' | 'meter' | 'tracer'>
  engine: StepEngine
  /** Aborted when the run is cancelled, drained or out of time. */
  signal: RunSignal
  tools: readonly Tool[]
  /** What the model is told about them. */
  offered: ModelTool[]
  /** Undefined if any text is an answer. */
  answer: WantedAnswer | undefined
  /** The journal already has the start of this step, and it was not asked yet. */
  isStarted: boolean
  /** True when the first part of the answer has arrived. */
  answering: boolean
}

/** Back-pressure: with more uncommitted events than this, the step stops reading from the provider until they are committed. */
const backlogMax = 64
const invalidInputCharsMax = 4000
/** Bounded because arguments are copied to the journal, to the confirmation and to the next prompt. */
const inputCharsMax = 256 * 1024
/** The limit for the text, reasoning and arguments of one answer, so that a model that never stops cannot fill the memory. */
const answerCharsMax = 64 * 1024 * 1024

/** The code of the `diagnostic` event for a setting that the provider does not have. */
const settingIgnored = 'setting_ignored'
const ignoredMax = 20

type ToolCallPart = Extract<ModelPart, { type: 'tool-call' }>
type FinishPart = Extract<ModelPart, { type: 'finish' }>

export function runStep(writer: RunWriter, messages: ModelMessage[], context: StepContext): Promise<FinishReason> {
  const { state } = writer
  const { clock, tracer } = context.dependencies
  const step = nextStepNumber(state)
  const parent = state.accepted?.trace?.traceparent
  const span =
    parent === undefined
      ? undefined
      : tracer?.start({ ...stepSpan(writer.runId, specOf(state), step, clock.now()), parent })
  const answered = askStep(writer, messages, context, span, span?.traceparent ?? parent)
  return span === undefined ? answered : withSpan(answered, span, clock)
}

async function withSpan<T>(work: Promise<T>, span: Span, clock: Clock): Promise<T> {
  try {
    return await work
  } catch (error) {
    const type = error instanceof AppError ? error.code : error instanceof Error ? error.name : 'unknown'
    span.end({ at: clock.now(), error: { type } })
    throw error
  }
}

async function askStep(
  writer: RunWriter,
  messages: ModelMessage[],
  context: StepContext,
  span: Span | undefined,
  traceparent: string | undefined,
): Promise<FinishReason> {
  const answer = new StepAnswer(writer, context)
  const { clock, limits } = context.dependencies
  const watch = new StallWatch(clock, limits.stallMs, context.signal, modelStalled)
  try {
    const request = stepRequest(writer, messages, context, answer.step, traceparent)
    // The fewer variables this function has, the less a silent model holds in memory.
    for await (const batch of context.engine.step(request, watch.signal)) {
      watch.alive()
      const stored = answer.take(batch)
      if (stored !== undefined) await stored
      if (writer.backlog > backlogMax) await writer.committed()
      if (answer.finish !== undefined) break
    }
    if (context.signal.aborted) throw context.signal.reason
  } catch (error) {
    answer.discard()
    throw watch.reason() ?? error
  } finally {
    watch.stop()
  }
  return await answer.close(span)
}

function stepRequest(
  { runId, state }: RunWriter,
  messages: ModelMessage[],
  { offered, answer }: StepContext,
  step: number,
  traceparent: string | undefined,
): StepRequest {
  const spec = specOf(state)
  const toolChoice = step === 1 ? spec.toolChoice : undefined
  return { runId, spec, messages, tools: offered, ...defined({ answer, toolChoice, traceparent }) }
}

/** The answer to one step, as far as it has arrived. */
class StepAnswer {
  readonly step: number
  /** The last part of the answer. */
  finish: FinishPart | undefined
  private readonly writer: RunWriter
  private readonly context: StepContext
  private readonly startedAt: number
  // These two are made for the first part that needs them.
  private deltas: DeltaEmitter | undefined
  private atProvider: ProviderCalls | undefined
  private readonly calls: ToolCallPart[] = []
  private chars = 0
  private firstPartMs: number | undefined
  /** Readers have got something of the answer, or soon will. */
  private isShown = false

  constructor(writer: RunWriter, context: StepContext) {
    const { state } = writer
    const { clock, ids } = context.dependencies
    const open = state.steps.at(-1)
    const interrupted = open !== undefined && !open.finished ? open : undefined
    this.writer = writer
    this.context = context
    this.step = nextStepNumber(state)
    this.startedAt = clock.monotonic()
    if (!context.isStarted) {
      writer.push(...interruptedCallEvents(state, ids), {
        type: 'step.started',
        data: { step: this.step, messageId: interrupted?.messageId || ids(), model: specOf(state).model },
      })
    }
  }

  /** Journals the parts. Returns a promise only if there is something to wait for, because this runs for every token. */
  take(batch: readonly ModelPart[]): Promise<void> | undefined {
    if (this.firstPartMs === undefined && batch.some(({ type }) => type !== 'spent')) {
      this.firstPartMs = elapsedMs(this.context.dependencies.clock, this.startedAt)
      this.context.answering = true
    }
    const events: NewEvent[] = []
    for (const part of batch) {
      if (part.type === 'provider-result') return this.takeResults(batch.slice(batch.indexOf(part)), events)
      this.add(part, events)
    }
    this.push(events)
    if (this.isShown || this.firstPartMs === undefined || events.length === 0) return undefined
    this.isShown = true
    // The first words are shown before the rest of the answer is worked on.
    return this.finish === undefined ? this.writer.committed() : undefined
  }

  /** Results are stored before the parts after them are journaled. */
  private async takeResults(batch: readonly ModelPart[], events: NewEvent[]): Promise<void> {
    for (const part of batch) {
      if (part.type === 'provider-result') {
        this.chars += outputText(part.output).length
        await this.providerCalls().result(part, events)
      } else this.add(part, events)
    }
    this.push(events)
  }

  private add(part: Exclude<ModelPart, { type: 'provider-result' }>, events: NewEvent[]): void {
    if (part.type === 'text') {
      this.chars += part.text.length
      this.emitter().text(part.text, events)
    } else if (part.type === 'reasoning') {
      this.chars += part.text.length
      this.emitter().reasoning(part.text, events)
    } else if (part.type === 'tool-call') {
      this.chars += part.rawInput.length
      this.calls.push(part)
    } else if (part.type === 'provider-call') {
      this.chars += JSON.stringify(part.input).length
      this.providerCalls().call(part, specOf(this.writer.state).model, events)
    } else if (part.type === 'spent') events.push(this.discarded(part.usage))
    else if (part.type === 'source') this.providerCalls().source(part, this.emitter().messageId, events)
    else this.finish = part
  }

  private push(events: NewEvent[]): void {
    if (events.length > 0) {
      if (this.finish === undefined) this.writer.push(...events)
      // The last words share the commit of the events that close the step.
      else this.writer.stage(...events)
    }
    if (this.chars > answerCharsMax) {
      throw new AppError('model_error', 'The model’s answer is longer than 64 MiB and was stopped.')
    }
    if (this.calls.length + (this.atProvider?.count ?? 0) > toolCallsMax) throw tooManyToolCalls()
  }

  private emitter(): DeltaEmitter {
    // Every token takes this path.
    if (this.deltas !== undefined) return this.deltas
    const { state } = this.writer
    // What an interrupted attempt at this step has shown.
    const { text, reasoning } = state.steps.at(-1) ?? { text: '', reasoning: '' }
    this.deltas = new DeltaEmitter(state, this.step, text, reasoning, this.context.dependencies.ids)
    return this.deltas
  }

  private providerCalls(): ProviderCalls {
    if (this.atProvider !== undefined) return this.atProvider
    const { writer, context } = this
    const { clock, ids } = context.dependencies
    const putBlob = (id: string, body: string) => this.putBlob(id, body)
    this.atProvider = new ProviderCalls(writer.state, writer.runId, this.step, { clock, ids, putBlob })
    return this.atProvider
  }

  private async putBlob(id: string, body: string): Promise<void> {
    await this.context.dependencies.store.putBlob(id, this.writer.runId, body)
  }

  /** Closes the step with its message and its calls. */
  async close(span: Span | undefined): Promise<FinishReason> {
    const { writer, context, finish, calls } = this
    const { state } = writer
    const { clock, meter } = context.dependencies
    if (finish === undefined) {
      throw new AppError('model_stream_incomplete', 'The model’s answer broke off before its end. Try again.', {
        retryable: true,
      })
    }
    const end: NewEvent[] = []
    const emitter = this.emitter()
    emitter.end(end)
    this.atProvider?.end(end)
    if (end.length > 0) writer.push(...end)
    if (finish.reason === 'content-filter') {
      this.discard()
      throw new AppError(
        'model_content_filtered',
        'The provider’s content filter stopped the answer. Rephrase the request.',
      )
    }
    const durationMs = elapsedMs(clock, this.startedAt)
    const provider = await this.storedProviderState(specOf(state).model, finish)
    const closing = closingEvents(state, this.step, emitter.messageId, calls, finish, context, {
      durationMs,
      provider,
    })
    // The end of the run usually follows the last answer at once, and joins its commit.
    if (calls.length === 0) writer.stage(...closing)
    else await writer.write(...closing)
    const done = closing.find((event) => event.type === 'step.done')
    const firstPartSeconds = this.firstPartMs === undefined ? undefined : this.firstPartMs / 1000
    meter?.stepDone({
      model: state.steps.at(-1)?.model ?? specOf(state).model,
      usage: finish.usage,
      costMicroUsd: done?.data.costMicroUsd,
      seconds: durationMs / 1000,
      firstPartSeconds,
    })
    span?.end({
      at: clock.now(),
      attributes: stepEndAttributes({
        finishReason: finish.reason,
        toolCalls: calls.length,
        usage: finish.usage,
        costMicroUsd: done?.data.costMicroUsd,
        firstPartSeconds,
      }),
    })
    return finish.reason
  }

  /** Counts the tokens of an answer that came to its end and is not used. */
  discard(): void {
    const usage = this.finish?.usage
    if (usage !== undefined && this.writer.lost === undefined) this.writer.push(this.discarded(usage))
  }

  private discarded(usage: Usage): NewEvent {
    return discardedAnswer(this.step, specOf(this.writer.state).model, usage, this.context.dependencies)
  }

  private async storedProviderState(resolvedModel: string, { state }: FinishPart): Promise<ProviderState | undefined> {
    if (state === undefined) return undefined
    const provider = providerOf(resolvedModel)
    const body = JSON.stringify(state)
    if (body.length <= providerStateCharsMax) return { ...provider, state }
    const stateRef = `${providerStateBlob}${this.context.dependencies.ids()}`
    await this.putBlob(stateRef, body)
    return { ...provider, stateRef }
  }
}

/** Counts the tokens that a provider reported for an answer that is not used. */
export function discardedAnswer(
  step: number,
  model: string,
  usage: Usage,
  { modelTable, meter }: Pick<RunDependencies, 'modelTable' | 'meter'>,
): NewEvent {
  const costMicroUsd = modelTable.costOf(model, usage)
  meter?.answerDiscarded({ model, usage, costMicroUsd })
  return { type: 'answer.discarded', data: { step, model, usage, ...defined({ costMicroUsd }) } }
}

function closingEvents(
  state: RunState,
  step: number,
  messageId: string,
  calls: ToolCallPart[],
  finish: FinishPart,
  context: StepContext,
  { durationMs, provider }: { durationMs: number; provider: ProviderState | undefined },
): NewEvent[] {
  const text = state.steps.at(-1)?.text ?? ''
  const events: NewEvent[] = []
  // A step that only calls tools has no message. A step without calls always has one, even if its text is empty.
  if (text !== '' || calls.length === 0) {
    events.push({ type: 'message.done', data: { messageId, role: 'assistant', text, step, state: 'active' } })
  }
  const { ids, modelTable } = context.dependencies
  const taken = new Set(state.calls.keys())
  for (const [index, call] of calls.entries()) {
    // Some providers restart their call ids in every step, but a call id must be unique within the run.
    const callId = call.callId === '' || taken.has(call.callId) ? `call_${ids()}` : call.callId
    taken.add(callId)
    const tool = context.tools.find(({ name }) => name === call.name)
    events.push({ type: 'tool.called', data: calledData(call, callId, step, index, tool) })
  }
  // Said once for a run: the later steps ask in the same way.
  for (const setting of step === 1 ? (finish.ignored ?? []).slice(0, ignoredMax) : []) {
    events.push({
      type: 'diagnostic',
      data: {
        code: settingIgnored,
        message: `The setting ${JSON.stringify(setting)} has no effect with this model, and was not sent.`,
        details: { setting },
      },
    })
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
      ...defined({
        usage: finish.usage,
        costMicroUsd: modelTable.costOf(state.steps.at(-1)?.model ?? specOf(state).model, finish.usage),
      }),
      durationMs,
      ...defined({ provider }),
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
    ...defined({
      source: tool?.source,
      invalidInput: usable ? undefined : call.rawInput.slice(0, invalidInputCharsMax),
    }),
  }
}

function modelStalled(seconds: number): AppError {
  return new AppError(
    'model_stalled',
    `The model said nothing for ${seconds} s. Try again, or raise POLYLOG_STALL_MS.`,
    {
      retryable: true,
    },
  )
}
