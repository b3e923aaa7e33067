// An ended run as one document, for moving it to another server: its journal and the rows beside it. What belongs to the
// operator or to one machine is left out: the system prompt of a configuration, working directories, the state of providers,
// the handles of remote agents, hidden messages, and counts of usage by day.
//
// A document comes from a user, so nothing in it is trusted: its journal has to be one that a run can have, and the run has
// to have ended, because an unfinished one would be executed with whatever settings the document names.

import { z } from 'zod'
import { AppError } from '../errors/app-error.ts'
import type { RunEvent } from '../journal/event.ts'
import { eventFromJson } from '../journal/event-codec.ts'
import { json } from '../journal/json-value.ts'
import { part } from '../journal/part.ts'
import { type Phase, phaseAfter, refusal } from '../journal/transitions.ts'
import { namedForm } from '../kit/conversation-id.ts'
import { valuesIn } from '../kit/json-depth.ts'
import { sortedJson } from '../kit/sorted-json.ts'
import { nextTurn } from '../kit/turns.ts'
import type { InteractionRow } from '../stores/interaction-store.ts'
import type { MessageRow } from '../stores/message-store.ts'
import { historyCharsMax } from './standalone-chat.ts'

export const documentFormat = 'polylog-run'
export const documentVersion = 1

const rowsMax = 20_000
export const eventsMax = 1_000_000
const blobsMax = 1_000
/** How many events are checked before other requests have their turn. */
const eventsPerTurn = 2_000
/** The same for messages, interactions and blobs, whose schemas are larger. */
const rowsPerTurn = 200

const ulid = z.string().regex(/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/)
const id = z.string().min(1).max(200)
const time = z.number().int().min(0).max(8_640_000_000_000_000)
const count = z.number().int().nonnegative()
const error = z.object({
  code: z.string().min(1),
  message: z.string(),
  retryable: z.boolean().optional(),
  details: z.record(z.string(), z.unknown()).optional(),
})

const conversation = z.object({
  id: z.string().regex(/^(?:~[0-7][0-9A-HJKMNP-TV-Z]{25}~[^\0]{1,200}|(?:agt-)?[0-7][0-9A-HJKMNP-TV-Z]{25})$/s),
  title: z.string().max(500).nullable(),
})

const message = z.object({
  id,
  parentId: id.nullable(),
  role: z.enum(['user', 'assistant', 'tool']),
  content: z.string(),
  parts: z.array(part).optional(),
  state: z.enum(['active', 'superseded', 'abandoned']),
  toolCallId: z.string().nullable(),
  metadata: z.record(z.string(), json),
  createdAt: time,
})

const interaction = z.object({
  id,
  number: count,
  kind: z.enum(['confirmation', 'question', 'client_tool']),
  callId: z.string().nullable(),
  toolName: z.string().nullable(),
  prompt: z.string(),
  input: json,
  outcome: z.literal('unknown').nullable(),
  // A pending one would be a question to a person about a run that has ended.
  status: z.enum(['confirmed', 'rejected', 'replied', 'auto_decided', 'expired', 'closed']),
  response: json.nullable(),
  reason: z.string().nullable(),
  decidedBy: z.string().nullable(),
  decidedAt: time.nullable(),
  result: json.nullable(),
  error: error.nullable(),
  executedAt: time.nullable(),
  deadlineAt: time.nullable(),
  atDeadline: z.enum(['expire', 'auto_decide']).nullable(),
  createdAt: time,
  updatedAt: time,
})

const blob = z.object({ id, body: z.string() })
/** Ids of other forms are those of files of jobs. They begin with the id of the job, which may be another user's. */
const blobForm = /^(?:history_)?[0-7][0-9A-HJKMNP-TV-Z]{25}$/

const callOfHistory = z.object({ callId: z.string(), name: z.string(), input: json })
/** An entry of the list in the blob that `historyRef` names. */
const earlierMessage = z.discriminatedUnion('role', [
  z.object({ role: z.literal('user'), content: z.string(), parts: z.array(part).optional() }),
  z.object({ role: z.literal('assistant'), content: z.string(), toolCalls: z.array(callOfHistory).optional() }),
  z.object({ role: z.literal('tool'), callId: z.string(), name: z.string(), content: z.string() }),
])
/** A history of 4 MiB that a client sent has far fewer. A text of 4 MiB may have millions, which take long to parse. */
const historyValuesMax = 200_000

