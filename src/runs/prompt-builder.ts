// Builds the prompts of a run. If a prompt does not fit, it decides what is left out, and journals that
// before the request is sent: as a cut, or as a summary that a model writes. The decisions come from
// the journal and the rows of the conversation only, so a restart builds the same prompt.

import type { AgentDefinition } from '../agents/agent-definition.ts'
import type { StepEngine } from '../engines/engine.ts'
import { AppError } from '../errors/app-error.ts'
import type { NewEvent, Usage } from '../journal/event.ts'
import { nextStepNumber, specOf } from '../journal/run-state.ts'
import { atPlace } from '../kit/activity.ts'
import { defined } from '../kit/defined.ts'
import type { ModelMessage } from '../models/model.ts'
import type { MessageRow } from '../stores/message-store.ts'
import type { Tool } from '../tools/tool.ts'
import { workspaceRules } from './consent.ts'
import { historyToDrop, stepsToDrop, withFittingResults } from './context-fit.ts'
import { type ContextRoom, contextRoom } from './context-room.ts'
import { blocksThatFit, summaryRequest, writeSummary } from './context-summary.ts'
import {
  type ConversationHistory,
  historyBounds,
  readConversationHistory,
  type UnreadMessages,
} from './history-reader.ts'
import { discardedAnswer } from './model-step.ts'
import { answerRule } from './output-check.ts'
import { type PromptParts, promptMessages, promptParts } from './prompt.ts'
import { blockTokens, type PromptBlock, stepBlocks } from './prompt-blocks.ts'
import { ProviderStates } from './provider-states.ts'
import type { RunDependencies } from './run-dependencies.ts'
import type { RunSignal } from './run-signal.ts'
import type { RunWriter } from './run-writer.ts'

/** The code of the `diagnostic` event which records that a summary could not be written, and the history was cut instead. */
export const summaryFailed = 'context_summary_failed'

/** How long a summary may be, as a share of the memory, and in tokens. */
const summaryShare = 1 / 8
const summaryTokens = { min: 128, max: 4000 }

export type PromptRequest = {
  tools: readonly Tool[]
  /** The engine that can write summaries; absent for remote agents, whose history is cut instead. */
  engine?: StepEngine
  withoutReplies?: boolean
  /** Aborts the writing of a summary. */
  signal: RunSignal
  /** The provider refused the last prompt as too long: at most half of it may be sent. */
  halve?: boolean
}

/** Shared by all runs that begin a conversation. */
const noHistory: ConversationHistory = { rows: [], isCut: false, summary: undefined, unread: undefined }

export class PromptBuilder {
  private readonly writer: RunWriter
  private readonly dependencies: RunDependencies
  private readonly providerStates: ProviderStates
  private history: ConversationHistory | undefined
  private canSummarise = true

  /** `isFirstTurn`: there are no earlier messages. */
  constructor(writer: RunWriter, dependencies: RunDependencies, isFirstTurn = false) {
    this.writer = writer
    this.dependencies = dependencies
    if (isFirstTurn) this.history = noHistory
    this.providerStates = new ProviderStates(dependencies.store)
  }

  /** The messages for the next request. With `halve`, undefined if nothing can be left out. */
  async build(request: PromptRequest): Promise<ModelMessage[] | undefined> {
    await this.providerStates.load(this.writer.state)
    const history = await this.readHistory()
    let parts = this.partsOf(request)
    const room = this.roomFor(request, parts)
    let changed = false
    // Each round leaves out more, and the last one has nothing left that could be left out.
    for (;;) {
      const { keptFrom } = this.writer.state.context
      const unread = keptFrom === undefined ? history.unread : undefined
      const dropped = historyToDrop(parts, room, unread !== undefined)
      if (dropped > 0 || unread !== undefined) await this.leaveOut(parts, dropped, unread, room, request)
      else {
        const steps = stepsToDrop(parts, room)
        if (steps === 0) break
        await this.writer.write(cutEvent('run_steps', parts.steps.slice(0, steps), idOf(parts.steps[steps])))
      }
      changed = true
      parts = this.partsOf(request)
    }
    if (request.halve === true && !changed) return undefined
    return promptMessages(withFittingResults(parts, room))
  }

