// The interrupts that a remote run ended with: what a person is asked, and how the decisions
// are sent back. The remote agent gets the decisions on all of them in one request.

import type { Decisions, TurnDecision, TurnPart } from '../engine.ts'
import { AppError } from '../../errors/app-error.ts'
import type { JsonValue } from '../../journal/event.ts'
import { defined } from '../../kit/defined.ts'
import type { Interrupt, Interrupted } from './handle.ts'

export type ResumeEntry = { interruptId: string; status: 'resolved' | 'cancelled'; payload?: JsonValue }

/** Begins the ids of calls that the remote agent does not know. */
export const confirmPrefix = 'polylog-confirm-'

const interruptsMax = 20
const idCharsMax = 180 - confirmPrefix.length
const messageCharsMax = 8_000
const schemaCharsMax = 8_000
const inputCharsMax = 16_000

/** Name and arguments of a call that was seen, by its id. */
export type FindCall = (callId: string) => { name: string; input: JsonValue } | undefined

export function readInterrupts(outcome: { interrupts?: unknown }, findCall: FindCall): Interrupt[] {
  const list = Array.isArray(outcome.interrupts) ? (outcome.interrupts as unknown[]) : []
  if (list.length === 0 || list.length > interruptsMax) {
    throw new AppError(
      'engine_failed',
      `The remote agent stopped for ${list.length} decisions; it must ask for 1 to ${interruptsMax}.`,
    )
  }
  return list.map((item) => readInterrupt(item as Record<string, unknown> | null, findCall))
}

function readInterrupt(item: Record<string, unknown> | null, findCall: FindCall): Interrupt {
  const id = item?.['id']
  if (typeof id !== 'string' || id === '' || id.length > idCharsMax) {
    throw new AppError('engine_failed', 'The remote agent stopped for a decision without a usable id.')
  }
  const { reason, message, toolCallId, responseSchema, expiresAt } = item as Record<string, unknown>
  const callId = typeof toolCallId === 'string' && toolCallId.length <= idCharsMax ? toolCallId : undefined
  const described = describedIn((item as { metadata?: unknown }).metadata)
  const call = (callId === undefined ? undefined : findCall(callId)) ?? described
  const shown = typeof message === 'string' && message !== '' ? message : described.message
  const deadline = typeof expiresAt === 'string' ? Date.parse(expiresAt) : NaN
  return {
    id,
    reason: typeof reason === 'string' ? reason.slice(0, 200) : 'input_required',
    ...defined({
      message: shown?.slice(0, messageCharsMax),
      toolCallId: callId,
      name: call.name?.slice(0, idCharsMax),
      input: jsonWithin(call.input, inputCharsMax),
      responseSchema: isRecord(responseSchema) ? jsonWithin(responseSchema, schemaCharsMax) : undefined,
      expiresAt: Number.isFinite(deadline) ? deadline : undefined,
    }),
  }
}

type Described = { name?: string; input?: JsonValue; message?: string }

/**
 * Some frameworks do not announce a call that waits, but describe it in the metadata of the interrupt, for example
 * `{"mastra": {"toolName": …, "args": …, "suspendPayload": …}}`.
 */
