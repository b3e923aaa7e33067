// Computes the row changes of an event. The tables beside the journal (run, messages,
// interactions) are folds of it, written in the same transaction as the events. Only
// this file knows how events change rows.

import { diagnosticCodes } from '../journal/diagnostic-codes.ts'
import type { EventData, JsonValue, RunEvent } from '../journal/event.ts'
import {
  type CallState,
  engineOf,
  isProviderCall,
  openInteractions,
  type RunState,
  type StepState,
} from '../journal/run-state.ts'
import type { FileReference, Part } from '../journal/part.ts'
import { usageDay, usageOfStep } from '../journal/usage.ts'
import { defined } from '../kit/defined.ts'
import type { InteractionRow } from '../stores/interaction-store.ts'
import type { MessageRow } from '../stores/message-store.ts'
import type { RunWrite } from '../stores/run-store.ts'
import { contextMark } from './context-mark.ts'
import type { KindOf } from './run-kind.ts'
import { resultForModel } from '../journal/tool-outcome.ts'

export type RowChanges = Pick<
  RunWrite,
  | 'run'
  | 'messages'
  | 'messageStates'
  | 'files'
  | 'newInteractions'
  | 'interactionUpdates'
  | 'touchConversationAt'
  | 'dropBlobs'
  | 'snapshot'
  | 'usage'
  | 'describeConversation'
>

