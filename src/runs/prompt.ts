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

type Block = { messages: ModelMessage[]; startsTurn: boolean }

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
    input === null ? earlier.splice(-1) : [{ messages: [{ role: 'user', content: input }], startsTurn: true }]
  const steps = stepBlocks(state, providerStateOf, withoutReplies)
  const newest = keepsNewestStep(state) ? steps.splice(-1) : []

  // The message to answer is always kept. The rest of the budget goes to this run's newest steps, then to earlier turns.
  let room = definition.card.memory.maxTokens - sum(asked) - sum(newest)
  const keptSteps = newestThatFit(steps, room)
  room -= sum(keptSteps)
  const keptHistory = keptSteps.length === steps.length ? newestThatFit(earlier, room) : []
  while (keptHistory.length > 0 && keptHistory[0]?.startsTurn === false) keptHistory.shift()
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
      return messages.length === 0 ? [] : [{ messages, startsTurn: false }]
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
    return [{ messages, startsTurn: false }]
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
    if (row.role === 'user') blocks.push({ messages: [{ role: 'user', content: row.content }], startsTurn: true })
    if (row.role !== 'assistant') continue
    const calls = (Array.isArray(row.metadata.toolCalls) ? row.metadata.toolCalls : []) as StoredCall[]
    const results = new Map<string, MessageRow>()
    for (const { callId } of calls) {
      const result = open.get(keyOf(row, callId))
      if (result !== undefined) results.set(callId, result)
      open.delete(keyOf(row, callId))
    }
    if (calls.length === 0 || calls.some(({ callId }) => !results.has(callId))) {
      if (row.content !== '')
        blocks.push({ messages: [{ role: 'assistant', content: row.content }], startsTurn: false })
      continue
    }
    // A person may have edited the arguments when confirming. The result row has the arguments that the call ran with.
    const inputOf = (call: StoredCall) => results.get(call.callId)?.metadata.input ?? call.input
    blocks.push({
      startsTurn: false,
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