/** The document without its rows, which are checked one by one. */
const documentSchema = z.object({
  format: z.literal(documentFormat),
  version: z.literal(documentVersion),
  conversation: conversation.nullable(),
  run: z.object({
    id: ulid,
    family: z.string().min(1).max(50),
    agentId: id,
    status: z.enum(['succeeded', 'failed', 'canceled']),
    attempt: count,
    createdAt: time,
    startedAt: time.nullable(),
    endedAt: time,
    error: error.nullable(),
    engine: z.string().max(200).nullable(),
    usage: z
      .object({
        steps: count,
        inputTokens: count,
        cachedTokens: count,
        cacheWriteTokens: count,
        outputTokens: count,
        reasoningTokens: count,
        costMicroUsd: count.nullable(),
        unpricedSteps: count,
      })
      .nullable(),
  }),
  messages: z.array(z.unknown()).max(rowsMax),
  interactions: z.array(z.unknown()).max(rowsMax),
  /** Texts that were too long for the journal, which refers to them. */
  blobs: z.array(z.unknown()).max(blobsMax),
  events: z.array(z.unknown()).min(1).max(eventsMax),
})

export type RunDocument = Omit<z.infer<typeof documentSchema>, 'messages' | 'interactions' | 'blobs' | 'events'> & {
  messages: z.infer<typeof message>[]
  interactions: z.infer<typeof interaction>[]
  blobs: z.infer<typeof blob>[]
  events: RunEvent[]
}

export type DocumentMessage = RunDocument['messages'][number]
export type DocumentInteraction = RunDocument['interactions'][number]

/** Checks a document for import by this user. Throws `import_invalid`. */
export async function readRunDocument(given: unknown, owner: string): Promise<RunDocument> {
  const about = given as { format?: unknown; version?: unknown } | null
  if (typeof about !== 'object' || about?.format !== documentFormat) {
    throw invalid('This is not a run that a Polylog server exported.')
  }
  if (about.version !== documentVersion) {
    throw invalid(`The document has version ${String(about.version)}; this server reads version ${documentVersion}.`)
  }
  const parsed = documentSchema.safeParse(given)
  if (!parsed.success) throw misfit([], parsed.error)
  const { messages, interactions, blobs, events, ...rest } = parsed.data
  const document: RunDocument = {
    ...rest,
    messages: await readRows(message, messages, misfitIn('messages')),
    interactions: await readRows(interaction, interactions, misfitIn('interactions')),
    blobs: await readRows(blob, blobs, misfitIn('blobs')),
    events: await readEvents(events, owner),
  }
  await checkWhole(document)
  return document
}

/** Stops at the first row that does not fit: a schema of the whole list would report each of 20,000 wrong rows first. */
async function readRows<Row>(
  schema: z.ZodType<Row>,
  given: readonly unknown[],
  problem: (index: number, error: z.ZodError) => AppError,
): Promise<Row[]> {
  const rows: Row[] = []
  for (const [index, value] of given.entries()) {
    const parsed = schema.safeParse(value)
    if (!parsed.success) throw problem(index, parsed.error)
    rows.push(parsed.data)
    if (index % rowsPerTurn === rowsPerTurn - 1) await nextTurn()
  }
  return rows
}

const misfitIn = (list: string) => (index: number, error: z.ZodError) => misfit([list, index], error)

function misfit(at: readonly (string | number)[], { issues }: z.ZodError): AppError {
  const [issue] = issues
  const path = [...at, ...(issue?.path ?? [])].join('.')
  return invalid(`${path}: ${issue?.message ?? 'it does not fit'}.`)
}

async function readEvents(given: readonly unknown[], owner: string): Promise<RunEvent[]> {
  const events: RunEvent[] = []
  let phase: Phase = 'new'
  for (const [index, value] of given.entries()) {
    const event = eventFromJson(value)
    if (event === null) throw invalid(`events.${index}: The event does not fit its schema.`)
    if (event.seq !== index + 1) throw invalid(`events.${index}: The events are not numbered from 1 without a gap.`)
    const problem = refusal(phase, event)
    if (problem !== null) throw invalid(`events.${index}: ${problem}`)
    phase = phaseAfter(phase, event)
    const { seq, at, attempt, type, data } = event
    // Nothing but the fields of an event.
    events.push(portableEvent({ seq, at, attempt, type, data } as RunEvent, owner))
    if (index % eventsPerTurn === eventsPerTurn - 1) await nextTurn()
  }
  if (phase !== 'ended') throw invalid('events: The journal does not end with the end of the run.')
  return events
}

/** The event without what belongs to an operator or to a machine; `owner` is the user of the document. */
export function portableEvent(event: RunEvent, owner: string): RunEvent {
  switch (event.type) {
    case 'run.accepted': {
      const { systemPrompt: _prompt, workspace: _directory, ...spec } = event.data.spec
      return { ...event, data: { ...event.data, owner, spec } }
    }
    case 'engine.handle':
      return { ...event, data: { engine: event.data.engine, handle: null } }
    case 'step.done': {
      const { provider: _state, ...data } = event.data
      return { ...event, data }
    }
    default:
      return event
  }
}

