// The journal of a run: one list of events, numbered 1, 2, 3… without a gap. Everything that a wire shows
// is made from this list. Plain types, with no dependency; a test of the server compares them with the
// schemas that it checks its events against.

import type { JsonValue } from './json.ts'

export type RunStatus = 'queued' | 'running' | 'waiting_user' | 'succeeded' | 'failed' | 'canceled'

/** How a tool call ended. `failed`: the tool reported a failure. `threw`: an exception. `unknown`: it may have happened. */
export type ToolOutcome = 'succeeded' | 'failed' | 'threw' | 'denied' | 'cancelled' | 'unknown'

/** Whether a tool may run a second time. */
export type ToolEffect = 'read' | 'idempotent' | 'unsafe'

export type ErrorValue = {
  /** Stable; the table is docs/errors.md of the server. */
  code: string
  message: string
  retryable?: boolean
  details?: Record<string, unknown>
}

/** A field is absent if the provider did not report it. */
export type Usage = {
  /** Includes `cachedTokens` and `cacheWriteTokens`. */
  inputTokens?: number
  cachedTokens?: number
  cacheWriteTokens?: number
  /** Includes `reasoningTokens`. */
  outputTokens?: number
  reasoningTokens?: number
}

/** Sums over steps. */
export type UsageTotals = {
  steps: number
  inputTokens: number
  cachedTokens: number
  cacheWriteTokens: number
  outputTokens: number
  reasoningTokens: number
  /** In millionths of a US dollar, over the steps whose cost is known; null if there is none. */
  costMicroUsd: number | null
  /** Steps whose cost is not known. */
  unpricedSteps: number
}

/** A stored file; its bytes are at GET /v1/files/{fileId}. `size` is in bytes. */
export type FileReference = { fileId: string; mediaType: string; name?: string; size: number }

/** A part of a message. */
export type Part = { type: 'text'; text: string } | ({ type: 'file' } & FileReference)

/** A file of a job or of a skill. `size` is in bytes. */
export type StoredFile = { path: string; size: number }

/** What a job was asked to do. */
export type JobSpec = {
  source: 'installed' | 'temp_upload'
  mode: 'auto' | 'interactive'
  /** False: after `replyTimeoutMs` without a reply the agent continues without one. */
  requireReply: boolean
  replyTimeoutMs: number
  input: Record<string, JsonValue>
  parameter: Record<string, JsonValue>
  /** As the caller sent them. */
  options: Record<string, JsonValue>
  /** The job waits for an upload until then (epoch ms). */
  uploadUntil?: number
  /** Equal requests have equal keys. Absent if the result may not be given to another request. */
  cacheKey?: string
}

export type SkillSpec = {
  id: string
  name: string
  version?: string
  /** The instructions of SKILL.md. */
  text: string
  /** JSON Schema of the final answer; absent: any text. */
  outputSchema?: Record<string, JsonValue>
  /** Further files of its package, which the model may read. */
  files?: (StoredFile & { sha256: string })[]
}

/** What a one-shot run was asked to do. */
export type OneShotSpec = {
  /** The operation of the agent; null if the agent has only one. */
  operation: string | null
  promptVersion: string
  language: string
  /** JSON Schema of the answer; absent: any text. */
  outputSchema?: Record<string, JsonValue>
  /** What the result is about. `mustExist`: if it is deleted before the end, no result is stored. */
  scope: { type: 'conversation' | 'contact' | 'user' | 'global'; id: string | null; mustExist: boolean }
  /** A hash over the data that the run reads. */
  sourceHash: string
  /** The snapshot that the run writes when it succeeds; null if its result is not stored. `ttlMs` null: it never expires. */
  snapshot: { id: string; ttlMs: number | null } | null
  /** The records that the answer may cite; absent if citations are not checked. */
  citable?: { source: string; type: 'conversation' | 'event' | 'fact' | 'todo' | 'message' | 'contact' }[]
  /** True if every statement of the answer has to cite a record. */
  citationsRequired: boolean
  /** Fields of the result that code has computed; they are added to the answer of the model. */
  fields?: Record<string, JsonValue>
  /** The answer that code alone can give; the demo model answers with it. */
  computedAnswer?: Record<string, JsonValue>
  /** The conversation whose title and summary become those of the answer. */
  describes?: string
}

