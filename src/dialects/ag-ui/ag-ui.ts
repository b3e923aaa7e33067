// The wire of `format=ag-ui`: AG-UI, one JSON event per SSE frame. README.md beside this file has
// the mapping table and the reasons.
//
// What must stay true: the client checks the order of events and gives up on a violation. So the
// first event of a stream is RUN_STARTED, everything that was opened is closed before RUN_FINISHED
// and RUN_ERROR, nothing follows them, and a call is announced before any other event about it.

import { jsonString } from '../../kit/json-string.ts'
import { type EventData, outputCharsMax, type RunSpec } from '../../journal/event.ts'
import { shownConversationIdOrNull } from '../../kit/conversation-id.ts'
import { type Dialect, emit, endsStream, type Frame, inSequence, pingTiming, silent } from '../dialect.ts'
import { sseFrame, sseHeaders } from '../sse-encoding.ts'
import { askedFrames, calledFrames, resolvedFrames, resultFrames, startedFrames } from './ag-ui-calls.ts'
import { addTokens, endFrames, parkedFrames } from './ag-ui-endings.ts'
import { agUiFrame, customFrame } from './ag-ui-frame.ts'
import {
  type AgUiState,
  type AgUiProjection,
  reasoningFrames,
  startRun,
  closeStep,
  stepFrames,
  emitInRun,
  closeTextMessage,
  textFrames,
} from './ag-ui-state.ts'
import { patchShared, sharedStateOf } from './shared-state.ts'

export type AgUiDialectOptions = {
  /**
   * The request that the stream answers, if it is not the one that started the run: it brought decisions or the results of
   * its own tools. The client has these results, so they are not sent back.
   */
  readonly continuedBy?: { readonly runId: string; readonly protocolVersion: string | undefined }
  /** For a client that knows nothing yet: the messages up to the question of the run, sent after RUN_STARTED. */
  readonly history?: readonly object[]
  /** A replay from the beginning does not end at decisions up to this event. */
  readonly decidedUpTo?: number
}

export function agUiDialect(options: AgUiDialectOptions = {}): Dialect<AgUiState> {
  const { continuedBy, history, decidedUpTo = 0 } = options
  const ending = { atDecision: 'parks', decidedUpTo } as const
  return {
    name: 'ag-ui',
    bytesKey: JSON.stringify([continuedBy?.runId, continuedBy?.protocolVersion, history?.length, history?.at(-1)]),
    headers: sseHeaders,

    open: ({ runId }) => ({
      threadId: runId,
      runId: continuedBy?.runId ?? runId,
      modern: true,
      started: false,
      step: null,
      stepMessageId: undefined,
      text: null,
      reasoning: null,
      calls: new Map(),
      awaited: new Map(),
      shared: undefined,
      model: '',
      usage: new Map(),
      isJson: false,
      longMessage: undefined,
    }),

    step(state, event) {
      switch (event.type) {
        case 'run.accepted':
          return inSequence(acceptedState(state, event.data, options), startRun, (next) => historyFrames(next, history))
        case 'context.patch':
          return contextFrames(state, event.data)
        case 'step.started':
          return stepFrames(state, event.data)
        case 'text.delta':
          return textFrames(state, event.data)
        case 'reasoning.delta':
          return reasoningFrames(state, event.data)
        case 'message.done':
          return messageFrames(state, event.data)
        case 'tool.called':
          return calledFrames(state, event.data)
        case 'step.done':
          return inSequence(addTokens(state, state.model, event.data), closeStep)
        case 'answer.discarded':
          return silent(addTokens(state, event.data.model, event.data))
        case 'input.required':
          return askedFrames(state, event.data)
        case 'input.resolved':
          return resolvedFrames(state, event.data)
        case 'tool.started':
          return startedFrames(state, event)
        case 'tool.progress': {
          const { callId: toolCallId, message } = event.data
          return emitInRun(state, customFrame('tool.progress', { toolCallId, message }))
        }
        case 'tool.done':
          return resultFrames(state, event.data, continuedBy !== undefined)
        case 'output.rejected': {
          const { messageId, errors } = event.data
          return emitInRun(state, customFrame('output.rejected', { messageId, errors }))
        }
        case 'diagnostic':
          return emitInRun(state, customFrame('diagnostic', event.data))
        case 'source.found':
          return emitInRun(state, customFrame('source.found', event.data))
        case 'context.cut':
          return emitInRun(state, customFrame('context.cut', event.data))
        case 'context.summarised': {
          const { summaryMessageId, throughMessageId, messages, tokens } = event.data
          return emitInRun(
            addTokens(state, event.data.model, event.data),
            customFrame('context.summarised', { summaryMessageId, throughMessageId, messages, tokens }),
          )
        }
        case 'run.state':
          return endsStream(ending, event) ? parkedFrames(state, event.at) : silent(state)
        case 'run.ended':
          return endFrames(state, event)

        // No event on this wire. Listed without a default, so that a new event type is a compile error here.
        case 'run.prepared':
        case 'engine.handle':
          return silent(state)
      }
    },

    encode: ({ data }, address) => sseFrame(address, null, JSON.stringify(data)),

    encodeDelta(state, { seq, messageId, textJson }) {
      if (!state.started || state.text !== messageId || state.reasoning !== null || textJson === '""') return null
      return `id: ${seq}\ndata: {"type":"TEXT_MESSAGE_CONTENT","messageId":${jsonString(messageId)},"delta":${textJson}}\n\n`
    },

    keepAlive: () => ': c\n\n',
    keepAliveTiming: pingTiming,

    ...ending,
  }
}

