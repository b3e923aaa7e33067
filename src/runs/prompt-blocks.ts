// Splits the history and the steps of a run into blocks: the units that a prompt keeps or leaves
// out. A tool call and its results are one block, because providers reject a history in which one
// of them is missing. Pure.

import type { JsonValue } from '../journal/event.ts'
import { questionOf, type RunState, type StepState } from '../journal/run-state.ts'
import { filesOf } from '../journal/message-parts.ts'
import type { FileReference, Part } from '../journal/part.ts'
import { defined } from '../kit/defined.ts'
import { estimateTokens } from '../kit/token-estimate.ts'
import type { ModelMessage } from '../models/model.ts'
import type { MessageRow } from '../stores/message-store.ts'
import { repairRequest } from './output-check.ts'
import { fileTokens } from './prompt-files.ts'
import { resultForModel } from '../journal/tool-outcome.ts'

export type PromptBlock = {
  readonly messages: readonly ModelMessage[]
  /** The ids of the stored messages in it, in order. */
  readonly ids: readonly string[]
  /** True for the message of a user that starts a turn. A prompt is cut only before such a block. */
  readonly startsTurn: boolean
  /** An estimate. */
  readonly tokens: number
}

export function promptBlock(messages: ModelMessage[], ids: string[], startsTurn = false): PromptBlock {
  return { messages, ids, startsTurn, tokens: messages.reduce((sum, message) => sum + messageTokens(message), 0) }
}

export function messageTokens(message: ModelMessage): number {
  let tokens = 4 + estimateTokens(message.content) + fileTokens(message)
  if (message.role === 'assistant') {
    for (const call of message.toolCalls ?? []) tokens += 8 + estimateTokens(JSON.stringify(call.input))
    if (message.providerState !== undefined) tokens += estimateTokens(JSON.stringify(message.providerState))
  }
  return tokens
}

export function blockTokens(blocks: readonly PromptBlock[]): number {
  return blocks.reduce((sum, block) => sum + block.tokens, 0)
}

/** How much of a rejected answer the model is shown again. It may be as long as the model liked. */
const rejectedCharsMax = 16 * 1024

/** The finished steps of a run, in order. */
export function stepBlocks(
  state: RunState,
  providerStateOf: (step: StepState) => JsonValue | undefined,
  withoutReplies: boolean,
): PromptBlock[] {
  return state.steps.flatMap((step) => {
    if (!step.finished) return []
    const calls = step.callIds.flatMap((callId) => state.calls.get(callId) ?? [])
    const known = defined({ providerState: providerStateOf(step) })
    if (calls.length === 0) {
      const errors = state.rejectedOutputs.get(step.step)
      const content = errors === undefined ? step.text : shortened(step.text)
      const messages: ModelMessage[] = content.trim() === '' ? [] : [{ role: 'assistant', content, ...known }]
      if (errors !== undefined) messages.push({ role: 'user', content: repairRequest(errors) })
      const reply = withoutReplies ? undefined : questionOf(state, step.step)?.resolved
      if (reply !== undefined) messages.push({ role: 'user', content: replyText(reply.response) })
      return messages.length === 0 ? [] : [promptBlock(messages, [step.messageId])]
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
        ...defined({ files: call.done?.files }),
      })),
    ]
    return [promptBlock(messages, [step.messageId, ...calls.flatMap(({ done }) => done?.messageId ?? [])])]
  })
}

function shortened(text: string): string {
  if (text.length <= rejectedCharsMax) return text
  return `${text.slice(0, rejectedCharsMax).toWellFormed()}\n(${text.length - rejectedCharsMax} more characters)`
}

function replyText(response: JsonValue | undefined): string {
  if (response === undefined) return 'Nobody replied. Go on with your own judgement.'
  return typeof response === 'string' ? response : JSON.stringify(response)
}

/** The files have no bytes yet; see `prompt-files.ts`. */
export function userMessage(content: string, parts: Part[] | undefined): ModelMessage {
  return { role: 'user', content, ...defined({ parts }) }
}

function resultFiles(row: MessageRow | undefined): { files?: FileReference[] } {
  return row?.parts === undefined ? {} : { files: filesOf(row.parts) }
}

type StoredCall = { callId: string; name: string; input: JsonValue }

/** Rows → blocks. If the result of a call is missing (possible in old rows), only the text of the message is kept. */
export function historyBlocks(rows: readonly MessageRow[]): PromptBlock[] {
  // Call ids are not unique: some providers restart them in every turn, and clients choose their own. A result therefore
  // belongs to the nearest earlier call with its id in the same run.
  const keyOf = (row: MessageRow, callId: string) => JSON.stringify([row.runId, callId])
  const open = new Map<string, MessageRow>()
  const blocks: PromptBlock[] = []
  for (const row of rows.toReversed()) {
    if (row.role === 'tool' && row.toolCallId !== null) open.set(keyOf(row, row.toolCallId), row)
    if (row.role === 'user') blocks.push(promptBlock([userMessage(row.content, row.parts)], [row.id], true))
    if (row.role !== 'assistant') continue
    const calls = (Array.isArray(row.metadata.toolCalls) ? row.metadata.toolCalls : []) as StoredCall[]
    const results = new Map<string, MessageRow>()
    for (const { callId } of calls) {
      const result = open.get(keyOf(row, callId))
      if (result !== undefined) results.set(callId, result)
      open.delete(keyOf(row, callId))
    }
    if (calls.length === 0 || calls.some(({ callId }) => !results.has(callId))) {
      if (row.content.trim() !== '') blocks.push(promptBlock([{ role: 'assistant', content: row.content }], [row.id]))
      continue
    }
    // A person may have edited the arguments when confirming. The result row has the arguments that the call ran with.
    const inputOf = (call: StoredCall) => results.get(call.callId)?.metadata.input ?? call.input
    const resultRows = calls.map((call) => results.get(call.callId) as MessageRow)
    blocks.push(
      promptBlock(
        [
          {
            role: 'assistant',
            content: row.content,
            toolCalls: calls.map((call) => ({ callId: call.callId, name: call.name, input: inputOf(call) })),
          },
          ...calls.map((call, at) => ({
            role: 'tool' as const,
            callId: call.callId,
            name: call.name,
            content: (resultRows[at] as MessageRow).content,
            isError: resultRows[at]?.metadata.outcome !== 'succeeded',
            ...resultFiles(resultRows[at]),
          })),
        ],
        [row.id, ...resultRows.map(({ id }) => id)],
      ),
    )
  }
  return blocks.reverse()
}
