// Assembles the prompt: the agent's instructions, the caller's context, the summary and the history
// of the conversation, the message to answer, and the steps of this run so far. Which part of
// the history and of the steps still fits is decided in `context-fit.ts`. Pure.

import type { AgentDefinition } from '../agents/agent-definition.ts'
import { renderTemplate } from '../agents/template.ts'
import type { JsonValue } from '../journal/event.ts'
import type { RunState, StepState } from '../journal/run-state.ts'
import { sortedJson } from '../kit/sorted-json.ts'
import type { ModelMessage } from '../models/model.ts'
import type { MessageRow } from '../stores/message-store.ts'
import { historyBlocks, type PromptBlock, promptBlock, stepBlocks, userMessage } from './prompt-blocks.ts'

export type PromptInput = {
  definition: AgentDefinition
  /** Replaces the instructions of the agent definition. */
  systemPrompt?: string | undefined
  /** Instructions of the caller, in addition to the agent's. */
  instructions?: string | undefined
  /** From the message on where the last cut left off. */
  history: readonly MessageRow[]
  /** True if the conversation has messages before `history`. */
  historyIsCut?: boolean
  /** What stands for the messages before `history`. */
  summary?: string | undefined
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

/** The id of the message to answer in a run without a conversation. */
const unstoredQuestion = 'input'

/** A prompt before it is decided what fits. */
export type PromptParts = {
  system: readonly ModelMessage[]
  summary: readonly PromptBlock[]
  history: readonly PromptBlock[]
  /** The message to answer: the user's message, or the tool calls and results that the model continues from. */
  asked: readonly PromptBlock[]
  steps: readonly PromptBlock[]
}

export function promptParts(input: PromptInput): PromptParts {
  const { state, providerStateOf = () => undefined, withoutReplies = false } = input
  const history = historyBlocks(input.history)
  const asked =
    input.input === null
      ? history.splice(-1)
      : [
          promptBlock(
            [userMessage(input.input, state.accepted?.parts)],
            [state.accepted?.userMessageId ?? unstoredQuestion],
            true,
          ),
        ]
  const from =
    state.context.keptFrom === undefined ? 0 : history.findIndex(({ ids }) => ids[0] === state.context.keptFrom)
  const steps = stepBlocks(state, providerStateOf, withoutReplies)
  return {
    system: systemMessages(input),
    summary: input.summary === undefined ? [] : [promptBlock([summaryMessage(input.summary)], [])],
    // Not found: the message to answer is the first one that is kept.
    history: from === -1 ? [] : history.slice(from),
    asked,
    steps: steps.slice(
      Math.max(
        0,
        steps.findIndex(({ ids }) => ids[0] === state.context.stepsFrom),
      ),
    ),
  }
}

export function promptMessages({ system, summary, history, asked, steps }: PromptParts): ModelMessage[] {
  // Each run keeps the list until its answer ends, and `concat` makes no room for more.
  return system.concat([...summary, ...history, ...asked, ...steps].flatMap((block) => block.messages))
}

const systemPrompts = new WeakMap<AgentDefinition, string>()

/** One text for all runs of an agent: each run keeps its prompt until the answer begins. */
function systemPromptOf(definition: AgentDefinition): string {
  let text = systemPrompts.get(definition)
  if (text === undefined) {
    text = renderTemplate(definition.systemTemplate, definition.defaults)
    systemPrompts.set(definition, text)
  }
  return text
}

function systemMessages(input: PromptInput): ModelMessage[] {
  const { definition, systemPrompt, instructions, context, rules = [] } = input
  const system: ModelMessage[] = [{ role: 'system', content: systemPrompt ?? systemPromptOf(definition) }]
  for (const content of rules) system.push({ role: 'system', content })
  if (instructions !== undefined)
    system.push({ role: 'system', content: `Instructions given by the application:\n${instructions}` })
  if (context !== undefined && Object.keys(context).length > 0) {
    system.push({ role: 'system', content: `Context given by the application (JSON):\n${sortedJson(context)}` })
  }
  // Only the summary or a cut changes this, and then the history begins with another message anyway.
  const missing = missingNote(input)
  if (missing !== null) system.push({ role: 'system', content: missing })
  // Some providers refuse an empty text.
  return system.filter(({ content }) => content.trim() !== '')
}

/** A model that does not know that something is missing takes what it sees for everything that was said. */
function missingNote({ historyIsCut = false, summary, state }: PromptInput): string | null {
  const notes: string[] = []
  if ((historyIsCut || state.context.keptFrom !== undefined) && summary === undefined)
    notes.push('The beginning of this conversation is not shown to you any more.')
  if (state.context.stepsFrom !== undefined)
    notes.push('The first steps of your work on the last message are not shown to you any more.')
  return notes.length === 0 ? null : notes.join('\n')
}

/** A message of the user, not of the system: the summary repeats what users said, and must not have more weight than that. */
function summaryMessage(text: string): ModelMessage {
  return {
    role: 'user',
    content: `(Summary of the earlier part of this conversation, which is not shown any more.)\n${text}`,
  }
}