/** Adds the row changes of `event` to `changes`. `state` already includes the event. */
export function foldRows(runId: string, state: RunState, event: RunEvent, changes: RowChanges, kindOf: KindOf): void {
  switch (event.type) {
    case 'run.state': {
      const run: NonNullable<RunWrite['run']> = {
        ...changes.run,
        status: event.data.to,
        attempt: event.attempt,
        wakeAt: null,
      }
      if (event.data.to === 'running' && state.startedAt === event.at) run.startedAt = event.at
      if (event.data.to === 'running' && state.accepted !== undefined) run.engine = engineOf(state)
      if (event.data.to === 'waiting_user') {
        // A parked run holds no lease and no slot; `wakeAt` makes it due again at its next deadline.
        run.wakeAt = nextDeadline(state)
        run.release = true
      }
      changes.run = run
      return
    }
    case 'message.done':
      if (event.data.state !== 'active') {
        addMessage(changes, state, {
          ...blankMessage(runId, state, event),
          id: event.data.messageId,
          role: 'assistant',
          content: event.data.text,
          // Also for a text that another one superseded after a restart: it must not come back with its run when a comparison
          // is settled.
          state: 'abandoned',
        })
      }
      return
    case 'step.done': {
      const step = state.steps.at(-1)
      if (step === undefined) return
      const toolCalls = step.callIds.flatMap((callId) => {
        const call = state.calls.get(callId)
        return call === undefined ? [] : [{ callId, name: call.name, input: call.input }]
      })
      addMessage(changes, state, {
        ...blankMessage(runId, state, event),
        id: event.data.messageId,
        role: 'assistant',
        content: step.text,
        metadata: {
          runId,
          ...defined({
            toolCalls: toolCalls.length === 0 ? undefined : toolCalls,
            reasoning: step.reasoning === '' ? undefined : step.reasoning,
            sources: sourcesOf(step, event.data.messageId),
          }),
        },
      })
      changes.touchConversationAt = event.at
      changes.run = { ...changes.run, usage: state.usage }
      addUsageRow(changes, state, event, step.model)
      return
    }
    case 'answer.discarded':
      changes.run = { ...changes.run, usage: state.usage }
      addUsageRow(changes, state, event, event.data.model)
      return
    case 'tool.done': {
      const call = state.calls.get(event.data.callId)
      // What a provider did itself is part of its answer, and only the answer is sent to a model again.
      if (call === undefined || isProviderCall(call)) return
      const { files = [] } = event.data
      if (files.length > 0) changes.files = [...(changes.files ?? []), ...files.map(({ fileId }) => fileId)]
      const content = resultForModel(event.data)
      addMessage(changes, state, {
        ...blankMessage(runId, state, event),
        id: event.data.messageId,
        role: 'tool',
        content,
        ...(files.length === 0 ? {} : { parts: partsOfResult(content, files) }),
        toolCallId: call.callId,
        metadata: {
          runId,
          toolName: call.name,
          outcome: event.data.outcome,
          input: call.input,
          summary: event.data.summary,
          ...defined({ outputRef: event.data.outputRef }),
        },
      })
      addOutcome(changes, call, event)
      return
    }
    case 'input.required': {
      changes.newInteractions ??= []
      changes.newInteractions.push(interactionRow(runId, state, event))
      return
    }
    case 'run.ended':
      changes.run = {
        ...changes.run,
        status: event.data.status,
        endedAt: event.at,
        error: event.data.error ?? null,
        wakeAt: null,
        release: true,
      }
      changes.touchConversationAt = event.at
      if (event.data.status === 'succeeded') replaceAnswer(changes, state)
      if (state.accepted !== undefined) {
        const { cacheKey, ...rows } = kindOf(state.accepted.spec).changesAtEnd(runId, state)
        if (cacheKey !== undefined) changes.run.cacheKey = cacheKey
        Object.assign(changes, rows)
      }
      return
    case 'input.resolved':
      if (event.data.resolution === 'closed') {
        changes.interactionUpdates ??= []
        changes.interactionUpdates.push({ id: event.data.interactionId, closePending: true, at: event.at })
      }
      return
    case 'output.rejected':
      // The next turn of a chat must see only the answer that was accepted.
      if (state.accepted?.spec.outputSchema !== undefined) {
        changes.messageStates ??= []
        changes.messageStates.push({ id: event.data.messageId, state: 'abandoned' })
      }
      return
    case 'context.cut': {
      // The steps of the run itself are left out only while it executes; later runs read its finished turn.
      if (event.data.strategy === 'run_steps') return
      addMessage(changes, state, {
        ...contextMessage(runId, state, event),
        id: `cut-${runId}-${event.seq}`,
        content: '',
        metadata: { runId, context: contextMark(event.data.keptFromMessageId, event.data.summaryMessageId) },
      })
      return
    }
    case 'context.summarised': {
      const { summaryMessageId, keptFromMessageId, text, model } = event.data
      addMessage(changes, state, {
        ...contextMessage(runId, state, event),
        id: summaryMessageId,
        content: text,
        metadata: { runId, context: contextMark(keptFromMessageId, summaryMessageId) },
      })
      changes.run = { ...changes.run, usage: state.usage }
      addUsageRow(changes, state, event, model)
      return
    }
    case 'run.accepted':
    case 'run.prepared':
    case 'step.started':
    case 'text.delta':
    case 'reasoning.delta':
    case 'source.found':
    case 'tool.called':
    case 'tool.started':
    case 'tool.progress':
    case 'context.patch':
    case 'engine.handle':
      return
    case 'diagnostic':
      if (event.data.code === diagnosticCodes.engineFallback) changes.run = { ...changes.run, engine: engineOf(state) }
      return
  }
}

/** Adds the outcome of a call to the row of its confirmation. */
function addOutcome(
  changes: RowChanges,
  call: CallState,
  { data, at }: Extract<RunEvent, { type: 'tool.done' }>,
): void {
  const { interactionId: id, decision } = call
  if (id === undefined || (decision !== 'confirmed' && decision !== 'closed')) return
  const error = data.error ?? null
  changes.interactionUpdates ??= []
  if (decision === 'closed') {
    // A person may have confirmed the call just before its run ended; then only the row has that decision.
    changes.interactionUpdates.push({ id, errorIfConfirmed: error, at })
    return
  }
  const neverRan = data.outcome === 'cancelled' && !call.started
  changes.interactionUpdates.push({
    id,
    result: resultOf(data),
    error,
    ...(neverRan ? {} : { executedAt: at }),
    at,
  })
}

/** What a call returned, as its confirmation shows it; a long output only with its beginning, as in `tool.state`. */
function resultOf({ output, truncated, fullLength, outputRef }: EventData<'tool.done'>): JsonValue {
  if (output === undefined) return null
  return truncated ? { truncated, fullLength, preview: output, ...defined({ ref: outputRef }) } : output
}

