// The wire of a LangGraph run: SSE events that are named after stream modes. README.md beside this file
// has the mapping table.
//
// What must stay true: the address of a frame does not depend on the modes that a client asked for, because
// a client that reconnects may ask for others. So the fold gives the frames of all modes, and `encode` leaves
// out those that were not asked for. Only `messages/partial`, which repeats the text so far, is not even
// computed for other clients; it is the last frame of its event, so it moves no other one.

import { jsonString } from '../../kit/json-string.ts'
import type { EventData, EventOf, JsonValue } from '../../journal/event.ts'
import { resultForModel } from '../../journal/tool-outcome.ts'
import { shownConversationId } from '../../kit/conversation-id.ts'
import { defined } from '../../kit/defined.ts'
import { withEntry } from '../../kit/shared-map.ts'
import { shownOutput, noCalls } from '../calls.ts'
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
import { sseFrame, sseHeaders } from '../sse-encoding.ts'
import { type Asked, langInterruptsOf, type LangInterrupt } from './interrupts.ts'
import {
  boundedMessages,
  humanMessage,
  type LangMessage,
  type LangToolCall,
  toolCallOf,
  toolMessage,
} from './lang-message.ts'

export const streamModes = ['values', 'updates', 'messages-tuple', 'messages', 'custom', 'tools'] as const
export type StreamMode = (typeof streamModes)[number]

export type LangGraphState = {
  readonly runId: string
  readonly threadId: string
  /** The finished messages of this run: its question, answers and tool results. */
  readonly messages: readonly LangMessage[]
  /** The message that the model writes; null if its id is not known yet. */
  readonly messageId: string | null
  /** The whole text of that message, when it is complete. */
  readonly text: string
  readonly calls: ReadonlyMap<string, { readonly name: string; readonly input: JsonValue }>
  /** The calls of the step that has not ended. */
  readonly stepCalls: readonly LangToolCall[]
  /** Results of calls of that step: their messages come after the message with the calls. */
  readonly heldResults: readonly LangMessage[]
  readonly asked: ReadonlyMap<string, Asked>
  /** Only for the mode `messages`: the text so far, and how much of it was sent. */
  readonly partial: { readonly id: string; readonly text: string; readonly sent: number } | null
}

type LangGraphProjection = Projection<LangGraphState>

export type LangGraphOptions = {
  readonly modes?: readonly StreamMode[]
  /** The messages of the thread before this run. */
  readonly earlier?: readonly LangMessage[]
  /** A replay from the beginning does not end at decisions up to this event. */
  readonly decidedUpTo?: number
}

/** `messages` is left out: it repeats text, so only a client that asks for it gets it. */
export const defaultModes: readonly StreamMode[] = ['values', 'updates', 'messages-tuple', 'custom', 'tools']

const agentNode = 'agent'
const toolsNode = 'tools'