/** Everything that is needed to execute the run; fixed at acceptance. */
export type RunSpec = {
  agentId: string
  engine: string
  /** `provider/model`. */
  model: string
  /** Asked in this order if the model before cannot answer. */
  fallbackModels?: string[]
  temperature?: number
  maxTokens?: number
  sampling?: {
    topP?: number
    stop?: string[]
    seed?: number
    presencePenalty?: number
    frequencyPenalty?: number
  }
  /** The tool that the first step has to call. */
  toolChoice?: 'required' | { tool: string }
  /** Passed to the provider by name, for example `{ anthropic: { thinking: … } }`. */
  providerOptions?: Record<string, Record<string, JsonValue>>
  /** Tools that the provider runs itself while it answers, for example `web_search`. */
  providerTools?: { name: string; options?: Record<string, Record<string, JsonValue>> }[]
  /** The context that the caller sent. */
  context?: Record<string, unknown>
  /** The caller's instructions to the model. */
  instructions?: string
  /** Names of the tools that the run may use; absent: all that its agent allows. */
  tools?: string[]
  /** Tools of the caller, which the client executes. */
  clientTools?: { name: string; description?: string; inputSchema: Record<string, JsonValue>; strict?: boolean }[]
  onDisconnect?: 'continue' | 'cancel'
  /** The named set that the settings above came from. */
  configName?: string
  /** Replaces the instructions of the agent. */
  systemPrompt?: string
  /** The JSON Schema of the final answer of a chat; absent: any text. */
  outputSchema?: Record<string, JsonValue>
  /** `shadow`: the second answer to a question. Its messages are superseded until the vote makes them active. */
  variant?: 'shadow'
  /** Written by older versions for arms of a comparison. */
  blind?: boolean
  /** When the client sent the question, by its own clock (epoch ms). */
  sentAt?: number
  /** The run that answers the same question, if the client sent it twice to compare the answers. */
  secondOf?: string
  /** The messages that this run replaces when it succeeds. */
  supersedes?: string[]
  job?: JobSpec
  /** The skill that a job runs. If it is uploaded, `run.prepared` brings it. */
  skill?: SkillSpec
  oneShot?: OneShotSpec
  /** The directory that the run may work in, relative to the configured workspace. `ask`: only tools that read. */
  workspace?: { dir: string; mode: 'edit' | 'ask' }
  /** `refuse`: a call that needs consent is answered as not allowed. Absent: the run waits for a person. */
  consent?: 'refuse'
  /** The request of an AG-UI client: its own names for the conversation and the run, and the state that it shares. */
  agUi?: { threadId: string; runId: string; protocolVersion?: string; state?: JsonValue }
}

