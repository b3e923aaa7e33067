// The vocabulary of the journal: one closed union of events, each with a schema.
//
// A run is nothing but the list of its events. Everything a client sees, and
// everything a restart needs, is a fold of this list; so an event carries what
// any wire may want to say about it, and ids and times are decided here once
// and never again by a reader.

import { z } from 'zod'

export type RunStatus = 'queued' | 'running' | 'waiting_user' | 'succeeded' | 'failed' | 'canceled'

export const runStatuses = ['queued', 'running', 'waiting_user', 'succeeded', 'failed', 'canceled'] as const

const json = z.json()
const text = z.string()
const id = z.string().min(1)

const errorValue = z.object({
  code: z.string().min(1),
  message: text,
  retryable: z.boolean().optional(),
  details: z.record(z.string(), z.unknown()).optional(),
})

const usage = z.object({
  inputTokens: z.number().int().nonnegative().optional(),
  outputTokens: z.number().int().nonnegative().optional(),
  reasoningTokens: z.number().int().nonnegative().optional(),
})

/** How a tool call ended. `failed` is an answer that says no; `threw` is an exception. */
export const toolOutcomes = ['succeeded', 'failed', 'threw', 'denied', 'cancelled', 'unknown'] as const

/** What it means to run a tool a second time. */
export const toolEffects = ['read', 'idempotent', 'unsafe'] as const

const storedFile = z.object({ path: id, size: z.number().int().nonnegative() })

const jobSpec = z.object({
  source: z.enum(['installed', 'temp_upload']),
  mode: z.enum(['auto', 'interactive']),
  /** False: after `replyTimeoutMs` without a reply the agent goes on alone. */
  requireReply: z.boolean(),
  replyTimeoutMs: z.number().int().positive(),
  input: z.record(z.string(), json),
  parameter: z.record(z.string(), json),
  /** As they were asked for. */
  options: z.record(z.string(), json),
  /** The job waits for an upload until then. */
  uploadUntil: z.number().optional(),
  /** Names the request; equal requests have equal keys. Absent if the result may not be given to another request. */
  cacheKey: id.optional(),
})

const skillSpec = z.object({
  id,
  name: text,
  version: text.optional(),
  /** The instructions of SKILL.md; they stand in the prompt of every turn. */
  text,
  /** What the final answer must be; absent means any text. */
  outputSchema: z.record(z.string(), json).optional(),
  /** Further files of its package, which the model may read. */
  files: z.array(storedFile.extend({ sha256: id })).optional(),
})

/** Everything that is needed to execute the run; fixed at acceptance. */
export const runSpec = z.object({
  agentId: id,
  engine: id,
  /** `provider/model`, as resolved at acceptance. */
  model: id,
  temperature: z.number().optional(),
  maxTokens: z.number().int().positive().optional(),
  /** The caller's own context, already bounded; shown to the model as a second system message. */
  context: z.record(z.string(), z.unknown()).optional(),
  /** What the caller tells the model about how to answer, beside the agent's own instructions. */
  instructions: text.optional(),
  /** Names of the tools the run may use; absent means all that its agent allows. */
  tools: z.array(z.string()).optional(),
  onDisconnect: z.enum(['continue', 'cancel']).optional(),
  /** The named set that the settings above came from. */
  configName: id.optional(),
  /** Instead of the agent's own instructions. */
  systemPrompt: text.optional(),
  /** `shadow`: the second answer to a question. Its messages are stored as superseded until somebody makes them active. */
  variant: z.enum(['shadow']).optional(),
  /** Written by older versions for arms of a comparison; the vote itself now decides what is shown. */
  blind: z.boolean().optional(),
  /** When the client sent the question, by its own clock: how a second answer to the same question is recognised. */
  sentAt: z.number().optional(),
  /** The run that answers the same question, which the client sent twice to compare the answers. */
  secondOf: id.optional(),
  /** The answer that this run replaces when it succeeds; its own messages become active only then. */
  supersedes: z.array(id).optional(),
  /** What a job was asked to do. */
  job: jobSpec.optional(),
  /** The skill that a job runs; where it is uploaded, `run.prepared` brings it. */
  skill: skillSpec.optional(),
  /**
   * Where the run may work on files: a directory below the configured workspace, named from there (`.` is the whole of
   * it), so that the data folder can be moved. `ask`: only tools that read.
   */
  workspace: z.object({ dir: id, mode: z.enum(['edit', 'ask']) }).optional(),
  /** `refuse`: the wire cannot ask a person, so a call that needs consent is answered as not allowed. Absent: the run waits. */
  consent: z.enum(['refuse']).optional(),
})