function acceptedState(
  state: AgUiState,
  { conversationId, spec }: EventData<'run.accepted'>,
  { continuedBy }: AgUiDialectOptions,
): AgUiState {
  const { agUi } = spec
  return {
    ...state,
    threadId: agUi?.threadId ?? shownConversationIdOrNull(conversationId) ?? state.threadId,
    runId: continuedBy?.runId ?? agUi?.runId ?? state.runId,
    modern: isModern(continuedBy ?? agUi),
    shared: sharedStateOf(agUi?.state),
    isJson: spec.outputSchema !== undefined,
  }
}

/** A client before 1.0 does not name its version. A run of another API has no request of this wire. */
function isModern(request: Pick<NonNullable<RunSpec['agUi']>, 'protocolVersion'> | undefined): boolean {
  return request === undefined || request.protocolVersion !== undefined
}

function historyFrames(state: AgUiState, history: readonly object[] | undefined): AgUiProjection {
  if (history === undefined) return silent(state)
  const messages = agUiFrame('MESSAGES_SNAPSHOT', { messages: history })
  if (state.shared === undefined) return emit(state, messages)
  return emit(state, agUiFrame('STATE_SNAPSHOT', { snapshot: state.shared }), messages)
}

function contextFrames(state: AgUiState, event: EventData<'context.patch'>): AgUiProjection {
  const frames: Frame[] = []
  const { conversationId } = event.patch
  if (event.layer === 'session' && typeof conversationId === 'string' && conversationId !== '') {
    frames.push(customFrame('conversation.created', { conversationId }))
  }
  const { shared, frame } = patchShared(state.shared, event)
  if (frame !== null) frames.push(frame)
  return frames.length === 0 ? silent(state) : emitInRun({ ...state, shared }, ...frames)
}

function messageFrames(
  state: AgUiState,
  { messageId, text, state: messageState }: EventData<'message.done'>,
): AgUiProjection {
  const longMessage = text.length > outputCharsMax ? { id: messageId, text } : undefined
  const known = longMessage === state.longMessage ? state : { ...state, longMessage }
  return inSequence(
    known,
    (next) => (next.text === messageId ? closeTextMessage(next) : silent(next)),
    (next) =>
      messageState === 'superseded' ? emitInRun(next, customFrame('message.superseded', { messageId })) : silent(next),
  )
}
