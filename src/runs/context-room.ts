// How many tokens of a request are left for the conversation: the context window of the model,
// minus the longest answer, the tools, the instructions and a margin. Pure.

import type { RunSpec } from '../journal/event.ts'
import { estimateTokens } from '../kit/token-estimate.ts'
import type { ModelFacts, ModelMessage, ModelTool } from '../models/model.ts'
import { messageTokens } from './prompt-blocks.ts'

/** The window of a model that the table of models does not have. */
export const defaultContextTokens = 32_000

/** The share of the window that stays free, because tokens are estimated. */
const marginShare = 1 / 10
/** The share of the window that is kept free for the answer, if the table does not have the model's limit; and the most that is kept free. */
const answerShare = 1 / 4
const answerShareMax = 1 / 2
/** For the sentence that something is missing, which a cut adds to the instructions. */
const missingNoteTokens = 40

export type ContextRoom = {
  /** The most that history, question and steps may take together. Without the memory limit of the agent. */
  window: number
  /** The same with the memory limit of the agent. If it is exceeded, older messages are cut. */
  memory: number
  /**
   * Cuts leave out multiples of this. It does not depend on the instructions and tools of one request, so that also a client
   * that sends its whole history each time gets the same beginning for many requests.
   */
  portion: number
}

export function contextRoom(parts: {
  facts: ModelFacts | undefined
  /** The window of a model that has none in the table. */
  contextTokens: number | undefined
  spec: Pick<RunSpec, 'maxTokens'>
  tools: readonly ModelTool[]
  system: readonly ModelMessage[]
  /** `memory.maxTokens` of the agent. */
  maxTokens: number | undefined
}): ContextRoom {
  const { facts, contextTokens, spec, tools, system, maxTokens } = parts
  const whole = facts?.contextTokens ?? contextTokens ?? defaultContextTokens
  const longest = spec.maxTokens ?? facts?.maxOutputTokens ?? Math.floor(whole * answerShare)
  // Some models may answer with as many tokens as their window has; then half of it is for the answer.
  const answer = Math.min(longest, Math.floor(whole * answerShareMax))
  const fixed = tools.reduce((sum, tool) => sum + toolTokens(tool), 0) + sumOf(system) + missingNoteTokens
  const window = Math.max(0, whole - Math.ceil(whole * marginShare) - answer - fixed)
  const portion = Math.ceil(Math.min(whole / 4, (maxTokens ?? whole) / 2))
  return { window, memory: Math.min(window, maxTokens ?? window), portion }
}

/** The tools of the server are the same objects for every run, and their schemas may be long. */
const schemaTokens = new WeakMap<object, number>()

function toolTokens({ name, description, inputSchema }: ModelTool): number {
  let tokens = schemaTokens.get(inputSchema)
  if (tokens === undefined) {
    tokens = estimateTokens(JSON.stringify(inputSchema))
    schemaTokens.set(inputSchema, tokens)
  }
  return 8 + estimateTokens(name) + estimateTokens(description) + tokens
}

function sumOf(messages: readonly ModelMessage[]): number {
  return messages.reduce((sum, message) => sum + messageTokens(message), 0)
}
