// Builds the prompt: the agent's instructions, the caller's context, as much history
// as the agent's memory policy allows, and the steps of this run so far. Pure.
//
// A tool call and its result form one block and are kept or dropped together,
// because providers reject a history in which one of them is missing.

import type { AgentDefinition } from '../agents/agent-definition.ts'
import { renderTemplate } from '../agents/template.ts'
import type { JsonValue } from '../journal/event.ts'
import { questionOf, type RunState, type StepState } from '../journal/run-state.ts'
import { defined } from '../kit/defined.ts'
import { sortedJson } from '../kit/sorted-json.ts'
import type { ModelMessage } from '../models/model.ts'
import type { MessageRow } from '../stores/message-store.ts'
import { repairRequest } from './output-check.ts'
import { resultForModel } from './tool-outcome.ts'

export type PromptInput = {
  definition: AgentDefinition
  /** Replaces the instructions of the agent definition. */
  systemPrompt?: string | undefined
  /** Instructions of the caller, in addition to the agent's. */
  instructions?: string | undefined
  history: MessageRow[]
  /** True if the conversation has messages before `history`. */
  historyIsCut?: boolean
  /** Null if the model continues from the tool results at the end of the history. */
  input: string | null
  context: Record<string, unknown> | undefined
  /** Further instructions for this run; each becomes a system message after the agent's. */
  rules?: readonly string[]
  state: RunState
  /** What the provider of this run needs back with the message of a step; undefined if it needs nothing. */
  providerStateOf?: (step: StepState) => JsonValue | undefined
  /** True for a remote agent that asked its own questions: it gets the replies as decisions, not as messages. */
  withoutReplies?: boolean
}

/** `turnId` is the id of the message that starts a turn; null for a block within a turn. */
type Block = { messages: ModelMessage[]; turnId: string | null }

export function buildPrompt(parts: PromptInput): ModelMessage[] {
  const { definition, systemPrompt, instructions, history, input, context, rules = [], state } = parts
  const { providerStateOf = () => undefined, withoutReplies = false } = parts
  const system: ModelMessage[] = [
    { role: 'system', content: systemPrompt ?? renderTemplate(definition.systemTemplate, definition.defaults) },
  ]
  for (const content of rules) system.push({ role: 'system', content })
  if (instructions !== undefined)
    system.push({ role: 'system', content: `Instructions given by the application:\n${instructions}` })
  if (context !== undefined && Object.keys(context).length > 0) {
    system.push({ role: 'system', content: `Context given by the application (JSON):\n${sortedJson(context)}` })
  }
  const earlier = historyBlocks(history)
  // The message to answer: the user's message, or the tool calls and results that the model continues from.
  const asked: Block[] =
    input === null ? earlier.splice(-1) : [{ messages: [{ role: 'user', content: input }], turnId: '' }]
  const steps = stepBlocks(state, providerStateOf, withoutReplies)
  const newest = keepsNewestStep(state) ? steps.splice(-1) : []

  // The message to answer is always kept. The rest of the budget goes to this run's newest steps, then to earlier turns.
  const memory = definition.card.memory.maxTokens
  let room = memory - sum(asked) - sum(newest)
  const keptSteps = newestThatFit(steps, room)
  room -= sum(keptSteps)
  const keptHistory =
    keptSteps.length === steps.length ? newestTurns(earlier, room, memory, parts.historyIsCut === true) : []
  return [...system, ...[...keptHistory, ...asked, ...keptSteps, ...newest].flatMap((block) => block.messages)]
}

/**
 * Whether the newest step is kept even if it exceeds the budget. A rejected answer must be followed by its errors, or the
 * repair round repeats the first request. The data of a one-shot run alone may exceed the budget, and without its newest
 * step the model would never see the result of a tool.
 */
function keepsNewestStep({ accepted, steps, rejectedOutputs }: RunState): boolean {
  const last = steps.findLast((step) => step.finished)
  return last !== undefined && (accepted?.spec.oneShot !== undefined || rejectedOutputs.has(last.step))
}

/** A cheap estimate that errs high: four characters per token, but one per CJK character. */
export function estimateTokens(text: string): number {
  let wide = 0
  for (let index = 0; index < text.length; index++) if (text.charCodeAt(index) > 0x2e7f) wide += 1
  return wide + Math.ceil((text.length - wide) / 4)
}

function blockTokens(block: Block): number {
  let tokens = 0
  for (const message of block.messages) {
    tokens += 4 + estimateTokens(message.content)
    if (message.role === 'assistant')
      for (const call of message.toolCalls ?? []) tokens += 8 + estimateTokens(JSON.stringify(call.input))
  }
  return tokens
}

function sum(blocks: Block[]): number {
  return blocks.reduce((total, block) => total + blockTokens(block), 0)
}

function newestThatFit(blocks: Block[], tokens: number): Block[] {
  let room = tokens
  let from = blocks.length
  while (from > 0) {
    room -= blockTokens(blocks[from - 1] as Block)
    if (room < 0) break
    from -= 1
  }
  return blocks.slice(from)
}

/**
 * The newest turns that fit. A provider can cache only a prompt whose beginning stays the same, so the cut is made rarely:
 * what does not fit is dropped in portions of half the agent's memory, counted from the beginning of the conversation. The
 * next turns and steps begin with the same message, until the next portion has to go.
 */