/** The `data` of each event, by its `type`. */
export type EventBodies = {
  'run.accepted': {
    owner: string
    /** The API family that accepted the run. */
    family: string
    conversationId: string | null
    /** True if the conversation was created together with this run. */
    newConversation?: boolean
    sessionId?: string
    /** The user message of this run; null for runs without one. */
    userMessageId: string | null
    /** The text; a file is a short name in brackets. */
    input: string
    /** Present if the input has a part that is not text. */
    parts?: Part[]
    /** The trace that the run belongs to, as a `traceparent` header has it. */
    trace?: { traceparent: string; parentId?: string }
    /** True if the model continues from the tool results at the end of the history; then `input` is empty. */
    continuesHistory?: boolean
    /** The stored earlier messages of a chat without a conversation; absent if there are none. */
    historyRef?: string
    /** Fields of the request that its own API shows again, for example `metadata`. */
    echo?: Record<string, JsonValue>
    spec: RunSpec
  }
  /** The upload that the run was waiting for has arrived. The run can start now. */
  'run.prepared': {
    /** Replaces the input of `run.accepted`. */
    input: string
    skill?: SkillSpec
    files: StoredFile[]
    cacheKey?: string
    /** The result of an equal earlier request; no model is asked. */
    reused?: { runId: string; output: string; artifacts: StoredFile[] }
  }
  'run.state': {
    from: RunStatus
    to: RunStatus
    trigger: string
    /** When a run is parked: how long it worked since it became running. */
    activeMs?: number
    /** When a run is parked: it waits for the result of a tool that the client executes. */
    awaitsClient?: true
  }
  /** The model is about to be asked. `messageId` is the message that its text will belong to. */
  'step.started': { step: number; messageId: string; model: string }
  'text.delta': { messageId: string; text: string }
  'reasoning.delta': { reasoningId: string; text: string }
  /** A page or a document that the answer is based on, by the provider's account. */
  'source.found': {
    messageId: string
    sourceId: string
    url?: string
    title?: string
    mediaType?: string
    fileId?: string
  }
  'message.done': {
    messageId: string
    role: 'assistant' | 'user' | 'system' | 'tool'
    text: string
    step: number
    /** `superseded`: after a restart the model said something else. `abandoned`: the run ended in mid-sentence. */
    state: 'active' | 'superseded' | 'abandoned'
  }
  /** The answer of the model to one request is complete, with its tool calls. */
  'step.done': {
    step: number
    messageId: string
    finishReason: string
    /** How many. */
    toolCalls: number
    usage?: Usage
    /** In millionths of a US dollar; absent if the price of the model is not known. */
    costMicroUsd?: number
    durationMs: number
    /** What the provider needs back with this step, for example signed reasoning. No wire, timeline or trace shows it. */
    provider?: { name: string; model: string; state?: JsonValue; stateRef?: string }
  }
  /** The provider reported tokens for an answer that is not used: filtered, failed, or stopped with the run. */
  'answer.discarded': {
    step: number
    /** `provider/model`. */
    model: string
    usage: Usage
    costMicroUsd?: number
  }
  'tool.called': {
    callId: string
    name: string
    step: number
    index: number
    input: JsonValue
    /** A sentence for people: what this call is about to do. */
    note: string
    effect: ToolEffect
    /** `built-in`, `mcp:` and the name of the server, or `provider:` and the name of the provider that runs it itself. */
    source?: string
    /** The raw text, if the arguments of the model were not valid JSON. */
    invalidInput?: string
  }
  'tool.started': {
    callId: string
    /** The arguments that are really used: a person may have edited them. */
    input: JsonValue
    /** Stays the same over retries of an idempotent call. */
    idempotencyKey: string
  }
  'tool.progress': { callId: string; message: string }
  'tool.done': {
    callId: string
    /** The message with role `tool` that holds the result. */
    messageId: string
    outcome: ToolOutcome
    output?: JsonValue
    /** One line for people. */
    summary: string
    error?: ErrorValue
    durationMs: number
    /** Length of the whole output as text. */
    fullLength: number
    /** True if `output` is cut; the whole is stored under `outputRef`. */
    truncated: boolean
    outputRef?: string
    modified?: boolean
    paths?: string[]
    /** The images and other files of the result. */
    files?: FileReference[]
  }
  'input.required': {
    interactionId: string
    /** The name that a turn engine gave to what it asks. */
    key?: string
    /** 1, 2, 3… within the run. */
    number: number
    kind: 'confirmation' | 'question' | 'client_tool'
    prompt: string
    callId?: string
    /** `unknown`: the call may have happened already; confirming runs it again. */
    outcome?: 'unknown'
    input?: JsonValue
    /** For questions: choose_one, confirm, fill_fields, open_text, risk_ack. */
    style?: string
    options?: JsonValue[]
    fields?: string[]
    /** Epoch ms. */
    deadlineAt?: number
    /** `expire`: the call is closed. `auto_decide`: the agent goes on alone. */
    atDeadline?: 'expire' | 'auto_decide'
  }
  'input.resolved': {
    interactionId: string
    number: number
    resolution: 'confirmed' | 'rejected' | 'replied' | 'auto_decided' | 'expired' | 'closed'
    by: string
    /** The arguments to run with, if a person edited them while confirming. */
    input?: JsonValue
    response?: JsonValue
    reason?: string
  }
  /** The final answer does not fit the output schema of the run. The model is asked once more, with these errors. */
  'output.rejected': { step: number; messageId: string; errors: string[] }
  /** What a turn engine needs to find its remote turn again. No wire shows it. */
  'engine.handle': { engine: string; handle: JsonValue }
  /** The model is no longer given older messages. `run_steps`: the older steps of this run, which only this run forgets. */
  'context.cut': {
    strategy: 'sliding_window' | 'run_steps'
    /** The first message that this cut leaves out; absent if it is not known. */
    fromMessageId?: string
    /** The last message that is left out, also by earlier cuts. */
    throughMessageId: string
    /** The first message that the model is still given. */
    keptFromMessageId: string
    /** The summary that the model is still given. */
    summaryMessageId?: string
    messages: number
    /** An estimate. */
    tokens: number
  }
  /** A model wrote a summary that replaces older messages in later requests. */
  'context.summarised': {
    summaryMessageId: string
    fromMessageId?: string
    throughMessageId: string
    keptFromMessageId: string
    messages: number
    /** An estimate. */
    tokens: number
    text: string
    /** `provider/model` that wrote it. */
    model: string
    usage?: Usage
    costMicroUsd?: number
    durationMs: number
  }
  'context.patch': { layer: 'global' | 'session' | 'request'; patch: Record<string, JsonValue> }
  diagnostic: { code: string; message: string; details?: Record<string, JsonValue> }
  /** The last event of every run. */
  'run.ended': {
    status: 'succeeded' | 'failed' | 'canceled'
    error?: ErrorValue
    /** Absent on success if the answer is long: then it is the text of `messageId`. */
    output?: string
    messageId?: string
    by?: string
    reason?: string
  }
}

export type EventType = keyof EventBodies

/** One event of the journal. `at` is in epoch ms; `attempt` grows each time the run is taken up. */
export type RunEvent = {
  [Type in EventType]: { seq: number; at: number; attempt: number; type: Type; data: EventBodies[Type] }
}[EventType]

export type EventOf<Type extends EventType> = Extract<RunEvent, { type: Type }>