export function langGraphDialect(options: LangGraphOptions = {}): Dialect<LangGraphState> {
  const { modes = defaultModes, earlier = [], decidedUpTo = 0 } = options
  const wanted: ReadonlySet<string> = new Set(modes)
  const partials = wanted.has('messages')
  const ending = { atDecision: 'parks', decidedUpTo } as const

  const valuesFrame = ({ messages }: LangGraphState, interrupts?: readonly LangInterrupt[]): Frame => ({
    name: 'values',
    data: {
      messages: boundedMessages([...earlier, ...messages]),
      ...(interrupts === undefined ? {} : { __interrupt__: interrupts }),
    },
  })

  function step(state: LangGraphState, event: Parameters<Dialect['step']>[1]): LangGraphProjection {
    switch (event.type) {
      case 'run.accepted':
        return acceptedFrames(state, event)
      case 'step.started':
        return silent({ ...state, messageId: event.data.messageId, text: '', partial: null })
      case 'text.delta':
        return textFrames(state, event.data)
      case 'reasoning.delta':
        return reasoningFrames(state, event.data)
      case 'message.done': {
        const { messageId, text, state: messageState } = event.data
        const isActive = messageState === 'active'
        return silent({ ...state, messageId: isActive ? messageId : null, text: isActive ? text : '', partial: null })
      }
      case 'tool.called': {
        const { callId, name, input } = event.data
        const calls = withEntry(state.calls, callId, { name, input })
        return silent({ ...state, calls, stepCalls: [...state.stepCalls, toolCallOf(callId, name, input)] })
      }
      case 'step.done':
        return stepFrames(state, event.data)
      case 'tool.started': {
        const { callId, input } = event.data
        return emit(state, toolsFrame('on_tool_start', state, callId, { input }))
      }
      case 'tool.progress': {
        const { callId, message } = event.data
        return emit(state, toolsFrame('on_tool_event', state, callId, { data: { message } }))
      }
      case 'tool.done':
        return resultFrames(state, event.data)
      case 'output.rejected': {
        const messages = state.messages.filter(({ id }) => id !== event.data.messageId)
        return silent({ ...state, messages })
      }
      case 'input.required':
        return silent({ ...state, asked: new Map(state.asked).set(event.data.interactionId, event.data) })
      case 'input.resolved': {
        const asked = new Map(state.asked)
        asked.delete(event.data.interactionId)
        return silent({ ...state, asked })
      }
      case 'run.state': {
        if (event.data.to !== 'waiting_user' || !endsStream(ending, event)) return silent(state)
        const interrupts = openInterrupts(state)
        return emit(state, { name: 'updates', data: { __interrupt__: interrupts } }, valuesFrame(state, interrupts))
      }
      case 'source.found': {
        const { messageId, ...source } = event.data
        return emit(state, customFrame({ type: 'source', message_id: messageId, ...defined(source) }))
      }
      case 'diagnostic': {
        const { code, message } = event.data
        return emit(state, customFrame({ type: 'diagnostic', code, message }))
      }
      case 'run.ended':
        return endFrames(state, event.data)

      // No frame on this wire. Listed without a default, so that a new event type is a compile error here.
      case 'run.prepared':
      case 'engine.handle':
      case 'context.patch':
      case 'answer.discarded':
      case 'context.cut':
      case 'context.summarised':
        return silent(state)
    }
  }

  function acceptedFrames(state: LangGraphState, event: EventOf<'run.accepted'>): LangGraphProjection {
    const { conversationId, userMessageId, input, continuesHistory = false } = event.data
    const threadId = conversationId === null ? state.runId : shownConversationId(conversationId)
    // The question of a run without a conversation is not a stored message.
    const messages = continuesHistory ? [] : [humanMessage(userMessageId ?? `${state.runId}-question`, input)]
    const next = { ...state, threadId, messages }
    const metadata = { run_id: state.runId, thread_id: threadId, attempt: event.attempt }
    return emit(next, { name: 'metadata', data: metadata }, valuesFrame(next))
  }

  function textFrames(state: LangGraphState, { messageId, text }: EventData<'text.delta'>): LangGraphProjection {
    const frame = chunkFrame(state, { id: messageId, content: text })
    const known = state.messageId === messageId ? state : { ...state, messageId }
    if (!partials) return emit(known, frame)
    const before = state.partial?.id === messageId ? state.partial : { id: messageId, text: '', sent: 0 }
    const whole = before.text + text
    const isDue = whole.length - before.sent >= Math.max(1, (whole.length - everyDeltaChars) / partialsPerText)
    const partial = { id: messageId, text: whole, sent: isDue ? whole.length : before.sent }
    const next = { ...known, partial }
    const shown = { type: 'ai', id: messageId, content: whole, tool_calls: [] }
    return isDue ? emit(next, frame, { name: 'messages/partial', data: [shown] }) : emit(next, frame)
  }

  function stepFrames(state: LangGraphState, event: EventData<'step.done'>): LangGraphProjection {
    const { messageId, usage } = event
    const { stepCalls, heldResults, text } = state
    const done = { ...state, messageId: null, text: '', stepCalls: [], heldResults: [], partial: null }
    if (text === '' && stepCalls.length === 0) return silent(done)
    const { inputTokens = 0, outputTokens = 0 } = usage ?? {}
    const message: LangMessage = {
      type: 'ai',
      id: messageId,
      content: text,
      tool_calls: stepCalls,
      ...(usage === undefined
        ? {}
        : {
            usage_metadata: {
              input_tokens: inputTokens,
              output_tokens: outputTokens,
              total_tokens: inputTokens + outputTokens,
            },
          }),
    }
    const answered = { ...done, messages: [...state.messages, message] }
    const frames: Frame[] = [
      ...(stepCalls.length === 0
        ? []
        : [chunkFrame(state, { id: messageId, content: '', tool_call_chunks: stepCalls.map(callChunk) })]),
      updatesFrame(agentNode, message),
      valuesFrame(answered),
      { name: 'messages/complete', data: [message] },
    ]
    return inSequence(
      answered,
      (next) => emit(next, ...frames),
      ...heldResults.map((result) => (next: LangGraphState) => resultMessageFrames(next, result)),
    )
  }

  function resultFrames(state: LangGraphState, event: EventData<'tool.done'>): LangGraphProjection {
    const { callId, messageId, outcome, summary, error } = event
    const succeeded = outcome === 'succeeded'
    const output = shownOutput(event)
    const call = { callId, name: state.calls.get(callId)?.name }
    const message = toolMessage(messageId, call, resultForModel(event), succeeded)
    const progress = succeeded
      ? toolsFrame('on_tool_end', state, callId, { output: output ?? null })
      : toolsFrame('on_tool_error', state, callId, { error: error?.message ?? summary })
    if (state.stepCalls.some(({ id }) => id === callId)) {
      return emit({ ...state, heldResults: [...state.heldResults, message] }, progress)
    }
    return inSequence(
      state,
      (next) => emit(next, progress),
      (next) => resultMessageFrames(next, message),
    )
  }

  function resultMessageFrames(state: LangGraphState, message: LangMessage): LangGraphProjection {
    const next = { ...state, messages: [...state.messages, message] }
    return emit(
      next,
      { name: 'messages', data: [message, metadataOf(next, toolsNode)] },
      updatesFrame(toolsNode, message),
      valuesFrame(next),
      { name: 'messages/complete', data: [message] },
    )
  }

  function endFrames(state: LangGraphState, { status, error }: EventData<'run.ended'>): LangGraphProjection {
    if (status !== 'failed') return emit(state, valuesFrame(state))
    const { code = 'internal_error', message = 'The run failed.' } = error ?? {}
    return emit(state, { name: 'error', data: { error: code, message } })
  }

  return {
    name: 'langgraph',
    bytesKey: `${[...wanted].toSorted().join(',')} ${earlier.length} ${earlier.at(-1)?.id ?? ''}`,
    headers: sseHeaders,

    open: ({ runId }) => ({
      runId,
      threadId: runId,
      messages: [],
      messageId: null,
      text: '',
      calls: noCalls,
      stepCalls: [],
      heldResults: [],
      asked: new Map(),
      partial: null,
    }),

    step,

    encode({ name, data }, address) {
      const mode = modeOf(name)
      return mode === null || wanted.has(mode) ? sseFrame(address, name, JSON.stringify(data)) : ''
    },

    encodeDelta({ runId, threadId, messageId }, { seq, messageId: deltaMessageId, textJson }) {
      if (partials || messageId !== deltaMessageId) return null
      if (!wanted.has('messages-tuple')) return ''
      const chunk = `{"type":"AIMessageChunk","id":${jsonString(messageId)},"content":${textJson}}`
      const place = `"run_id":${jsonString(runId)},"thread_id":${jsonString(threadId)}`
      return `id: ${seq}\nevent: messages\ndata: [${chunk},{${place},"langgraph_node":"${agentNode}","tags":[]}]\n\n`
    },

    // One line break only: the client takes a blank line for the end of an event once it has seen an id.
    keepAlive: () => ': c\n',
    keepAliveTiming: pingTiming,

    ...ending,
  }
}

