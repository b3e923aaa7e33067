// The events of the journal: one closed union, each with a schema.
//
// A run is the list of its events. Everything a client sees and everything a restart
// needs is a fold of this list. So an event must carry all that any dialect needs, and
// its ids and times are set once, by the writer, and never by a reader.

import { z } from 'zod'
import { clientTool } from './client-tool.ts'
import { json } from './json-value.ts'
import { fileReference, part } from './part.ts'
import { providerOptions } from './provider-options.ts'
import { sampling, toolChoice } from './sampling.ts'
import { storedProviderTools } from './provider-tools.ts'

export type RunStatus = 'queued' | 'running' | 'waiting_user' | 'succeeded' | 'failed' | 'canceled'

export const runStatuses = ['queued', 'running', 'waiting_user', 'succeeded', 'failed', 'canceled'] as const

const text = z.string()
const id = z.string().min(1)

const errorValue = z.object({
  code: z.string().min(1),
  message: text,
  retryable: z.boolean().optional(),
  details: z.record(z.string(), z.unknown()).optional(),
})

/** Absent means that the provider did not report it. */
export const reportedUsage = z.object({
  /** Includes `cachedTokens` and `cacheWriteTokens`. */
  inputTokens: z.number().int().nonnegative().optional(),
  /** Read from the provider's prompt cache. */
  cachedTokens: z.number().int().nonnegative().optional(),
  /** Written to the provider's prompt cache. */
  cacheWriteTokens: z.number().int().nonnegative().optional(),
  /** Includes `reasoningTokens`. */
  outputTokens: z.number().int().nonnegative().optional(),
  reasoningTokens: z.number().int().nonnegative().optional(),
})

/**
 * What a provider needs back with the message of a step, for example signed reasoning. Opaque: only the client of that
 * provider reads `state`. No wire, timeline or trace shows it. A large state is stored as the blob `stateRef` instead.
 */
const providerState = z.object({ name: id, model: id, state: json.optional(), stateRef: id.optional() })

/** How a tool call ended. `failed`: the tool returned an error as its result. `threw`: it threw an exception. */
export const toolOutcomes = ['succeeded', 'failed', 'threw', 'denied', 'cancelled', 'unknown'] as const

/** Whether running a tool call twice is safe: it only reads, it is idempotent, or it is unsafe to repeat. */
export const toolEffects = ['read', 'idempotent', 'unsafe'] as const

const storedFile = z.object({ path: id, size: z.number().int().nonnegative() })

const jobSpec = z.object({
  source: z.enum(['installed', 'temp_upload']),
  mode: z.enum(['auto', 'interactive']),
  /** False: after `replyTimeoutMs` without a reply the agent goes on without one. */
  requireReply: z.boolean(),
  replyTimeoutMs: z.number().int().positive(),
  input: z.record(z.string(), json),
  parameter: z.record(z.string(), json),
  /** The runtime options as the client sent them. */
  options: z.record(z.string(), json),
  /** The deadline of the upload that the job waits for. */
  uploadUntil: z.number().optional(),
  /** Equal requests have equal cache keys. Absent if the result may not be reused for another request. */
  cacheKey: id.optional(),
})

const skillSpec = z.object({
  id,
  name: text,
  version: text.optional(),
  /** The instructions of SKILL.md; they are part of the prompt of every turn. */
  text,
  /** The JSON Schema of the final answer; absent means any text. */
  outputSchema: z.record(z.string(), json).optional(),
  /** The other files of the skill package, which the model may read. */
  files: z.array(storedFile.extend({ sha256: id })).optional(),
})

/** A record that an answer may cite. `source` is its id. */
const citableRecord = z.object({
  source: id,
  type: z.enum(['conversation', 'event', 'fact', 'todo', 'message', 'contact']),
})

const oneShotSpec = z.object({
  /** The operation of the agent; null if the agent has only one. */
  operation: id.nullable(),
  promptVersion: id,
  language: id,
  /** The JSON Schema of the answer; absent means any text. */
  outputSchema: z.record(z.string(), json).optional(),
  /** What the result is about. `mustExist`: the conversation or contact existed at acceptance; if it is deleted, no result is stored. */
  scope: z.object({
    type: z.enum(['conversation', 'contact', 'user', 'global']),
    id: id.nullable(),
    mustExist: z.boolean(),
  }),
  /** A hash over the data that the run reads. */
  sourceHash: id,
  /** The snapshot that the run writes when it succeeds; null if its result is not stored. `ttlMs` null: it never expires. */
  snapshot: z.object({ id, ttlMs: z.number().int().nonnegative().nullable() }).nullable(),
  /** The records that the answer may cite; absent if citations are not checked. */
  citable: z.array(citableRecord).optional(),
  /** True if every statement of the answer has to cite a record. */
  citationsRequired: z.boolean(),
  /** Fields of the result that code has computed; they are added to the answer of the model. */
  fields: z.record(z.string(), json).optional(),
  /** The answer that code alone can give; the demo model answers with it. */
  computedAnswer: z.record(z.string(), json).optional(),
  /** The conversation whose title and summary become those of the answer. */
  describes: id.optional(),
})