/** What a person is asked. A confirmation belongs to a tool call; a question does not. */
const interactionKinds = ['confirmation', 'question', 'client_tool'] as const

const bodies = {
  'run.accepted': z.object({
    owner: id,
    /** The API family that accepted the run. */
    family: id,
    conversationId: id.nullable(),
    /** True where the conversation was made together with this run. */
    newConversation: z.boolean().optional(),
    sessionId: id.optional(),
    /** The user message of this run; null for runs without a conversation message. */
    userMessageId: id.nullable(),
    input: text,
    /** True if the model goes on from the tool results that the history ends with; `input` is empty. */
    continuesHistory: z.boolean().optional(),
    spec: runSpec,
  }),
  /** An upload brought what a run needs that was accepted before it could start. It may be claimed from here on. */
  'run.prepared': z.object({
    /** Instead of the input of `run.accepted`. */
    input: text,
    skill: skillSpec.optional(),
    files: z.array(storedFile),
    /** As in the job of `run.accepted`, with what was uploaded. */
    cacheKey: id.optional(),
    /** An equal request was answered before: this is its result, and no model is asked. */
    reused: z.object({ runId: id, output: text, artifacts: z.array(storedFile) }).optional(),
  }),
  'run.state': z.object({
    from: z.enum(runStatuses),
    to: z.enum(runStatuses),
    trigger: id,
    /** When a run is parked: how long it was at work since it became running. The times of the events may have stepped. */
    activeMs: z.number().nonnegative().optional(),
  }),
  /** The model is about to be asked. Names the message that its text will belong to. */
  'step.started': z.object({ step: z.number().int().positive(), messageId: id, model: id }),
  'text.delta': z.object({ messageId: id, text }),
  'reasoning.delta': z.object({ reasoningId: id, text }),
  'message.done': z.object({
    messageId: id,
    role: z.enum(['assistant', 'user', 'system', 'tool']),
    text,
    step: z.number().int().positive(),
    /** `superseded`: a restart said something else. `abandoned`: the run ended in mid-sentence. */
    state: z.enum(['active', 'superseded', 'abandoned']),
  }),
  /** The model's answer to one request is complete, with its tool calls. */
  'step.done': z.object({
    step: z.number().int().positive(),
    /** The message that the step's text and calls belong to; it is stored under this id, also without text. */
    messageId: id,
    finishReason: id,
    toolCalls: z.number().int().nonnegative(),
    usage: usage.optional(),
    durationMs: z.number().nonnegative(),
  }),
  'tool.called': z.object({
    callId: id,
    name: id,
    step: z.number().int().positive(),
    index: z.number().int().nonnegative(),
    input: json,
    /** A sentence for people: what this call is about to do. */
    note: text,
    effect: z.enum(toolEffects),
    /** Where the tool came from: `built-in`, or `mcp:` and the name of the server. The same name of another source is another tool. */
    source: id.optional(),
    /** Set where the model's arguments were not valid JSON: the raw text. */
    invalidInput: text.optional(),
  }),
  'tool.started': z.object({
    callId: id,
    /** The arguments that are really used: a person may have edited them. */
    input: json,
    /** Stays the same over retries of an idempotent call. */
    idempotencyKey: id,
  }),
  'tool.progress': z.object({ callId: id, message: text }),
  'tool.done': z.object({
    callId: id,
    /** The id of the message with role `tool` that holds the result. */
    messageId: id,
    outcome: z.enum(toolOutcomes),
    output: json.optional(),
    /** One line for people. */
    summary: text,
    error: errorValue.optional(),
    durationMs: z.number().nonnegative(),
    /** Length of the whole output as text; larger outputs are cut and stored beside the journal. */
    fullLength: z.number().int().nonnegative(),
    truncated: z.boolean(),
    outputRef: id.optional(),
    modified: z.boolean().optional(),
    paths: z.array(z.string()).optional(),
  }),
  'input.required': z.object({
    interactionId: id,
    /** 1, 2, 3… within the run. */
    number: z.number().int().positive(),
    kind: z.enum(interactionKinds),
    prompt: text,
    callId: id.optional(),
    /** `unknown`: the call may have happened already; confirming runs it again. */
    outcome: z.literal('unknown').optional(),
    input: json.optional(),
    /** For questions: choose_one, confirm, fill_fields, open_text, risk_ack. */
    style: id.optional(),
    options: z.array(json).optional(),
    fields: z.array(z.string()).optional(),
    deadlineAt: z.number().optional(),
    /** What happens at the deadline: `expire` closes the call, `auto_decide` lets the agent go on alone. */
    atDeadline: z.enum(['expire', 'auto_decide']).optional(),
  }),
  'input.resolved': z.object({
    interactionId: id,
    number: z.number().int().positive(),
    resolution: z.enum(['confirmed', 'rejected', 'replied', 'auto_decided', 'expired', 'closed']),
    by: id,
    /** The arguments to run with, where a person edited them while confirming. */
    input: json.optional(),
    response: json.optional(),
    reason: text.optional(),
  }),
  /** The final answer of a step is not what the run promises. The model is asked once more, with these errors. */
  'output.rejected': z.object({
    step: z.number().int().positive(),
    /** The message that holds the answer. */
    messageId: id,
    errors: z.array(text).min(1),
  }),
  'context.patch': z.object({
    layer: z.enum(['global', 'session', 'request']),
    patch: z.record(z.string(), json),
  }),
  diagnostic: z.object({
    code: id,
    message: text,
    details: z.record(z.string(), json).optional(),
  }),
  'run.ended': z.object({
    status: z.enum(['succeeded', 'failed', 'canceled']),
    error: errorValue.optional(),
    /** Absent on success if the answer is long (`outputCharsMax`): then it is the text of `messageId`, which is stored once. */
    output: text.optional(),
    messageId: id.optional(),
    by: id.optional(),
    reason: text.optional(),
  }),
} as const