/** The sources of a message as its row has them; undefined if there are none. */
function sourcesOf(step: StepState, messageId: string): Record<string, string>[] | undefined {
  const sources = step.sources.filter((source) => source.messageId === messageId)
  return sources.length === 0 ? undefined : sources.map(({ messageId: _message, ...source }) => defined(source))
}

function partsOfResult(text: string, files: readonly FileReference[]): Part[] {
  return [{ type: 'text', text }, ...files.map((file): Part => ({ type: 'file', ...file }))]
}

export function nextDeadline(state: RunState): number | null {
  const deadlines = openInteractions(state).flatMap((open) => (open.deadlineAt === undefined ? [] : [open.deadlineAt]))
  return deadlines.length === 0 ? null : Math.min(...deadlines)
}

/** Replaces the old answer by a regenerated one. Called only when the new answer is complete, so a failure keeps the old one. */
function replaceAnswer(changes: RowChanges, state: RunState): void {
  const spec = state.accepted?.spec
  if (spec?.supersedes === undefined) return
  changes.messageStates ??= []
  for (const id of spec.supersedes) changes.messageStates.push({ id, state: 'superseded' })
  if (spec.variant === 'shadow') return
  const own = [
    ...state.steps.flatMap(({ step, finished, messageId }) =>
      finished && !state.rejectedOutputs.has(step) ? [messageId] : [],
    ),
    ...[...state.calls.values()].flatMap((call) => (call.done === undefined ? [] : [call.done.messageId])),
  ]
  for (const id of own) changes.messageStates.push({ id, state: 'active' })
}

/** Adds a message row. Runs without a conversation have their messages only in the journal. */
function addMessage(changes: RowChanges, state: RunState, message: MessageRow): void {
  if (state.accepted?.conversationId == null) return
  changes.messages ??= []
  changes.messages.push(message)
}

function addUsageRow(
  changes: RowChanges,
  state: RunState,
  { at, data }: Extract<RunEvent, { type: 'step.done' | 'answer.discarded' | 'context.summarised' }>,
  model: string,
): void {
  changes.usage ??= []
  changes.usage.push({
    owner: state.accepted?.owner ?? 'anonymous',
    day: usageDay(at),
    agentId: state.accepted?.spec.agentId ?? 'default',
    model,
    conversationId: state.accepted?.conversationId ?? null,
    totals: usageOfStep(data),
  })
}

/**
 * A hidden row that tells later runs what the model is no longer given. It is about the messages before this turn, so it stays
 * valid if the answer of this turn fails or is replaced by another one.
 */
function contextMessage(runId: string, state: RunState, event: RunEvent): Omit<MessageRow, 'id' | 'content'> {
  const shadow = state.accepted?.spec.variant === 'shadow'
  return { ...blankMessage(runId, state, event), role: 'system', state: shadow ? 'superseded' : 'active' }
}

function blankMessage(runId: string, state: RunState, event: RunEvent): Omit<MessageRow, 'id' | 'role' | 'content'> {
  const spec = state.accepted?.spec
  return {
    conversationId: state.accepted?.conversationId ?? '',
    runId,
    parentId: state.accepted?.userMessageId ?? null,
    state: spec?.variant === 'shadow' || spec?.supersedes !== undefined ? 'superseded' : 'active',
    toolCallId: null,
    metadata: { runId },
    createdAt: event.at,
  }
}

function interactionRow(
  runId: string,
  state: RunState,
  event: Extract<RunEvent, { type: 'input.required' }>,
): InteractionRow {
  const { data, at } = event
  const call = data.callId === undefined ? undefined : state.calls.get(data.callId)
  return {
    id: data.interactionId,
    number: data.number,
    runId,
    owner: state.accepted?.owner ?? 'anonymous',
    conversationId: state.accepted?.conversationId ?? null,
    kind: data.kind,
    callId: data.callId ?? null,
    toolName: call?.name ?? null,
    prompt: data.prompt,
    input: data.input ?? call?.input ?? null,
    outcome: data.outcome ?? null,
    status: 'pending',
    response: null,
    reason: null,
    decidedBy: null,
    decidedAt: null,
    result: null,
    error: null,
    executedAt: null,
    deadlineAt: data.deadlineAt ?? null,
    atDeadline: data.atDeadline ?? null,
    reply: null,
    createdAt: at,
    updatedAt: at,
  }
}
