// The trace of a run, computed from its journal alone. Text and tool entries come from the
// chunks dialect (with uncut outputs), so a trace and a stream cannot differ. Status, times
// and totals come from the events; the trace of an ended run never changes.

import type { EventData, RunEvent } from '../../journal/event.ts'
import { isoTime } from '../../kit/clock.ts'
import { chunksDialect, type ChunksState } from './chunks.ts'
import { shownConversationIdOrNull } from '../../kit/conversation-id.ts'

export type TraceEvent = { type: string; timestamp: string } & Record<string, unknown>

export type TraceStatus = 'running' | 'completed' | 'cancelled' | 'error'

export type Trace = {
  trace_id: string
  conversation_id: string | null
  /** The answer; null until it is complete. */
  message_id: string | null
  user_message_id: string | null
  config_id: string | null
  pipeline_name: string | null
  events: TraceEvent[]
  started_at: string | null
  completed_at: string | null
  status: TraceStatus
  total_tool_calls: number
  /** Null if the provider does not report usage. */
  total_tokens_used: number | null
  /** In millionths of a US dollar, over the steps whose cost is known; null if there is none. */
  total_cost_micro_usd: number | null
  /** Null until the run has ended. */
  total_duration_ms: number | null
  /** `user` or `system`. */
  cancelled_by: string | null
  cancellation_reason: string | null
  created_at: string | null
  /** Null unless the status is `error`. */
  error: { code: string; message: string } | null
}

export type TraceFold = { readonly trace: Trace; state: ChunksState; owner: string; acceptedAt: number }

const wire = chunksDialect({ outputChars: null })

export function openTrace(runId: string): TraceFold {
  return {
    state: wire.open({ runId }),
    owner: '',
    acceptedAt: 0,
    trace: {
      trace_id: runId,
      conversation_id: null,
      message_id: null,
      user_message_id: null,
      config_id: null,
      pipeline_name: null,
      events: [],
      started_at: null,
      completed_at: null,
      status: 'running',
      total_tool_calls: 0,
      total_tokens_used: null,
      total_cost_micro_usd: null,
      total_duration_ms: null,
      cancelled_by: null,
      cancellation_reason: null,
      created_at: null,
      error: null,
    },
  }
}

/** Folds one event into the trace, in place. */
export function addToTrace(fold: TraceFold, event: RunEvent): void {
  const { trace } = fold
  const timestamp = isoTime(event.at)
  const { state, frames } = wire.step(fold.state, event)
  fold.state = state
  switch (event.type) {
    case 'run.accepted':
      fold.owner = event.data.owner
      fold.acceptedAt = event.at
      trace.conversation_id = shownConversationIdOrNull(event.data.conversationId)
      trace.user_message_id = event.data.userMessageId
      trace.config_id = event.data.spec.configName ?? null
      trace.pipeline_name = event.data.spec.agentId
      trace.started_at = timestamp
      trace.created_at = timestamp
      return
    case 'text.delta':
      for (const { data } of frames) {
        const { content } = data as { content: string }
        trace.events.push({ type: 'text', content, message_id: event.data.messageId, timestamp })
      }
      return
    case 'reasoning.delta':
      trace.events.push({ type: 'thinking', content: event.data.text, timestamp })
      return
    case 'tool.called':
      trace.total_tool_calls += 1
      return
    case 'tool.started':
      for (const frame of frames) trace.events.push({ ...(frame.data as TraceEvent), timestamp })
      if (frames.some(({ name }) => name === 'tool_output')) showArgumentsUsed(trace, event.data)
      return
    case 'step.done':
    case 'answer.discarded':
      addUsage(trace, event.data, timestamp)
      return
    case 'context.cut': {
      const { strategy, fromMessageId, throughMessageId, messages, tokens } = event.data
      trace.events.push({
        type: 'context_cut',
        strategy,
        from_message_id: fromMessageId ?? null,
        through_message_id: throughMessageId,
        messages,
        tokens,
        timestamp,
      })
      return
    }
    case 'context.summarised': {
      const { summaryMessageId, fromMessageId, throughMessageId, messages, tokens, text } = event.data
      trace.events.push({
        type: 'context_summary',
        content: text,
        message_id: summaryMessageId,
        from_message_id: fromMessageId ?? null,
        through_message_id: throughMessageId,
        messages,
        tokens,
        timestamp,
      })
      addUsage(trace, event.data, timestamp)
      return
    }
    case 'run.ended':
      endTrace(fold, event.data, event.at)
      return
    default:
      for (const frame of frames) trace.events.push({ ...(frame.data as TraceEvent), timestamp })
  }
}

/** If a person changed the arguments when confirming, the tool_start entry shows the arguments that the call ran with. */
function showArgumentsUsed(trace: Trace, { callId, input }: EventData<'tool.started'>): void {
  const start = trace.events.findLast((event) => event.type === 'tool_start' && event.tool_call_id === callId)
  if (start === undefined) return
  start.requested_args ??= start.tool_args
  start.tool_args = input
}

function addUsage(
  trace: Trace,
  { usage, costMicroUsd }: Pick<EventData<'step.done'>, 'usage' | 'costMicroUsd'>,
  timestamp: string,
): void {
  if (usage === undefined) return
  if (costMicroUsd !== undefined) trace.total_cost_micro_usd = (trace.total_cost_micro_usd ?? 0) + costMicroUsd
  const prompt = usage.inputTokens ?? 0
  const completion = usage.outputTokens ?? 0
  trace.total_tokens_used = (trace.total_tokens_used ?? 0) + prompt + completion
  trace.events.push({
    type: 'usage',
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    cached_tokens: usage.cachedTokens ?? 0,
    cache_write_tokens: usage.cacheWriteTokens ?? 0,
    reasoning_tokens: usage.reasoningTokens ?? 0,
    cost_micro_usd: costMicroUsd ?? null,
    timestamp,
  })
}

function endTrace(fold: TraceFold, ended: EventData<'run.ended'>, at: number): void {
  const { trace } = fold
  trace.completed_at = isoTime(at)
  // If the run's first row is unreadable, its start time is unknown.
  if (trace.created_at !== null) trace.total_duration_ms = Math.max(0, at - fold.acceptedAt)
  switch (ended.status) {
    case 'succeeded':
      trace.status = 'completed'
      trace.message_id = ended.messageId ?? null
      return
    case 'failed':
      trace.status = 'error'
      trace.error = { code: ended.error?.code ?? 'internal_error', message: ended.error?.message ?? 'The run failed.' }
      return
    case 'canceled':
      trace.status = 'cancelled'
      trace.cancelled_by = ended.by === fold.owner ? 'user' : 'system'
      trace.cancellation_reason = ended.reason ?? null
  }
}

export function traceOf(runId: string, events: Iterable<RunEvent>): Trace {
  const fold = openTrace(runId)
  for (const event of events) addToTrace(fold, event)
  return fold.trace
}