/** The JSON of a document, in parts that are written in one turn each. */
export async function* documentText({ events, ...rest }: RunDocument): AsyncGenerator<string> {
  const whole = JSON.stringify({ ...rest, events: [] })
  yield whole.slice(0, -']}'.length)
  for (let from = 0; from < events.length; from += eventsPerTurn) {
    const part = JSON.stringify(events.slice(from, from + eventsPerTurn))
    yield `${from === 0 ? '' : ','}${part.slice(1, -1)}`
    await nextTurn()
  }
  yield ']}'
}

/** True if both tell the same about the run; the conversation may have changed since. */
export async function isSameRun(one: RunDocument, other: RunDocument): Promise<boolean> {
  const { events, conversation: _before, ...rest } = one
  const { events: otherEvents, conversation: _now, ...otherRest } = other
  if (events.length !== otherEvents.length || !isSameJson(rest, otherRest)) return false
  for (let from = 0; from < events.length; from += eventsPerTurn) {
    const to = from + eventsPerTurn
    if (!isSameJson(events.slice(from, to), otherEvents.slice(from, to))) return false
    await nextTurn()
  }
  return true
}

/** Compared as JSON: a field that is undefined is none. */
function isSameJson(one: unknown, other: unknown): boolean {
  return sortedJson(one) === sortedJson(other)
}

/** What the parts of a document have to agree on. */
async function checkWhole({ run, conversation: whole, events, messages, blobs }: RunDocument): Promise<void> {
  const [accepted] = events
  if (accepted?.type !== 'run.accepted') throw invalid('events.0: A journal begins with run.accepted.')
  const { data } = accepted
  if (data.spec.job !== undefined || data.spec.oneShot !== undefined) {
    throw invalid('Runs of jobs and of one-shot agents cannot be imported.')
  }
  if (data.family !== run.family || data.spec.agentId !== run.agentId || data.conversationId !== (whole?.id ?? null)) {
    throw invalid('The run and its journal name different families, agents or conversations.')
  }
  if (whole === null && messages.length > 0) throw invalid('messages: A run without a conversation has no messages.')
  const referred = referredBlobs(events)
  for (const blob of blobs) {
    if (!referred.has(blob.id)) throw invalid(`blobs: No event refers to ${blob.id}.`)
    if (!blobForm.test(blob.id)) throw invalid(`blobs: ${blob.id} is not the id of an output or of a history.`)
    if (blob.id === data.historyRef) await checkHistory(blob)
  }
}

/** Throws if the text is not a list of earlier messages. */
async function checkHistory({ id, body }: RunDocument['blobs'][number]): Promise<void> {
  const problem = () => invalid(`blobs: ${id} is not a list of earlier messages, or it is too long.`)
  if (body.length > historyCharsMax || valuesIn(body, historyValuesMax) > historyValuesMax) throw problem()
  const list = jsonOf(body)
  if (!Array.isArray(list)) throw problem()
  await readRows(earlierMessage, list, problem)
}

/** Undefined if the text is not JSON. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The ids of the long texts that the events refer to. */
export function referredBlobs(events: readonly RunEvent[]): Set<string> {
  const ids = new Set<string>()
  for (const event of events) {
    if (event.type === 'tool.done' && event.data.outputRef !== undefined) ids.add(event.data.outputRef)
    if (event.type === 'run.accepted' && event.data.historyRef !== undefined) ids.add(event.data.historyRef)
  }
  return ids
}

/** The ids of the files that the run refers to, in its messages and in its journal. */
export function referredFiles({ messages, events }: Pick<RunDocument, 'messages' | 'events'>): string[] {
  const ids = new Set<string>()
  const collect = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    for (const [name, inner] of Object.entries(value)) {
      if (name === 'fileId' && typeof inner === 'string') ids.add(inner)
      else collect(inner)
    }
  }
  for (const { parts } of messages) collect(parts)
  for (const event of events) if (event.type !== 'text.delta') collect(event.data)
  return [...ids]
}

/** The name that a client chose for the conversation; null if it has none. */
export function nameOfConversation(conversationId: string): string | null {
  return namedForm.exec(conversationId)?.[1] ?? null
}

export function documentMessage({ conversationId: _conversation, runId: _run, ...row }: MessageRow): DocumentMessage {
  return row as DocumentMessage
}

export function documentInteraction(row: InteractionRow): DocumentInteraction {
  const { runId: _run, owner: _owner, conversationId: _conversation, reply: _reply, ...rest } = row
  return rest as DocumentInteraction
}

function invalid(sentence: string): AppError {
  return new AppError('import_invalid', `The document cannot be imported. ${sentence}`)
}
