// The spans of a run: their names and attributes, in one place. They follow the conventions of
// OpenTelemetry for generative AI; what these have no name for begins with `polylog.`. No text
// of a prompt, an answer, an argument or a result is in a span.

import type { EventData, RunSpec, ToolOutcome, Usage } from '../journal/event.ts'
import { isReported, type UsageTotals } from '../journal/usage.ts'
import { defined } from '../kit/defined.ts'
import type { SpanAttributes, SpanStart } from '../kit/tracer.ts'
import type { RunState } from '../journal/run-state.ts'
import { providerOf } from './provider-states.ts'

/** Names that providers have in the conventions; others keep their own. */
const providerNames: Readonly<Record<string, string>> = { google: 'gcp.gemini' }

function providerName(model: string): string {
  const { name } = providerOf(model)
  return providerNames[name] ?? name
}

export function runSpan(runId: string, accepted: EventData<'run.accepted'>, at: number): SpanStart {
  const { spec, conversationId, family } = accepted
  return {
    name: `invoke_agent ${spec.agentId}`,
    kind: 'server',
    at,
    attributes: {
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.provider.name': providerName(spec.model),
      'gen_ai.request.model': providerOf(spec.model).model,
      'gen_ai.agent.id': spec.agentId,
      'polylog.run.id': runId,
      'polylog.run.family': family,
      'polylog.run.engine': spec.engine,
      ...(conversationId === null ? {} : { 'gen_ai.conversation.id': conversationId }),
    },
  }
}

export function runEndAttributes(state: RunState, status: string): SpanAttributes {
  return {
    'polylog.run.status': status,
    'polylog.run.attempts': state.attempt,
    'polylog.run.steps': state.steps.length,
    ...(isReported(state.usage) ? totalsAttributes(state.usage) : {}),
  }
}

function totalsAttributes({ inputTokens, outputTokens, cachedTokens, costMicroUsd }: UsageTotals): SpanAttributes {
  return {
    'gen_ai.usage.input_tokens': inputTokens,
    'gen_ai.usage.output_tokens': outputTokens,
    'gen_ai.usage.cache_read.input_tokens': cachedTokens,
    ...(costMicroUsd === null ? {} : { 'polylog.cost_usd': costMicroUsd / 1_000_000 }),
  }
}

export function stepSpan(runId: string, spec: RunSpec, step: number, at: number): SpanStart {
  const { model } = providerOf(spec.model)
  return {
    name: `chat ${model}`,
    kind: 'client',
    at,
    attributes: {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': providerName(spec.model),
      'gen_ai.request.model': model,
      'polylog.run.id': runId,
      'polylog.step': step,
      ...defined({
        'gen_ai.request.temperature': spec.temperature,
        'gen_ai.request.max_tokens': spec.maxTokens,
      }),
    },
  }
}

export function stepEndAttributes(end: {
  finishReason: string
  toolCalls: number
  usage: Usage | undefined
  costMicroUsd: number | undefined
  firstPartSeconds: number | undefined
}): SpanAttributes {
  const { usage, costMicroUsd, firstPartSeconds } = end
  return {
    'gen_ai.response.finish_reasons': [end.finishReason],
    'polylog.tool_calls': end.toolCalls,
    ...defined({
      'gen_ai.usage.input_tokens': usage?.inputTokens,
      'gen_ai.usage.output_tokens': usage?.outputTokens,
      'gen_ai.usage.cache_read.input_tokens': usage?.cachedTokens,
      'gen_ai.usage.cache_creation.input_tokens': usage?.cacheWriteTokens,
      'gen_ai.response.time_to_first_chunk': firstPartSeconds,
      'polylog.cost_usd': costMicroUsd === undefined ? undefined : costMicroUsd / 1_000_000,
    }),
  }
}

export function toolSpan(
  runId: string,
  call: { callId: string; name: string; source?: string | undefined },
  at: number,
): SpanStart {
  return {
    name: `execute_tool ${call.name}`,
    kind: 'internal',
    at,
    attributes: {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': call.name,
      'gen_ai.tool.call.id': call.callId,
      'gen_ai.tool.type': 'function',
      'polylog.run.id': runId,
      ...defined({ 'polylog.tool.source': call.source }),
    },
  }
}

export function toolEndAttributes(outcome: ToolOutcome): SpanAttributes {
  return { 'polylog.tool.outcome': outcome }
}
