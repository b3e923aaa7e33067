// The native wire: agent.start, agent.delta, agent.message, tool.state,
// context.patch, agent.end, error, ping; each `data:` is `{event, data}`.
//
// Pure: ids and times come from the journal. Timelines use the same fold, so a stream and
// its timeline cannot differ. README.md beside this file has the mapping table.

import { jsonString } from '../../kit/json-string.ts'
import { isoTime } from '../../kit/clock.ts'
import { defined } from '../../kit/defined.ts'
import { wholeJson } from '../../kit/embedded-json.ts'
import { clientToolSource } from '../../journal/client-tool.ts'
import { type EventData, type EventOf, outputCharsMax, type RunEvent, type ToolOutcome } from '../../journal/event.ts'
import { addUsage, isReported, noUsage, usageOfStep, type UsageTotals } from '../../journal/usage.ts'
import { withCall, noCalls } from '../calls.ts'
import { type Dialect, emit, type Frame, pingTiming, type Projection, silent } from '../dialect.ts'
import { sseFrame, sseHeaders } from '../sse-encoding.ts'
import { shownConversationIdOrNull } from '../../kit/conversation-id.ts'

type ToolStatus = 'queued' | 'running' | 'awaiting_input' | 'succeeded' | 'failed' | 'cancelled'

type AgentCall = {
  readonly name: string
  readonly status: ToolStatus
  readonly input: unknown
  readonly confirmationId: string | undefined
  /** The client executes the call. */
  readonly byClient: boolean
}

export type AgentState = {
  readonly runId: string
  readonly calls: ReadonlyMap<string, AgentCall>
  /** The interactions that belong to no call and are not resolved. */
  readonly questions: readonly string[]
  /** The last message, if it is so long that `run.ended` does not repeat it. */
  readonly longMessage: { readonly id: string; readonly text: string } | undefined
  readonly usage: UsageTotals
  /** The sources of the messages that are not complete yet. */
  readonly sources: readonly EventData<'source.found'>[]
  /** The final answer is JSON, because the request has an output schema. */
  readonly isJson: boolean
}

const statusOfOutcome: Readonly<Record<ToolOutcome, ToolStatus>> = {
  succeeded: 'succeeded',
  failed: 'failed',
  threw: 'failed',
  denied: 'cancelled',
  cancelled: 'cancelled',
  // The call may or may not have happened. It is shown as failed, with the code tool_outcome_unknown.
  unknown: 'failed',
}

