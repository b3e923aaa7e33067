// The response object of OpenAI's Responses API, and the ids that it uses. A run is one response,
// or several if it waited for its client in between: `resp_<run>`, `resp_<run>_2` …

import type { EventData, JsonValue } from '../../journal/event.ts'
import { isReported, type UsageTotals } from '../../journal/usage.ts'
import { shownConversationIdOrNull } from '../../kit/conversation-id.ts'

export type ResponseItem = Readonly<Record<string, unknown>> & { readonly id: string; readonly type: string }

export type ResponseStatus = 'queued' | 'in_progress' | 'completed' | 'failed' | 'incomplete' | 'cancelled'

export type ResponseObject = Record<string, unknown> & { id: string; status: ResponseStatus; output: ResponseItem[] }

/** `index` counts the responses of a run from 0. */
export function responseId(runId: string, index: number): string {
  return index === 0 ? `resp_${runId}` : `resp_${runId}_${index + 1}`
}

/** Undefined if it is not the id of a response. */
export function parseResponseId(id: string): { runId: string; index: number } | undefined {
  const match = /^resp_(.+?)(?:_([1-9]\d{0,5}))?$/.exec(id)
  if (match?.[1] === undefined) return undefined
  return { runId: match[1], index: match[2] === undefined ? 0 : Number(match[2]) - 1 }
}

/** The fields that are known when the run is accepted and never change. */
export function requestFields({ spec, echo = {}, conversationId }: EventData<'run.accepted'>): Record<string, unknown> {
  const tools = (spec.clientTools ?? []).map(({ name, description = null, inputSchema, strict = false }) => ({
    type: 'function',
    name,
    description,
    parameters: inputSchema,
    strict,
  }))
  const isStored = echo['in_conversation'] === true
  return {
    background: echo['background'] === true,
    conversation: isStored ? { id: shownConversationIdOrNull(conversationId) } : null,
    instructions: echo['instructions'] ?? null,
    max_output_tokens: spec.maxTokens ?? null,
    max_tool_calls: null,
    metadata: echo['metadata'] ?? {},
    model: echo['model'] ?? spec.model,
    parallel_tool_calls: echo['parallel_tool_calls'] ?? true,
    previous_response_id: echo['previous_response_id'] ?? null,
    reasoning: echo['reasoning'] ?? { effort: null, summary: null },
    service_tier: 'default',
    store: echo['store'] ?? true,
    temperature: spec.temperature ?? 1,
    text: echo['text'] ?? { format: { type: 'text' } },
    tool_choice: echo['tool_choice'] ?? 'auto',
    tools,
    top_p: echo['top_p'] ?? 1,
    truncation: 'auto',
    user: null,
  }
}

export function responseUsage(usage: UsageTotals): Record<string, unknown> | null {
  if (!isReported(usage)) return null
  const { inputTokens, cachedTokens, outputTokens, reasoningTokens } = usage
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: cachedTokens },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: inputTokens + outputTokens,
  }
}

/** The server that a tool belongs to, for the items of calls. */
export function serverLabel(source: string | undefined): string {
  const match = /^(?:mcp|provider|engine):(.+)$/.exec(source ?? '')
  return match?.[1] ?? 'polylog'
}

export function argumentText(input: JsonValue | undefined): string {
  return JSON.stringify(input ?? {})
}
