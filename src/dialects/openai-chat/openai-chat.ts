// The wire of `format=openai-chat`: chunks of OpenAI's Chat Completions. README.md beside this file
// has the mapping table and the reasons.
//
// What must stay true: a stock client has to get along with every frame. So each frame is a chunk
// with `choices`, an error object or `[DONE]`, and what this wire has no words for is in the field
// `polylog`, which clients ignore. A run that waits for its client ends one completion, and what
// follows is the next completion, with an id and token counts of its own.

import { jsonString } from '../../kit/json-string.ts'
import { clientToolSource } from '../../journal/client-tool.ts'
import type { EventData, JsonValue } from '../../journal/event.ts'
import { addUsage, noUsage, usageOfStep, type UsageTotals } from '../../journal/usage.ts'
import { askedCall } from '../interactions.ts'
import { calledCall, type Calls, withCall, noCalls } from '../calls.ts'
import {
  type Dialect,
  emit,
  endsStream,
  type Frame,
  inSequence,
  pingTiming,
  type Projection,
  silent,
} from '../dialect.ts'
import { addText, type TextState } from '../message-text.ts'
import { sseFrame, sseHeaders } from '../sse-encoding.ts'
import { openAiError } from './openai-error.ts'

export type OpenAiChatState = TextState & {
  readonly runId: string
  /** In seconds. */
  readonly created: number
  readonly model: string
  /** How many completions of this run came before this one. */
  readonly completion: number
  readonly started: boolean
  readonly includeUsage: boolean
  readonly calls: Calls
  /** The calls whose results come from the client; they are not shown as calls of the server. */
  readonly clientCalls: ReadonlySet<string>
  /** How many tool calls this completion has. */
  readonly toolCalls: number
  readonly finishReason: string
  readonly usage: UsageTotals
  /**
   * True if the answer has to fit a schema. Its text is sent when it is known to fit: an answer that does not is asked for
   * again, and the client would get both texts as one.
   */
  readonly holdsText: boolean
  /** The newest text that is held back. */
  readonly held: string
}

type OpenAiChatProjection = Projection<OpenAiChatState>

export type OpenAiChatOptions = {
  /** Whether the usage is sent; absent: as the request that started the run asked. */
  readonly usage?: boolean
}

/** The last frame of a completion. It is no JSON. */
const done: Frame = { name: 'done', data: '[DONE]' }

const ending = { atDecision: 'parks' } as const