export const agentDialect: Dialect<AgentState> = {
  name: 'sse',
  headers: sseHeaders,

  open: ({ runId }) => ({
    runId,
    calls: noCalls,
    questions: [],
    longMessage: undefined,
    usage: noUsage,
    sources: [],
    isJson: false,
  }),

  step(state, event) {
    switch (event.type) {
      case 'run.accepted':
        return emit(
          { ...state, isJson: event.data.spec.outputSchema !== undefined },
          { name: 'agent.start', data: startOf(state, event) },
        )
      case 'context.patch':
        return emit(state, { name: 'context.patch', data: { layer: event.data.layer, patch: event.data.patch } })
      case 'text.delta':
        return emit(state, {
          name: 'agent.delta',
          data: { id: event.data.messageId, delta: event.data.text, role: 'assistant' },
        })
      case 'reasoning.delta':
        return emit(state, { name: 'agent.reasoning', data: { id: event.data.reasoningId, delta: event.data.text } })
      case 'source.found': {
        const { sourceId: sourceOf, ...source } = event.data
        return emit(
          { ...state, sources: [...state.sources, event.data] },
          { name: 'agent.source', data: { id: sourceOf, ...source } },
        )
      }
      case 'message.done':
        return messageFrames(state, event)
      case 'tool.called':
        return toolFrames(state, event, event.data.callId, {
          name: event.data.name,
          status: 'queued',
          input: event.data.input,
          message: event.data.note,
          byClient: event.data.source === clientToolSource,
        })
      case 'input.required':
        return awaitingFrames(state, event)
      case 'tool.started':
        return toolFrames(state, event, event.data.callId, { status: 'running', input: event.data.input })
      case 'tool.progress':
        return toolFrames(state, event, event.data.callId, { status: 'running', message: event.data.message })
      case 'tool.done':
        return toolFrames(state, event, event.data.callId, {
          status: statusOfOutcome[event.data.outcome],
          message: event.data.summary,
          ...outputOf(event.data),
          ...(event.data.files === undefined ? {} : { files: event.data.files }),
          ...(event.data.error === undefined ? {} : { error: event.data.error }),
        })
      case 'input.resolved': {
        // The end of a question about a call is the next state of the call.
        const { interactionId } = event.data
        if (!state.questions.includes(interactionId)) return silent(state)
        const questions = state.questions.filter((id) => id !== interactionId)
        return emit({ ...state, questions }, { name: 'input.resolved', data: event.data })
      }
      case 'step.done':
      case 'answer.discarded':
      case 'context.summarised':
        return silent({ ...state, usage: addUsage(state.usage, usageOfStep(event.data)) })
      case 'run.ended':
        return emit(state, ...endFrames(state, event))

      // No frame on this wire; a timeline shows them under their own names. Listed without
      // a default, so that a new event type is a compile error here.
      case 'run.prepared':
      case 'run.state':
      case 'step.started':
      case 'output.rejected':
      case 'context.cut':
      case 'engine.handle':
      case 'diagnostic':
        return silent(state)
    }
  },

  encode(frame, address) {
    return sseFrame(address, frame.name, JSON.stringify({ event: frame.name, data: frame.data }))
  },

  encodeDelta(_state, { seq, messageId, textJson }) {
    return `id: ${seq}\nevent: agent.delta\ndata: {"event":"agent.delta","data":{"id":${jsonString(messageId)},"delta":${textJson},"role":"assistant"}}\n\n`
  },

  keepAlive(nowMs) {
    return sseFrame(null, 'ping', JSON.stringify({ event: 'ping', data: { at: isoTime(nowMs) } }))
  },
  keepAliveTiming: pingTiming,

  atDecision: 'holds',
}

function startOf(state: AgentState, event: EventOf<'run.accepted'>): object {
  const { sessionId, input, parts, spec } = event.data
  const conversationId = shownConversationIdOrNull(event.data.conversationId)
  return {
    runId: state.runId,
    createdAt: isoTime(event.at),
    createdAtMs: event.at,
    agentId: spec.agentId,
    input,
    ...(parts === undefined ? {} : { parts }),
    ...(conversationId === null ? {} : { conversationId }),
    context: {
      session: {
        ...(sessionId === undefined ? {} : { sessionId }),
        ...(conversationId === null ? {} : { conversationId }),
      },
      request: {
        requestId: state.runId,
        ...(spec.context === undefined ? {} : { metadata: spec.context }),
      },
    },
    metadata: { engine: spec.engine, model: spec.model },
  }
}

/** An unfinished message of a failed or cancelled run is not announced as a message; its deltas stay in the timeline. */
function messageFrames(state: AgentState, event: EventOf<'message.done'>): Projection<AgentState> {
  const { messageId, role, text, state: messageState } = event.data
  if (messageState === 'abandoned') return silent(state)
  const longMessage = text.length > outputCharsMax ? { id: messageId, text } : undefined
  const references = state.sources.filter((source) => source.messageId === messageId).map(referenceOf)
  const next = { ...state, longMessage, sources: [] }
  return emit(next, {
    name: 'agent.message',
    data: {
      id: messageId,
      role,
      content: text,
      createdAt: isoTime(event.at),
      createdAtMs: event.at,
      references,
      metadata: { runId: state.runId, ...(messageState === 'superseded' ? { state: 'superseded' } : {}) },
    },
  })
}

function referenceOf({ messageId: _message, sourceId, ...source }: EventData<'source.found'>): object {
  return { kind: 'source', id: sourceId, ...source }
}

type Change = {
  name?: string
  status: ToolStatus
  input?: unknown
  message?: string
  output?: unknown
  files?: EventData<'tool.done'>['files']
  error?: unknown
  confirmationId?: string
  interactionId?: string
  byClient?: boolean
}