function newestTurns(blocks: Block[], room: number, memory: number, isCut: boolean): Block[] {
  const fitting = newestThatFit(blocks, room)
  if (isCut) return fromFirstTurn(fromLowestHash(fitting))
  const excess = sum(blocks) - room
  if (excess <= 0) return fromFirstTurn(blocks)
  const portion = Math.ceil(memory / 2)
  const dropped = Math.ceil(excess / portion) * portion
  let tokens = 0
  for (const [at, block] of blocks.entries()) {
    if (tokens >= dropped && block.turnId !== null) return blocks.slice(at)
    tokens += blockTokens(block)
  }
  // A turn, or the message to answer, takes more than half of the memory.
  return fromFirstTurn(fitting)
}

/**
 * For a conversation whose beginning is not known, so that portions cannot be counted from there. Of the turns in the older
 * half, the one whose id has the lowest hash stays the first for many requests: it changes only when that turn does not fit
 * any more, or a turn with a lower hash comes within reach.
 */
function fromLowestHash(blocks: Block[]): Block[] {
  const total = sum(blocks)
  let left = total
  let from = 0
  let lowest = Infinity
  for (const [at, block] of blocks.entries()) {
    if (left < total / 2) break
    if (block.turnId !== null && hashOf(block.turnId) < lowest) {
      lowest = hashOf(block.turnId)
      from = at
    }
    left -= blockTokens(block)
  }
  return blocks.slice(from)
}

function fromFirstTurn(blocks: Block[]): Block[] {
  const first = blocks.findIndex((block) => block.turnId !== null)
  return first === -1 ? [] : blocks.slice(first)
}

/** FNV-1a with a final mix, because ids that were made in sequence differ only at their end. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  return (hash ^ (hash >>> 13)) >>> 0
}

function stepBlocks(
  state: RunState,
  providerStateOf: NonNullable<PromptInput['providerStateOf']>,
  withoutReplies: boolean,
): Block[] {
  return state.steps.flatMap((step) => {
    if (!step.finished) return []
    const calls = step.callIds.flatMap((callId) => state.calls.get(callId) ?? [])
    const known = defined({ providerState: providerStateOf(step) })
    if (calls.length === 0) {
      const errors = state.rejectedOutputs.get(step.step)
      const content = errors === undefined ? step.text : shortened(step.text)
      const messages: ModelMessage[] = content === '' ? [] : [{ role: 'assistant', content, ...known }]
      if (errors !== undefined) messages.push({ role: 'user', content: repairRequest(errors) })
      const reply = withoutReplies ? undefined : questionOf(state, step.step)?.resolved
      if (reply !== undefined) messages.push({ role: 'user', content: replyText(reply.response) })
      return messages.length === 0 ? [] : [{ messages, turnId: null }]
    }
    const messages: ModelMessage[] = [
      {
        role: 'assistant',
        content: step.text,
        toolCalls: calls.map((call) => ({ callId: call.callId, name: call.name, input: call.input })),
        ...known,
      },
      ...calls.map((call) => ({
        role: 'tool' as const,
        callId: call.callId,
        name: call.name,
        content: call.done === undefined ? 'The call has not finished.' : resultForModel(call.done),
        isError: call.done !== undefined && call.done.outcome !== 'succeeded',
      })),
    ]
    return [{ messages, turnId: null }]
  })
}

/** How much of a rejected answer the model is shown again. It may be as long as the model liked. */
const rejectedCharsMax = 16 * 1024

function shortened(text: string): string {
  if (text.length <= rejectedCharsMax) return text
  return `${text.slice(0, rejectedCharsMax).toWellFormed()}\n(${text.length - rejectedCharsMax} more characters)`
}

function replyText(response: JsonValue | undefined): string {
  if (response === undefined) return 'Nobody replied. Go on with your own judgement.'
  return typeof response === 'string' ? response : JSON.stringify(response)
}

type StoredCall = { callId: string; name: string; input: JsonValue }

/** Rows → blocks. If the result of a call is missing (possible in old rows), only the text of the message is kept. */
function historyBlocks(rows: MessageRow[]): Block[] {
  // Call ids are not unique: some providers restart them in every turn, and clients choose their own. A result therefore
  // belongs to the nearest earlier call with its id in the same run.
  const keyOf = (row: MessageRow, callId: string) => JSON.stringify([row.runId, callId])
  const open = new Map<string, MessageRow>()
  const blocks: Block[] = []
  for (const row of rows.toReversed()) {
    if (row.role === 'tool' && row.toolCallId !== null) open.set(keyOf(row, row.toolCallId), row)
    if (row.role === 'user') blocks.push({ messages: [{ role: 'user', content: row.content }], turnId: row.id })
    if (row.role !== 'assistant') continue
    const calls = (Array.isArray(row.metadata.toolCalls) ? row.metadata.toolCalls : []) as StoredCall[]
    const results = new Map<string, MessageRow>()
    for (const { callId } of calls) {
      const result = open.get(keyOf(row, callId))
      if (result !== undefined) results.set(callId, result)
      open.delete(keyOf(row, callId))
    }
    if (calls.length === 0 || calls.some(({ callId }) => !results.has(callId))) {
      if (row.content !== '') blocks.push({ messages: [{ role: 'assistant', content: row.content }], turnId: null })
      continue
    }
    // A person may have edited the arguments when confirming. The result row has the arguments that the call ran with.
    const inputOf = (call: StoredCall) => results.get(call.callId)?.metadata.input ?? call.input
    blocks.push({
      turnId: null,
      messages: [
        {
          role: 'assistant',
          content: row.content,
          toolCalls: calls.map((call) => ({ callId: call.callId, name: call.name, input: inputOf(call) })),
        },
        ...calls.map((call) => {
          const result = results.get(call.callId) as MessageRow
          return {
            role: 'tool' as const,
            callId: call.callId,
            name: call.name,
            content: result.content,
            isError: result.metadata.outcome !== 'succeeded',
          }
        }),
      ],
    })
  }
  return blocks.reverse()
}