/** Everything that is needed to execute the run; fixed at acceptance. */
export const runSpec = z.object({
  agentId: id,
  engine: id,
  /** `provider/model`, as resolved at acceptance. */
  model: id,
  /** Asked in this order if the model before cannot answer. */
  fallbackModels: z.array(id).optional(),
  temperature: z.number().optional(),
  maxTokens: z.number().int().positive().optional(),
  sampling: sampling.optional(),
  /** The tool that the first step has to call. */
  toolChoice: toolChoice.optional(),
  /** Passed to the provider of the model by name. */
  providerOptions: providerOptions.optional(),
  /** Tools that the provider runs itself while it answers. */
  providerTools: storedProviderTools.optional(),
  /** The caller's own context, already bounded; shown to the model as a second system message. */
  context: z.record(z.string(), z.unknown()).optional(),
  /** The caller's instructions to the model, in addition to the agent's own. */
  instructions: text.optional(),
  /** Names of the tools the run may use; absent means all that its agent allows. */
  tools: z.array(z.string()).optional(),
  /** Tools of the caller, which the client executes; see `client-tool.ts`. */
  clientTools: z.array(clientTool).optional(),
  onDisconnect: z.enum(['continue', 'cancel']).optional(),
  /** The name of the configuration that the settings above came from. */
  configName: id.optional(),
  /** Replaces the agent's own instructions. */
  systemPrompt: text.optional(),
  /** The JSON Schema of a chat's final answer; absent means any text. */
  outputSchema: z.record(z.string(), json).optional(),
  /** `shadow`: the second answer to a question. Its messages are stored as superseded until they are made active. */
  variant: z.enum(['shadow']).optional(),
  /** Written by older versions for arms of a comparison; the vote itself now decides what is shown. */
  blind: z.boolean().optional(),
  /** When the client sent the question, by the client's clock. Used to recognise a second answer to the same question. */
  sentAt: z.number().optional(),
  /** The first run for the same question, if the client sent the question twice to compare two answers. */
  secondOf: id.optional(),
  /** The messages that this run replaces when it succeeds; its own become active only then. */
  supersedes: z.array(id).optional(),
  /** What a job was asked to do. */
  job: jobSpec.optional(),
  /** The skill that a job runs. If it is uploaded, it comes with `run.prepared` instead. */
  skill: skillSpec.optional(),
  /** What a one-shot run was asked to do. */
  oneShot: oneShotSpec.optional(),
  /**
   * The directory in which the run may work on files. The path is relative to the configured workspace (`.` is the
   * workspace itself), so that the data folder can be moved. `ask`: only tools that read.
   */
  workspace: z.object({ dir: id, mode: z.enum(['edit', 'ask']) }).optional(),
  /** `refuse`: the wire cannot ask a person, so a call that needs consent is answered as not allowed. Absent: the run waits. */
  consent: z.enum(['refuse']).optional(),
  /** The request of an AG-UI client: its own names for the conversation and the run, and the state that it shares. */
  agUi: z.object({ threadId: id, runId: id, protocolVersion: text.optional(), state: json.optional() }).optional(),
})

/** What a run waits for. A confirmation belongs to a tool call; a question does not. `client_tool`: the result of a tool that the client executes. */
const interactionKinds = ['confirmation', 'question', 'client_tool'] as const

/**
 * What a cut leaves out: whole turns of the history, or (`run_steps`) the older steps of the run itself, which only this run
 * forgets.
 */
export const contextCutStrategies = ['sliding_window', 'run_steps'] as const

