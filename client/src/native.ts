// The native wire (`format=sse`): the `data` line of each SSE message is `{event, data}`, and `event` is also
// the name of the SSE message. The `id` of a message is a cursor for `Last-Event-ID`.

import type { ErrorValue, EventBodies, FileReference, Part, UsageTotals } from './journal.ts'
import type { JsonValue } from './json.ts'

export type NativeToolStatus = 'queued' | 'running' | 'awaiting_input' | 'succeeded' | 'failed' | 'cancelled'

/** The output of a tool that was too long for the journal. The whole is at `/v1/agent/runs/{runId}/outputs/{ref}`. */
export type TruncatedOutput = { truncated: true; fullLength: number; preview: JsonValue; ref?: string }

/** The `data` of each frame, by its `event`. */
export type NativeFrameData = {
  'agent.start': {
    runId: string
    createdAt: string
    createdAtMs: number
    agentId: string
    input: string
    /** Present if the input has files. */
    parts?: Part[]
    conversationId?: string
    context: {
      session: { sessionId?: string; conversationId?: string }
      request: { requestId: string; metadata?: Record<string, unknown> }
    }
    metadata: { engine: string; model: string }
  }
  'agent.delta': { id: string; delta: string; role: 'assistant' }
  'agent.reasoning': { id: string; delta: string }
  /** A page or a document that the answer is based on. */
  'agent.source': {
    id: string
    /** The message whose text is based on it. */
    messageId: string
    url?: string
    title?: string
    mediaType?: string
    fileId?: string
  }
  'agent.message': {
    /** The id that its deltas had. */
    id: string
    role: 'assistant' | 'user' | 'system' | 'tool'
    content: string
    createdAt: string
    createdAtMs: number
    /** The sources of this message. */
    references: { kind: 'source'; id: string; url?: string; title?: string; mediaType?: string; fileId?: string }[]
    /** `superseded`: a restarted model said something else; show the message as struck out, or drop it. */
    metadata: { runId: string; state?: 'superseded' }
  }
  'tool.state': {
    /** The id of the call. */
    toolId: string
    name: string
    status: NativeToolStatus
    /** Absent in the first frame of a call. */
    previousStatus?: NativeToolStatus
    at: string
    atMs: number
    /** Present if your client executes the call. */
    source?: 'client'
    /** While the call waits for its result from your client. */
    interactionId?: string
    /** What to confirm or reject, from the first question on. */
    confirmationId?: string
    /** A sentence for people. */
    message?: string
    input?: JsonValue
    output?: JsonValue | TruncatedOutput
    /** The images and other files of the result. */
    files?: FileReference[]
    error?: ErrorValue
  }
  /** A question that belongs to no tool call. */
  'input.required': {
    interactionId: string
    kind: string
    prompt: string
    options: JsonValue[]
    fields: string[]
    expiresAt?: string
    at: string
  }
  /** The end of such a question: answered, decided without an answer, expired or closed. */
  'input.resolved': EventBodies['input.resolved']
  'context.patch': { layer: 'global' | 'session' | 'request'; patch: Record<string, JsonValue> }
  /** Comes before the `agent.end` of a failed run. */
  error: ErrorValue
  /** The last frame of every run. */
  'agent.end': {
    runId: string
    status: 'succeeded' | 'failed' | 'cancelled'
    finishedAt: string
    finishedAtMs: number
    output?: string
    /** The final answer as a value, if the request had an output schema and the run succeeded. */
    data?: unknown
    /** The token counts and the cost of all steps; absent if the provider reported none. */
    usage?: UsageTotals
    error?: ErrorValue
    reason?: string
  }
  /** Keeps an idle connection alive; it has no `id`. */
  ping: { at: string }
}

export type NativeFrameName = keyof NativeFrameData

export type NativeFrame = {
  [Name in NativeFrameName]: { event: Name; data: NativeFrameData[Name] }
}[NativeFrameName]

/** Events of the journal that have no frame on this wire; a timeline shows them under their own names. */
type TimelineEvent =
  | 'run.prepared'
  | 'run.state'
  | 'step.started'
  | 'step.done'
  | 'answer.discarded'
  | 'message.done'
  | 'output.rejected'
  | 'context.cut'
  | 'context.summarised'
  | 'diagnostic'

type TimelinePayloads = Omit<NativeFrameData, 'ping'> & Pick<EventBodies, TimelineEvent>

/**
 * One entry of the timeline of a run. `seq` counts the entries; `id` is the cursor of the frame. While a comparison waits
 * for its vote, the entries of its runs lack what would tell the model: `usage` and `durationMs` of `step.done`, say.
 */
export type TimelineEntry = {
  [Name in keyof TimelinePayloads]: {
    seq: number
    id: string
    event: Name
    at: string
    atMs: number
    payload: TimelinePayloads[Name]
  }
}[keyof TimelinePayloads]