export function openAiChatDialect({ usage }: OpenAiChatOptions = {}): Dialect<OpenAiChatState> {
  return {
    // Readers of dialects with the same name share encoded bytes.
    name: usage === undefined ? 'openai-chat' : `openai-chat.${usage ? 'with' : 'without'}-usage`,
    headers: sseHeaders,

    open: ({ runId }) => ({
      runId,
      created: 0,
      model: '',
      completion: 0,
      started: false,
      includeUsage: usage === true,
      calls: noCalls,
      clientCalls: new Set(),
      toolCalls: 0,
      finishReason: 'stop',
      usage: noUsage,
      textMessageId: null,
      holdsText: false,
      held: '',
    }),

    step(state, event) {
      switch (event.type) {
        case 'run.accepted':
          return startCompletion(acceptedState(state, event.data, event.at, usage))
        case 'text.delta':
          return state.holdsText ? silent(heldText(state, event.data)) : textChunk(state, event.data)
        case 'reasoning.delta':
          return inSequence(state, startCompletion, (next) =>
            emit(next, deltaChunk(next, { reasoning_content: event.data.text })),
          )
        case 'source.found':
          return sourceChunk(state, event.data)
        case 'step.done':
          return silent({
            ...state,
            finishReason: event.data.finishReason,
            usage: addUsage(state.usage, usageOfStep(event.data)),
          })
        case 'answer.discarded':
          return silent({ ...state, usage: addUsage(state.usage, usageOfStep(event.data)) })
        case 'tool.called':
          return calledChunk(state, event.data)
        case 'tool.done':
          return resultChunk(state, event.data)
        case 'input.required': {
          const asked = askedCall(state.calls, event)
          const known = withCall(state, asked.callId, asked.call)
          return inSequence(known, startCompletion, (next) =>
            askedChunk(next, event.data, asked.call.name, asked.call.input),
          )
        }
        case 'run.state':
          if (endsStream(ending, event)) return finishCompletion(state, 'tool_calls')
          return event.data.from === 'waiting_user' && event.data.to === 'queued'
            ? startCompletion(state)
            : silent(state)
        case 'run.ended':
          return endChunks(state, event.data)

        // No chunk on this wire. Listed without a default, so that a new event type is a compile error here.
        case 'run.prepared':
        case 'step.started':
        case 'message.done':
        case 'tool.started':
        case 'tool.progress':
        case 'input.resolved':
        case 'output.rejected':
        case 'engine.handle':
        case 'context.patch':
        case 'context.cut':
        case 'context.summarised':
        case 'diagnostic':
          return silent(state)
      }
    },

    encode: ({ data }, address) => sseFrame(address, null, data === done.data ? '[DONE]' : JSON.stringify(data)),

    encodeDelta(state, { seq, messageId, textJson }) {
      if (state.holdsText || !state.started || state.textMessageId !== messageId) return null
      const { created, model } = state
      return `id: ${seq}\ndata: {"id":${jsonString(idOf(state))},"object":"chat.completion.chunk","created":${created},"model":${jsonString(model)},"choices":[{"index":0,"delta":{"content":${textJson}},"finish_reason":null}]}\n\n`
    },

    keepAlive: () => ': c\n\n',
    keepAliveTiming: pingTiming,

    ...ending,
  }
}

function acceptedState(
  state: OpenAiChatState,
  { spec, echo = {} }: EventData<'run.accepted'>,
  at: number,
  usage: boolean | undefined,
): OpenAiChatState {
  return {
    ...state,
    created: Math.floor(at / 1000),
    model: typeof echo['model'] === 'string' ? echo['model'] : spec.model,
    includeUsage: usage ?? echo['include_usage'] === true,
    holdsText: spec.outputSchema !== undefined,
  }
}

function idOf({ runId, completion }: OpenAiChatState): string {
  return completion === 0 ? `chatcmpl-${runId}` : `chatcmpl-${runId}-${completion + 1}`
}

function chunk(state: OpenAiChatState, name: string, fields: Record<string, unknown>): Frame {
  const { created, model } = state
  return { name, data: { id: idOf(state), object: 'chat.completion.chunk', created, model, ...fields } }
}

function deltaChunk(state: OpenAiChatState, delta: Record<string, unknown>, more: Record<string, unknown> = {}): Frame {
  return chunk(state, 'chunk', { choices: [{ index: 0, delta, finish_reason: null }], ...more })
}

function startCompletion(state: OpenAiChatState): OpenAiChatProjection {
  if (state.started) return silent(state)
  const next = { ...state, started: true }
  return emit(next, deltaChunk(next, { role: 'assistant', content: '' }))
}

function textChunk(state: OpenAiChatState, delta: EventData<'text.delta'>): OpenAiChatProjection {
  return inSequence(state, startCompletion, (started) => {
    const { state: next, separator } = addText(started, delta)
    return emit(next, deltaChunk(next, { content: separator + delta.text }))
  })
}

function heldText(state: OpenAiChatState, { messageId, text }: EventData<'text.delta'>): OpenAiChatState {
  return { ...state, textMessageId: messageId, held: messageId === state.textMessageId ? state.held + text : text }
}