function describedIn(metadata: unknown): Described {
  if (!isRecord(metadata)) return {}
  for (const found of [metadata, ...Object.values(metadata).slice(0, 20)]) {
    if (!isRecord(found) || typeof found['toolName'] !== 'string' || found['toolName'] === '') continue
    const payload = isRecord(found['suspendPayload']) ? found['suspendPayload'] : {}
    const message = ['message', 'question', 'prompt', 'reason'].map((name) => payload[name]).find(isText)
    return { name: found['toolName'], ...defined({ input: found['args'], message }) }
  }
  const input = jsonWithin(metadata, inputCharsMax)
  return input === undefined ? {} : { input }
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** A yes or no is asked as the approval of a call; everything else is a question that is answered in words. */
export function isApproval({ reason, toolCallId, responseSchema }: Interrupt): boolean {
  if (reason === 'tool_call' || reason === 'confirmation') return true
  // A tool that was suspended may want any answer; its schema tells.
  return toolCallId !== undefined && (responseSchema === undefined || hasProperty(responseSchema, 'approved'))
}

/** Remote agents may use an id again in a later run, so the key contains the run. */
function keyOf({ runId }: Interrupted, { id }: Interrupt): string {
  return `${runId}:${id}`
}

/** An approval without a call of the remote agent is shown as a call of its own. */
function callIdOf(interrupted: Interrupted, interrupt: Interrupt): string {
  return interrupt.toolCallId ?? `${confirmPrefix}${interrupted.round}-${interrupt.id}`
}

export function questionParts(interrupted: Interrupted): TurnPart[] {
  return interrupted.interrupts.map((interrupt): TurnPart => {
    const key = keyOf(interrupted, interrupt)
    const prompt = interrupt.message ?? `The agent waits for you (${interrupt.name ?? interrupt.reason}).`
    const { expiresAt } = interrupt
    if (!isApproval(interrupt)) return { type: 'question', key, prompt, ...defined({ expiresAt }) }
    const callId = callIdOf(interrupted, interrupt)
    const { name = interrupt.reason, input = {} } = interrupt
    return { type: 'approval', key, callId, name, input, prompt, ...defined({ expiresAt }) }
  })
}

export type Resume = {
  entries: ResumeEntry[]
  /** Results of calls that the remote agent will not report. */
  parts: TurnPart[]
}

/** Throws `engine_failed` if an interrupt has no decision, because its call had ended before. */
export function resumeWith(interrupted: Interrupted, decisions: Decisions): Resume {
  const parts: TurnPart[] = []
  const entries = interrupted.interrupts.map((interrupt) => {
    const decision = decisions.of(keyOf(interrupted, interrupt))
    if (decision === undefined) {
      throw new AppError('engine_failed', 'The remote agent asked for consent to a call that had ended before.')
    }
    if (!isApproval(interrupt)) return replyEntry(interrupt, decision)
    const callId = callIdOf(interrupted, interrupt)
    if (decision.resolution === 'confirmed' && decision.input !== undefined && !takesEdits(interrupt)) {
      // The remote agent would run the call with the arguments that it has.
      const message = 'The remote agent cannot run this call with changed arguments. Confirm it as it is, or reject it.'
      const error = { code: 'tool_denied', message }
      parts.push({ type: 'tool-done', callId, outcome: 'denied', summary: message, error })
      return approvalEntry(interrupt, { resolution: 'rejected', reason: message })
    }
    if (interrupt.toolCallId === undefined) {
      parts.push({ type: 'tool-done', callId, outcome: 'succeeded', summary: 'The answer was sent.' })
    }
    return approvalEntry(interrupt, decision)
  })
  return { entries, parts }
}

function approvalEntry({ id }: Interrupt, { resolution, input, reason }: TurnDecision): ResumeEntry {
  if (resolution === 'confirmed') {
    return {
      interruptId: id,
      status: 'resolved',
      payload: { approved: true, ...defined({ editedArgs: input }) },
    }
  }
  if (resolution === 'rejected') {
    return { interruptId: id, status: 'resolved', payload: { approved: false, ...defined({ reason }) } }
  }
  return { interruptId: id, status: 'cancelled' }
}

function replyEntry(interrupt: Interrupt, { resolution, response }: TurnDecision): ResumeEntry {
  if (response === undefined || (resolution !== 'replied' && resolution !== 'confirmed')) {
    return { interruptId: interrupt.id, status: 'cancelled' }
  }
  return { interruptId: interrupt.id, status: 'resolved', payload: fitReply(response, interrupt.responseSchema) }
}

/** A reply in words to a question that wants an object: JSON is parsed, and other text becomes the only property. */
function fitReply(response: JsonValue, schema: Interrupt['responseSchema']): JsonValue {
  if (typeof response !== 'string' || schema?.['type'] !== 'object') return response
  try {
    const parsed = JSON.parse(response) as JsonValue
    if (isRecord(parsed)) return parsed
  } catch {
    // It is not JSON, but words.
  }
  const names = isRecord(schema['properties']) ? Object.keys(schema['properties']) : []
  return names.length === 1 ? { [names[0] as string]: response } : response
}

/** Whether the remote agent says that it runs the call with other arguments, if it gets them. */
function takesEdits({ responseSchema }: Interrupt): boolean {
  return responseSchema !== undefined && hasProperty(responseSchema, 'editedArgs')
}

function hasProperty(schema: Record<string, JsonValue>, name: string): boolean {
  return isRecord(schema['properties']) && Object.hasOwn(schema['properties'], name)
}

function jsonWithin<T>(value: T | undefined, charsMax: number): (T & JsonValue) | undefined {
  if (value === undefined || value === null) return undefined
  return JSON.stringify(value).length <= charsMax ? (value as T & JsonValue) : undefined
}

function isRecord(value: unknown): value is Record<string, JsonValue> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