  /** Whether the model is shown only a part of a tool output, so that it needs a tool to read on. */
  async hasCutOutputs(): Promise<boolean> {
    const { rows } = await this.readHistory()
    if (rows.some(({ role, metadata }) => role === 'tool' && metadata.outputRef !== undefined)) return true
    const { calls } = this.writer.state
    if ([...calls.values()].some(({ done }) => done?.outputRef !== undefined)) return true
    // Results that may have to be shortened to fit.
    const large = this.room([], [], undefined).window / 2
    return stepBlocks(this.writer.state, () => undefined, false).some(({ tokens }) => tokens > large)
  }

  /** The messages of the conversation before this run that the model may be given. */
  async historyRows(): Promise<readonly MessageRow[]> {
    return (await this.readHistory()).rows
  }

  /** Read once and cached, because earlier turns do not change while this run has its turn in the conversation. */
  private async readHistory(): Promise<ConversationHistory> {
    const { accepted } = this.writer.state
    if (accepted === undefined) throw new AppError('internal_error', 'A run without its first event has no history.')
    if (this.history === undefined) {
      const tokensMax = 2 * this.room([], [], undefined).window
      const bounds = { ...historyBounds, tokensMax }
      this.history = await readConversationHistory(this.dependencies.store, accepted, this.writer.runId, bounds)
    }
    return this.history
  }

  private definition(): AgentDefinition {
    return this.dependencies.catalogue.lastWorking(specOf(this.writer.state).agentId)
  }

  private partsOf({ tools, withoutReplies = false }: PromptRequest): PromptParts {
    const { state } = this.writer
    const { accepted } = state
    const spec = specOf(state)
    return promptParts({
      definition: this.definition(),
      systemPrompt: this.dependencies.kindOf(spec).systemPrompt(spec),
      history: this.history?.rows ?? [],
      historyIsCut: this.history?.isCut === true,
      summary: state.context.summary?.text ?? this.history?.summary?.text,
      instructions: spec.instructions,
      input: accepted?.continuesHistory === true ? null : (accepted?.input ?? ''),
      context: spec.context,
      rules: [workspaceRules(spec, [...tools]), answerRule(spec)].filter((rule) => rule !== null),
      state,
      providerStateOf: (step) => this.providerStates.of(step, spec.model),
      withoutReplies,
    })
  }

  private roomFor(request: PromptRequest, parts: PromptParts): ContextRoom {
    const { maxTokens } = this.definition().card.memory
    const room = this.room(request.tools, parts.system, maxTokens)
    if (request.halve !== true) return room
    const { summary, history, asked, steps } = parts
    const half = Math.floor(blockTokens([...summary, ...history, ...asked, ...steps]) / 2)
    return { ...room, window: Math.min(room.window, half), memory: Math.min(room.memory, half) }
  }

  private room(tools: readonly Tool[], system: readonly ModelMessage[], maxTokens: number | undefined, model?: string) {
    const { modelTable, limits } = this.dependencies
    const spec = specOf(this.writer.state)
    return contextRoom({
      facts: modelTable.find(model ?? spec.model),
      contextTokens: limits.contextTokens,
      spec: model === undefined ? spec : {},
      tools,
      system,
      maxTokens,
    })
  }

  /** Journals that the first `count` blocks of the history are left out, or the summary in their place. */
  private async leaveOut(
    parts: PromptParts,
    count: number,
    unread: UnreadMessages | undefined,
    room: ContextRoom,
    request: PromptRequest,
  ): Promise<void> {
    const { writer } = this
    const dropped = parts.history.slice(0, count)
    const keptFrom = idOf(parts.history[count] ?? parts.asked[0])
    const summaryId = writer.state.context.summary?.summaryMessageId ?? this.history?.summary?.messageId
    const { engine } = request
    if (
      this.definition().card.memory.strategy === 'summary' &&
      engine !== undefined &&
      // Without a conversation there is no later run that could use the summary.
      writer.state.accepted?.conversationId !== null &&
      this.canSummarise &&
      dropped.length > 0
    ) {
      try {
        const events = await this.summarised(dropped, keptFrom, unread, summaryId, room, { ...request, engine })
        writer.push(...events)
      } catch (error) {
        if (request.signal.aborted || writer.lost !== undefined || !(error instanceof AppError)) throw error
        this.canSummarise = false
        writer.push({
          type: 'diagnostic',
          data: {
            code: summaryFailed,
            message: `The older messages could not be summarised, so the model is not given them. ${error.message}`,
            details: { error: error.code },
          },
        })
      }
      // On disk before it is used, so that it is never asked for twice.
      if (this.canSummarise) return await writer.committed()
    }
    await writer.write(cutEvent('sliding_window', dropped, keptFrom, unread, summaryId))
  }