const bodies = {
  'run.accepted': z.object({
    owner: id,
    /** The API family that accepted the run. */
    family: id,
    conversationId: id.nullable(),
    /** True if the conversation was created together with this run. */
    newConversation: z.boolean().optional(),
    sessionId: id.optional(),
    /** The user message of this run; null for runs without a conversation message. */
    userMessageId: id.nullable(),
    /** The text; a file is a short name in brackets. */
    input: text,
    /** Present if the input has a part that is not text; `input` is their text. */
    parts: z.array(part).optional(),
    /**
     * The trace that the run belongs to. `traceparent` is the context for its steps and tools: the span of the run, whose
     * parent is `parentId`; or the context of the caller, if this server records no traces.
     */
    trace: z.object({ traceparent: id, parentId: id.optional() }).optional(),
    /** True if the model goes on from the tool results that the history ends with; `input` is empty. */
    continuesHistory: z.boolean().optional(),
    /** The blob with the earlier messages of a chat without a conversation; absent if there are none. */
    historyRef: id.optional(),
    /** Fields of the request that its own API shows again, for example `metadata`. Nothing else reads them. */
    echo: z.record(z.string(), json).optional(),
    spec: runSpec,
  }),
  /** The upload that a held run waited for has arrived, and the run may be claimed from now on; or the message of a queued run was changed. */
  'run.prepared': z.object({
    /** Replaces the input of `run.accepted`. */
    input: text,
    skill: skillSpec.optional(),
    files: z.array(storedFile),
    /** As `cacheKey` in the job of `run.accepted`, but computed with the uploaded files. */
    cacheKey: id.optional(),
    /** The result of an earlier equal request. The run ends with it, without asking a model. */
    reused: z.object({ runId: id, output: text, artifacts: z.array(storedFile) }).optional(),
  }),
  'run.state': z.object({
    from: z.enum(runStatuses),
    to: z.enum(runStatuses),
    trigger: id,
    /** Set when a run is parked: how long it worked since it became running. Event times cannot tell, because the clock may be set. */
    activeMs: z.number().nonnegative().optional(),
    /** Set when a run is parked: it waits for the result of a tool that the client executes. */
    awaitsClient: z.literal(true).optional(),
  }),
  /**
   * The model is about to be asked. `messageId` is the message that its text will belong to. `model` is `provider/model`, or the
   * name of the engine if a remote agent answers, whose model is not known.
   */
  'step.started': z.object({ step: z.number().int().positive(), messageId: id, model: id }),
  'text.delta': z.object({ messageId: id, text }),
  'reasoning.delta': z.object({ reasoningId: id, text }),
  /** The provider names a page or a document that the answer is based on. The same source is named once a message. */
  'source.found': z.object({
    /** The message whose text is based on it. */
    messageId: id,
    sourceId: id,
    url: text.optional(),
    title: text.optional(),
    mediaType: text.optional(),
    /** A file of the owner; see `parts` of `run.accepted`. */
    fileId: id.optional(),
  }),
  'message.done': z.object({
    messageId: id,
    role: z.enum(['assistant', 'user', 'system', 'tool']),
    text,
    step: z.number().int().positive(),
    /** `superseded`: after a restart the model gave another text. `abandoned`: the run ended before the message was complete. */
    state: z.enum(['active', 'superseded', 'abandoned']),
  }),
  /** The model's answer to one request is complete, with its tool calls. */
  'step.done': z.object({
    step: z.number().int().positive(),
    /** The message that the step's text and calls belong to. It is stored under this id, even if it has no text. */
    messageId: id,
    finishReason: id,
    toolCalls: z.number().int().nonnegative(),
    usage: reportedUsage.optional(),
    /** In millionths of a US dollar, at the prices of that time. Absent if the price of the model is not known. */
    costMicroUsd: z.number().int().nonnegative().optional(),
    durationMs: z.number().nonnegative(),
    provider: providerState.optional(),
  }),
  /**
   * The provider reported tokens for an answer that is not used: its content filter stopped it, it failed, or the run was
   * stopped. Also for a summary. The step is still open; another attempt at it may follow.
   */
  'answer.discarded': z.object({
    step: z.number().int().positive(),
    /** `provider/model` that was asked. */
    model: id,
    usage: reportedUsage,
    costMicroUsd: z.number().int().nonnegative().optional(),
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
    /**
     * The origin of the tool: `built-in`, `config`, `mcp:` and the name of the server, or `provider:` and the name of the
     * provider, which runs the tool itself while it answers, or `client`. Tools with one name and different sources are different tools.
     */
    source: id.optional(),
    /** The raw text of the model's arguments, set if they were not valid JSON. */
    invalidInput: text.optional(),
  }),
  'tool.started': z.object({
    callId: id,
    /** The arguments that the tool is called with; a person may have edited them. */
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
    /** Length of the whole output as text. A large output is truncated here and stored in full as a blob. */
    fullLength: z.number().int().nonnegative(),
    truncated: z.boolean(),
    outputRef: id.optional(),
    modified: z.boolean().optional(),
    paths: z.array(z.string()).optional(),
    /** The images and other files of the result. */
    files: z.array(fileReference).optional(),
  }),
  'input.required': z.object({
    interactionId: id,
    /** The name that a turn engine gave to what it asks. */
    key: id.optional(),
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
    /** What happens at the deadline: `expire` closes the call, `auto_decide` lets the agent go on without a reply. */
    atDeadline: z.enum(['expire', 'auto_decide']).optional(),
  }),
  'input.resolved': z.object({
    interactionId: id,
    number: z.number().int().positive(),
    resolution: z.enum(['confirmed', 'rejected', 'replied', 'auto_decided', 'expired', 'closed']),
    by: id,
    /** The arguments to run with, if a person edited them while confirming. */
    input: json.optional(),
    response: json.optional(),
    reason: text.optional(),
  }),
  /** The final answer of a step does not fit the output schema of the run. The model is asked once more, with these errors. */
  'output.rejected': z.object({
    step: z.number().int().positive(),
    /** The message that holds the answer. */
    messageId: id,
    errors: z.array(text).min(1),
  }),
  /** What a turn engine needs to find its remote turn again. No wire shows it. */
  'engine.handle': z.object({ engine: id, handle: json }),
  /**
   * The model is no longer given older messages: from here on all requests leave them out. Written before the request, once
   * for each change, so every reader and every restart knows what the model was given.
   */
  'context.cut': z.object({
    strategy: z.enum(contextCutStrategies),
    /** The first message that this cut leaves out; absent if it is not known. */
    fromMessageId: id.optional(),
    /** The last message that is left out, also by earlier cuts. */
    throughMessageId: id,
    /** The first message that the model is still given. */
    keptFromMessageId: id,
    /** The summary that the model is still given. */
    summaryMessageId: id.optional(),
    /** How many messages this cut leaves out, and their estimated size. */
    messages: z.number().int().positive(),
    tokens: z.number().int().nonnegative(),
  }),
  /** A model wrote a summary that replaces older messages in all later requests. */
  'context.summarised': z.object({
    /** The hidden message that holds the summary. */
    summaryMessageId: id,
    /** The first message that the summary replaces; an earlier summary is always part of it. */
    fromMessageId: id.optional(),
    /** The last message that the summary replaces. */
    throughMessageId: id,
    /** The first message that the model is still given. */
    keptFromMessageId: id,
    /** How many messages it replaces, and their estimated size. */
    messages: z.number().int().positive(),
    tokens: z.number().int().nonnegative(),
    text: text.min(1),
    /** `provider/model` that wrote it. */
    model: id,
    usage: reportedUsage.optional(),
    costMicroUsd: z.number().int().nonnegative().optional(),
    durationMs: z.number().nonnegative(),
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
    /** Absent on success if the answer is long (`outputCharsMax`): then it is the text of the message `messageId`. */
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

/** An event before it gets its seq. */
export type NewEvent = { [T in EventType]: { type: T; data: Body<T> } }[EventType]

/** One event of a journal. It does not repeat the run's id, because a journal belongs to one run. */
export type RunEvent = {
  [T in EventType]: { seq: number; at: number; attempt: number; type: T; data: Body<T> }
}[EventType]

export type EventOf<T extends EventType> = Extract<RunEvent, { type: T }>
export type EventData<T extends EventType> = EventOf<T>['data']
export type RunSpec = z.infer<typeof runSpec>
export type JobSpec = z.infer<typeof jobSpec>
export type SkillSpec = z.infer<typeof skillSpec>
export type OneShotSpec = z.infer<typeof oneShotSpec>
export type ToolOutcome = (typeof toolOutcomes)[number]
export type ToolEffect = (typeof toolEffects)[number]
export type { JsonValue } from './json-value.ts'
export type Usage = z.infer<typeof reportedUsage>
export type ProviderState = z.infer<typeof providerState>

/**
 * Events that are not barriers. They survive a process crash, but perhaps not a power cut. A barrier survives both, because
 * its commit is synced to disk.
 */
const typesWithoutBarrier: ReadonlySet<EventType> = new Set<EventType>([
  'text.delta',
  'reasoning.delta',
  'source.found',
  'tool.progress',
  'step.started',
  'diagnostic',
])

export function isBarrier(type: EventType): boolean {
  return !typesWithoutBarrier.has(type)
}

export function isTerminal(status: RunStatus): boolean {
  return status === 'succeeded' || status === 'failed' || status === 'canceled'
}

/** `run.ended` repeats the final answer only up to this length; a longer answer is read from its message. */
export const outputCharsMax = 64 * 1024

/** The largest provider state in an event, in characters of JSON. A larger one is stored as a blob. */
export const providerStateCharsMax = 256 * 1024

/** The largest event, for example one delta or one tool output. Larger tool outputs are stored as blobs. */
export const eventBytesMax = 1024 * 1024