function toolFrames(state: AgentState, event: RunEvent, callId: string, change: Change): Projection<AgentState> {
  const before = state.calls.get(callId)
  const call: AgentCall = {
    name: change.name ?? before?.name ?? 'unknown',
    status: change.status,
    input: change.input === undefined ? before?.input : change.input,
    confirmationId: change.confirmationId ?? before?.confirmationId,
    byClient: change.byClient ?? before?.byClient ?? false,
  }
  return emit(withCall(state, callId, call), toolFrame(callId, call, before?.status, change, event.at))
}

function toolFrame(
  callId: string,
  call: AgentCall,
  previousStatus: ToolStatus | undefined,
  change: Change,
  at: number,
): Frame {
  return {
    name: 'tool.state',
    data: {
      toolId: callId,
      name: call.name,
      status: call.status,
      at: isoTime(at),
      atMs: at,
      ...defined({
        previousStatus,
        source: call.byClient ? clientToolSource : undefined,
        confirmationId: call.confirmationId,
        interactionId: change.interactionId,
        message: change.message,
        input: call.input,
        output: change.output,
        files: change.files,
        error: change.error,
      }),
    },
  }
}

/**
 * A call that needs a person goes queued → running → awaiting_input: the agent starts it and then asks. The journal
 * has one event for both steps, so this event produces two frames.
 */
function awaitingFrames(state: AgentState, event: EventOf<'input.required'>): Projection<AgentState> {
  const { callId, interactionId, prompt, outcome, input } = event.data
  if (callId === undefined) {
    const questions = [...state.questions, interactionId]
    return emit(
      { ...state, questions },
      {
        name: 'input.required',
        data: {
          interactionId,
          kind: event.data.style ?? event.data.kind,
          prompt,
          options: event.data.options ?? [],
          fields: event.data.fields ?? [],
          ...(event.data.deadlineAt === undefined ? {} : { expiresAt: isoTime(event.data.deadlineAt) }),
          at: isoTime(event.at),
        },
      },
    )
  }
  const before = state.calls.get(callId)
  const frames: Frame[] = []
  let current = state
  if (before?.status === 'queued') {
    const taken = toolFrames(current, event, callId, { status: 'running' })
    current = taken.state
    frames.push(...taken.frames)
  }
  const asked = toolFrames(current, event, callId, {
    status: 'awaiting_input',
    ...(event.data.kind === 'client_tool' ? { interactionId, byClient: true } : { confirmationId: interactionId }),
    message: prompt,
    ...(input === undefined ? {} : { input }),
    ...(outcome === undefined ? {} : { error: { code: 'tool_outcome_unknown', message: prompt } }),
  })
  frames.push(...asked.frames)
  return { state: asked.state, frames }
}

function outputOf(done: EventData<'tool.done'>): { output?: unknown } {
  if (done.output === undefined) return {}
  if (!done.truncated) return { output: done.output }
  // The full output is at /v1/agent/runs/{runId}/outputs/{ref}.
  return {
    output: {
      truncated: true,
      fullLength: done.fullLength,
      preview: done.output,
      ...(done.outputRef === undefined ? {} : { ref: done.outputRef }),
    },
  }
}

function endFrames(state: AgentState, event: EventOf<'run.ended'>): Frame[] {
  const { status, error, reason, messageId } = event.data
  const { longMessage } = state
  const repeated = status === 'succeeded' && longMessage?.id === messageId ? longMessage?.text : undefined
  const output = event.data.output ?? repeated
  const end: Frame = {
    name: 'agent.end',
    data: {
      runId: state.runId,
      status: status === 'canceled' ? 'cancelled' : status,
      finishedAt: isoTime(event.at),
      finishedAtMs: event.at,
      ...defined({
        output,
        data: state.isJson && status === 'succeeded' ? wholeJson(output ?? '')?.value : undefined,
        usage: isReported(state.usage) ? state.usage : undefined,
        error,
        reason,
      }),
    },
  }
  return status === 'failed' && error !== undefined ? [{ name: 'error', data: error }, end] : [end]
}