/** Below this length, each piece of text gives a `messages/partial`. */
const everyDeltaChars = 2000
/** Above it, one comes whenever the text has grown by this part of its length, so that all of them together stay linear. */
const partialsPerText = 16

/** The mode that a frame belongs to; null if every client gets it. */
function modeOf(name: string): StreamMode | null {
  switch (name) {
    case 'metadata':
    case 'error':
      return null
    case 'messages':
      return 'messages-tuple'
    case 'messages/partial':
    case 'messages/complete':
      return 'messages'
    default:
      return name as StreamMode
  }
}

/** The open questions of the run. */
export function openInterrupts({ asked, calls }: LangGraphState): readonly LangInterrupt[] {
  return langInterruptsOf(asked.values(), (callId) => calls.get(callId ?? '')?.name ?? 'unknown')
}

function metadataOf({ runId, threadId }: LangGraphState, node: string): JsonValue {
  return { run_id: runId, thread_id: threadId, langgraph_node: node, tags: [] }
}

function chunkFrame(state: LangGraphState, fields: { id: string; content: string; [more: string]: unknown }): Frame {
  return { name: 'messages', data: [{ type: 'AIMessageChunk', ...fields }, metadataOf(state, agentNode)] }
}

function callChunk({ id, name, args }: LangToolCall, index: number): JsonValue {
  return { id, name, args: JSON.stringify(args), index, type: 'tool_call_chunk' }
}

/** Reasoning has no message of its own on this wire; before the id of the message is known, it cannot be told. */
function reasoningFrames(state: LangGraphState, { text }: EventData<'reasoning.delta'>): LangGraphProjection {
  if (state.messageId === null) return silent(state)
  return emit(
    state,
    chunkFrame(state, { id: state.messageId, content: '', additional_kwargs: { reasoning_content: text } }),
  )
}

function updatesFrame(node: string, message: LangMessage): Frame {
  return { name: 'updates', data: { [node]: { messages: [message] } } }
}

function customFrame(data: JsonValue): Frame {
  return { name: 'custom', data }
}

function toolsFrame(
  name: 'on_tool_start' | 'on_tool_event' | 'on_tool_end' | 'on_tool_error',
  { calls }: LangGraphState,
  callId: string,
  fields: Record<string, JsonValue>,
): Frame {
  return {
    name: 'tools',
    data: { event: name, toolCallId: callId, name: calls.get(callId)?.name ?? 'unknown', ...fields },
  }
}