export type EventType = keyof typeof bodies
export const eventTypes = Object.keys(bodies) as EventType[]
export const eventBodies: { readonly [T in EventType]: z.ZodType } = bodies

type Body<T extends EventType> = z.infer<(typeof bodies)[T]>

/** An event as it is proposed: not yet numbered. */
export type NewEvent = { [T in EventType]: { type: T; data: Body<T> } }[EventType]

/** One row of the journal. The run is known from where it was read. */
export type RunEvent = {
  [T in EventType]: { seq: number; at: number; attempt: number; type: T; data: Body<T> }
}[EventType]

export type EventOf<T extends EventType> = Extract<RunEvent, { type: T }>
export type EventData<T extends EventType> = EventOf<T>['data']
export type RunSpec = z.infer<typeof runSpec>
export type JobSpec = z.infer<typeof jobSpec>
export type SkillSpec = z.infer<typeof skillSpec>
export type ToolOutcome = (typeof toolOutcomes)[number]
export type ToolEffect = (typeof toolEffects)[number]
export type JsonValue = z.infer<typeof json>
export type Usage = z.infer<typeof usage>

/**
 * Barriers survive a power cut: the commit that holds one is synced to disk.
 * The rest survive a process crash and share commits.
 */
const deltas: ReadonlySet<EventType> = new Set<EventType>([
  'text.delta',
  'reasoning.delta',
  'tool.progress',
  'step.started',
  'diagnostic',
])

export function isBarrier(type: EventType): boolean {
  return !deltas.has(type)
}

export function isTerminal(status: RunStatus): boolean {
  return status === 'succeeded' || status === 'failed' || status === 'canceled'
}

/** What `run.ended` repeats of the final answer; a longer one is found in its message. */
export const outputCharsMax = 64 * 1024

/** One delta or one tool output; larger outputs are stored beside the journal. */
export const eventBytesMax = 1024 * 1024
