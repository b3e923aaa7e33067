// What the model is given: the agent's instructions, the caller's context, as
// much of the history as the agent's memory holds, and this run so far. Pure.
//
// A tool call and its result are one block here and are kept or dropped together:
// a provider refuses a history that parts them.

import type { AgentDefinition } from '../agents/agent-definition.ts'
import { renderTemplate } from '../agents/catalogue.ts'
import type { JsonValue } from '../journal/event.ts'
import { questionOf, type RunState } from '../journal/run-state.ts'
import { sortedJson } from '../kit/sorted-json.ts'
import type { ModelMessage } from '../models/model.ts'
import type { MessageRow } from '../stores/store.ts'
import { repairRequest } from './output-check.ts'
import { resultForModel } from './tool-outcome.ts'

export type PromptParts = {
  definition: AgentDefinition
  /** Instead of the definition's own instructions. */
  systemPrompt?: string | undefined
  history: MessageRow[]
  input: string
  context: Record<string, unknown> | undefined
  /** Further instructions of this run: each is a system message after the agent's own. */
  rules?: readonly string[]
  state: RunState
}

type Block = { messages: ModelMessage[]; startsTurn: boolean }

export function buildPrompt({
  definition,
  systemPrompt,
  history,
  input,
  context,
  rules = [],
  state,
}: PromptParts): ModelMessage[] {
  const system: ModelMessage[] = [
    { role: 'system', content: systemPrompt ?? renderTemplate(definition.systemTemplate, definition.defaults) },
  ]
  for (const content of rules) system.push({ role: 'system', content })
  if (context !== undefined && Object.keys(context).length > 0) {
    system.push({ role: 'system', content: `Context given by the application (JSON):\n${sortedJson(context)}` })
  }
  const user: Block = { messages: [{ role: 'user', content: input }], startsTurn: true }
  const steps = stepBlocks(state)

  // The user's message always stands; then this run's own steps, newest first; then earlier turns.
  let room = definition.card.memory.maxTokens - blockTokens(user)
  const keptSteps = newestThatFit(steps, room)
  room -= sum(keptSteps)
  const keptHistory = keptSteps.length === steps.length ? newestThatFit(historyBlocks(history), room) : []
  while (keptHistory.length > 0 && keptHistory[0]?.startsTurn === false) keptHistory.shift()
  return [...system, ...[...keptHistory, user, ...keptSteps].flatMap((block) => block.messages)]
}

/** Rough on purpose: four letters a token, one for each character of a script without spaces. Errs on the large side. */
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

function stepBlocks(state: RunState): Block[] {
  return state.steps.flatMap((step) => {
    if (!step.finished) return []
    const calls = step.callIds.flatMap((callId) => state.calls.get(callId) ?? [])
    if (calls.length === 0) {
      const messages: ModelMessage[] = step.text === '' ? [] : [{ role: 'assistant', content: step.text }]
      const errors = state.rejectedOutputs.get(step.step)
      if (errors !== undefined) messages.push({ role: 'user', content: repairRequest(errors) })
      const reply = questionOf(state, step.step)?.resolved
      if (reply !== undefined) messages.push({ role: 'user', content: replyText(reply.response) })
      return messages.length === 0 ? [] : [{ messages, startsTurn: false }]
    }
    const messages: ModelMessage[] = [
      {
        role: 'assistant',
        content: step.text,
        toolCalls: calls.map((call) => ({ callId: call.callId, name: call.name, input: call.input })),
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

function replyText(response: JsonValue | undefined): string {
  if (response === undefined) return 'Nobody replied. Go on with your own judgement.'
  return typeof response === 'string' ? response : JSON.stringify(response)
}

type StoredCall = { callId: string; name: string; input: JsonValue }

/** Rows → blocks. A call whose result is missing (it cannot be, but rows may be old) is told without the call. */
function historyBlocks(rows: MessageRow[]): Block[] {
  // Some providers count their call ids anew in every turn, so a call is known by its run and its id.
  const keyOf = (row: MessageRow, callId: string) => JSON.stringify([row.runId, callId])
  const results = new Map(
    rows.flatMap((row) =>
      row.role === 'tool' && row.toolCallId !== null ? [[keyOf(row, row.toolCallId), row] as const] : [],
    ),
  )
  const blocks: Block[] = []
  for (const row of rows) {
    if (row.role === 'user') blocks.push({ messages: [{ role: 'user', content: row.content }], startsTurn: true })
    if (row.role !== 'assistant') continue
    const calls = (Array.isArray(row.metadata.toolCalls) ? row.metadata.toolCalls : []) as StoredCall[]
    if (calls.length === 0 || calls.some((call) => !results.has(keyOf(row, call.callId)))) {
      if (row.content !== '')
        blocks.push({ messages: [{ role: 'assistant', content: row.content }], startsTurn: false })
      continue
    }
    // A person may have edited the arguments while confirming; the result tells with what the call really ran.
    const inputOf = (call: StoredCall) => results.get(keyOf(row, call.callId))?.metadata.input ?? call.input
    blocks.push({
      startsTurn: false,
      messages: [
        {
          role: 'assistant',
          content: row.content,
          toolCalls: calls.map((call) => ({ callId: call.callId, name: call.name, input: inputOf(call) })),
        },
        ...calls.map((call) => {
          const result = results.get(keyOf(row, call.callId)) as MessageRow
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
  return blocks
}