/** This wire has citations of addresses only. Where in the text a source is cited is not known. */
function sourceChunk(state: OpenAiChatState, { url, title }: EventData<'source.found'>): OpenAiChatProjection {
  if (url === undefined) return silent(state)
  const citation = { start_index: 0, end_index: 0, url, title: title ?? url }
  const annotations = [{ type: 'url_citation', url_citation: citation }]
  return inSequence(state, startCompletion, (next) => emit(next, deltaChunk(next, { annotations })))
}

function calledChunk(state: OpenAiChatState, event: EventData<'tool.called'>): OpenAiChatProjection {
  const { callId, name, input, note, source } = event
  const known = withCall(state, callId, calledCall(event))
  if (source === clientToolSource) return silent({ ...known, clientCalls: new Set(known.clientCalls).add(callId) })
  const polylog = { type: 'tool.called', callId, name, input, note }
  return inSequence(known, startCompletion, (next) => emit(next, deltaChunk(next, {}, { polylog })))
}

function resultChunk(
  state: OpenAiChatState,
  { callId, outcome, summary }: EventData<'tool.done'>,
): OpenAiChatProjection {
  if (state.clientCalls.has(callId)) return silent(state)
  const polylog = { type: 'tool.done', callId, name: state.calls.get(callId)?.name ?? 'unknown', outcome, summary }
  return inSequence(state, startCompletion, (next) => emit(next, deltaChunk(next, {}, { polylog })))
}

/** The id of the tool call is the interaction, so that the tool message of the next request finds its run. */
function askedChunk(
  state: OpenAiChatState,
  { interactionId, kind, prompt, outcome }: EventData<'input.required'>,
  name: string,
  input: JsonValue | undefined,
): OpenAiChatProjection {
  const call = {
    index: state.toolCalls,
    id: interactionId,
    type: 'function',
    function: { name, arguments: JSON.stringify(input ?? {}) },
  }
  const asked = { type: 'input.required', id: interactionId, kind, prompt, ...(outcome && { outcome }) }
  const more = kind === 'client_tool' ? {} : { polylog: asked }
  return emit({ ...state, toolCalls: state.toolCalls + 1 }, deltaChunk(state, { tool_calls: [call] }, more))
}

/** Ends a completion. The run goes on with the request that brings the results. */
function finishCompletion(state: OpenAiChatState, finishReason: string): OpenAiChatProjection {
  return inSequence(state, startCompletion, (next) => {
    const last = chunk(next, 'chunk', { choices: [{ index: 0, delta: {}, finish_reason: finishReason }] })
    const usage = next.includeUsage ? [chunk(next, 'usage', { choices: [], usage: chatUsage(next.usage) })] : []
    const after = { ...next, started: false, completion: next.completion + 1, toolCalls: 0, usage: noUsage }
    return emit({ ...after, textMessageId: null }, last, ...usage, done)
  })
}

function endChunks(state: OpenAiChatState, ended: EventData<'run.ended'>): OpenAiChatProjection {
  const { status, error, reason } = ended
  if (status === 'succeeded') {
    const answer = ended.output ?? state.held
    const finish = (next: OpenAiChatState) => finishCompletion(next, next.finishReason === 'length' ? 'length' : 'stop')
    if (!state.holdsText || answer === '') return finish(state)
    return inSequence(state, startCompletion, (next) => emit(next, deltaChunk(next, { content: answer })), finish)
  }
  if (error?.code === 'model_content_filtered') return finishCompletion(state, 'content_filter')
  const failure =
    status === 'canceled'
      ? openAiError('run_cancelled', reason ?? 'The run was cancelled.')
      : openAiError(error?.code ?? 'internal_error', error?.message ?? 'The run failed.')
  return emit({ ...state, started: false }, { name: 'error', data: { error: failure } })
}

export function chatUsage(usage: UsageTotals): Record<string, unknown> {
  const { inputTokens, outputTokens, cachedTokens, reasoningTokens } = usage
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
    completion_tokens_details: { reasoning_tokens: reasoningTokens },
  }
}
