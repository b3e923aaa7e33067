// Executes one model step: asks the engine, journals the text as it streams in, and closes
// the step with its message and its tool calls in one commit. A step is finished only by
// that commit; after a crash before it, the step is asked again. Tools start only after it.

import { AppError } from '../errors/app-error.ts'
import type { StepEngine } from '../engines/engine.ts'
import {
  type EventData,
  type NewEvent,
  type ProviderState,
  providerStateCharsMax,
  type Usage,
} from '../journal/event.ts'
import { type RunState, specOf } from '../journal/run-state.ts'
import { type Clock, elapsedMs } from '../kit/clock.ts'
import { defined } from '../kit/defined.ts'
import type { Ids } from '../kit/ids.ts'
import type { Span, Tracer } from '../kit/tracer.ts'
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
import { interruptedCallEvents, ProviderRun } from './provider-run.ts'
import { providerOf, providerStateBlob } from './provider-states.ts'
import { DeltaEmitter } from './delta-emitter.ts'
import type { RunMeter } from './run-dependencies.ts'
import type { RunWriter } from './run-writer.ts'
import { stepEndAttributes, stepSpan } from './span-attributes.ts'
import { StallWatch } from './stall-watch.ts'
import { outputText } from './tool-outcome.ts'

export type StepContext = {
  engine: StepEngine
  clock: Clock
  ids: Ids
  stallMs: number
  /** Aborted when the run is cancelled, drained or out of time. */
  signal: AbortSignal
  toolNamed(name: string): Tool | undefined
  /** Undefined if any text is an answer. */
  answer?: WantedAnswer | undefined
  putBlob(id: string, body: string): Promise<void>
  /** In millionths of a dollar; undefined if the price is not known. */
  costOf(model: string, usage: Usage | undefined): number | undefined
  meter?: Pick<RunMeter, 'stepDone'> | undefined
  tracer?: Tracer | undefined
  /** The journal already has the start of this step, and it was not asked yet. */
  begun?: boolean
  /** Called when the first part of the answer arrives. */
  onFirstPart?: (() => void) | undefined
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

export async function runStep(
  writer: RunWriter,
  messages: ModelMessage[],
  tools: ModelTool[],
  context: StepContext,
): Promise<FinishReason> {
  const { state } = writer
  const open = state.steps.at(-1)
  const step = open !== undefined && !open.finished ? open.step : (open?.step ?? 0) + 1
  const parent = state.accepted?.trace?.traceparent
  const span =
    parent === undefined
      ? undefined
      : context.tracer?.start({ ...stepSpan(writer.runId, specOf(state), step, context.clock.now()), parent })
  try {
    return await askStep(writer, messages, tools, { ...context, span, traceparent: span?.traceparent ?? parent })
  } catch (error) {
    const type = error instanceof AppError ? error.code : error instanceof Error ? error.name : 'unknown'
    span?.end({ at: context.clock.now(), error: { type } })
    throw error
  }
}

async function askStep(
  writer: RunWriter,
  messages: ModelMessage[],
  tools: ModelTool[],
  context: StepContext & { span: Span | undefined; traceparent: string | undefined },
): Promise<FinishReason> {
  const { state } = writer
  const open = state.steps.at(-1)
  const torn = open !== undefined && !open.finished ? open : undefined
  const number = torn?.step ?? (open?.step ?? 0) + 1
  const startedAt = context.clock.monotonic()
  if (context.begun !== true) {
    writer.push(...interruptedCallEvents(state, context.ids), {
      type: 'step.started',
      data: { step: number, messageId: torn?.messageId || context.ids(), model: specOf(state).model },
    })
  }

  const emitter = new DeltaEmitter(writer.state, number, torn?.text ?? '', torn?.reasoning ?? '', context.ids)
  const watch = new StallWatch(context.clock, context.stallMs, context.signal, modelStalled)
  const providerRun = new ProviderRun(state, writer.runId, number, context)
  const calls: ToolCallPart[] = []
  let answerChars = 0
  let finish: FinishPart | undefined
  let firstPartMs: number | undefined
  try {
    const { answer } = context
    const spec = specOf(state)
    const toolChoice = number === 1 ? spec.toolChoice : undefined
    const request = {
      runId: writer.runId,
      spec,
      messages,
      tools,
      ...defined({ answer, toolChoice, traceparent: context.traceparent }),
    }
    for await (const batch of context.engine.step(request, watch.signal)) {
      watch.alive()
      if (batch.length > 0 && firstPartMs === undefined) {
        firstPartMs = elapsedMs(context.clock, startedAt)
        context.onFirstPart?.()
      }
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
        } else if (part.type === 'provider-call') {
          answerChars += JSON.stringify(part.input).length
          providerRun.call(part, specOf(state).model, events)
        } else if (part.type === 'provider-result') {
          answerChars += outputText(part.output).length
          await providerRun.result(part, events)
        } else if (part.type === 'source') providerRun.source(part, emitter.messageId, events)
        else finish = part
      }
      if (events.length > 0) writer.push(...events)
      if (answerChars > answerCharsMax) {
        throw new AppError('model_error', 'The model’s answer is longer than 64 MiB and was stopped.')
      }
      if (calls.length + providerRun.count > toolCallsMax) throw tooManyToolCalls()
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
  providerRun.end(end)
  if (end.length > 0) writer.push(...end)
  if (finish.reason === 'content-filter') {
    throw new AppError(
      'model_content_filtered',
      'The provider’s content filter stopped the answer. Rephrase the request.',
    )
  }
  const durationMs = elapsedMs(context.clock, startedAt)
  const provider = await storedProviderState(specOf(state).model, finish, context)
  const closing = closingEvents(writer.state, number, emitter.messageId, calls, finish, context, {
    durationMs,
    provider,
  })
  // The end of the run usually follows the last answer at once, and joins its commit.
  if (calls.length === 0) writer.stage(...closing)
  else await writer.write(...closing)
  const done = closing.find((event) => event.type === 'step.done')
  context.meter?.stepDone({
    model: writer.state.steps.at(-1)?.model ?? specOf(state).model,
    usage: finish.usage,
    costMicroUsd: done?.data.costMicroUsd,
    seconds: durationMs / 1000,
    firstPartSeconds: firstPartMs === undefined ? undefined : firstPartMs / 1000,
  })
  context.span?.end({
    at: context.clock.now(),
    attributes: stepEndAttributes({
      finishReason: finish.reason,
      toolCalls: calls.length,
      usage: finish.usage,
      costMicroUsd: done?.data.costMicroUsd,
      firstPartSeconds: firstPartMs === undefined ? undefined : firstPartMs / 1000,
    }),
  })
  return finish.reason
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
  const taken = new Set(state.calls.keys())
  for (const [index, call] of calls.entries()) {
    // Some providers restart their call ids in every step, but a call id must be unique within the run.
    const callId = call.callId === '' || taken.has(call.callId) ? `call_${context.ids()}` : call.callId
    taken.add(callId)
    events.push({ type: 'tool.called', data: calledData(call, callId, step, index, context.toolNamed(call.name)) })
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
      durationMs,
      ...defined({
        usage: finish.usage,
        provider,
        costMicroUsd: context.costOf(state.steps.at(-1)?.model ?? specOf(state).model, finish.usage),
      }),
    },
  })
  return events
}

async function storedProviderState(
  resolvedModel: string,
  { state }: FinishPart,
  context: StepContext,
): Promise<ProviderState | undefined> {
  if (state === undefined) return undefined
  const provider = providerOf(resolvedModel)
  const body = JSON.stringify(state)
  if (body.length <= providerStateCharsMax) return { ...provider, state }
  const stateRef = `${providerStateBlob}${context.ids()}`
  await context.putBlob(stateRef, body)
  return { ...provider, stateRef }
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