  /** The events of a new summary, with a cut before it if not all of the messages fit into the request for the summary. */
  private async summarised(
    dropped: readonly PromptBlock[],
    keptFrom: string,
    unread: UnreadMessages | undefined,
    summaryId: string | undefined,
    room: ContextRoom,
    { engine, signal }: PromptRequest & { engine: StepEngine },
  ): Promise<NewEvent[]> {
    const { dependencies, writer } = this
    const { runId, state } = writer
    const spec = specOf(state)
    const { summaryModel } = this.definition().card.memory
    const model = summaryModel === undefined ? spec.model : dependencies.models.resolve(summaryModel)
    const tokensMax = Math.min(summaryTokens.max, Math.max(summaryTokens.min, Math.floor(room.memory * summaryShare)))
    const earlier = state.context.summary?.text ?? this.history?.summary?.text
    const frame = summaryRequest(earlier, [], tokensMax)
    const blocks = blocksThatFit(dropped, this.room([], frame, undefined, model).window)
    if (blocks.length === 0)
      throw new AppError('model_error', 'The messages are too long for the model of the summary.')
    atPlace('summary of the conversation')
    const context = {
      engine,
      clock: dependencies.clock,
      stallMs: dependencies.limits.stallMs,
      signal,
      runId,
      spec,
      model,
      discarded: (spent: Usage) => {
        if (writer.lost === undefined) writer.push(discardedAnswer(nextStepNumber(state), model, spent, dependencies))
      },
    }
    const { text, usage, durationMs } = await writeSummary(
      summaryRequest(earlier, blocks, tokensMax),
      tokensMax,
      context,
    )
    const costMicroUsd = dependencies.modelTable.costOf(model, usage)
    dependencies.meter?.stepDone({
      model,
      usage,
      costMicroUsd,
      seconds: durationMs / 1000,
      firstPartSeconds: undefined,
    })
    const left = dropped.slice(0, dropped.length - blocks.length)
    const ids = blocks.flatMap((block) => block.ids)
    return [
      ...(left.length > 0 || unread !== undefined
        ? [cutEvent('sliding_window', left, idOf(blocks[0]), unread, summaryId)]
        : []),
      {
        type: 'context.summarised',
        data: {
          summaryMessageId: dependencies.ids(),
          fromMessageId: idOf(blocks[0]),
          throughMessageId: ids.at(-1) ?? '',
          keptFromMessageId: keptFrom,
          messages: ids.length,
          tokens: blockTokens(blocks),
          text,
          model,
          durationMs,
          ...defined({ usage, costMicroUsd }),
        },
      },
    ]
  }
}

function idOf(block: PromptBlock | undefined): string {
  return block?.ids[0] ?? ''
}

function cutEvent(
  strategy: 'sliding_window' | 'run_steps',
  dropped: readonly PromptBlock[],
  keptFromMessageId: string,
  unread?: UnreadMessages,
  summaryMessageId?: string,
): NewEvent {
  const ids = dropped.flatMap((block) => block.ids)
  return {
    type: 'context.cut',
    data: {
      strategy,
      ...defined({ fromMessageId: unread?.fromMessageId ?? ids[0] }),
      throughMessageId: ids.at(-1) ?? unread?.throughMessageId ?? '',
      keptFromMessageId,
      messages: ids.length + (unread?.messages ?? 0),
      tokens: blockTokens(dropped) + (unread?.tokens ?? 0),
      ...defined({ summaryMessageId }),
    },
  }
}
