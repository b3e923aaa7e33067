// How a stream of AG-UI ends: the run waits for its client, or it has ended.

import type { EventData, EventOf } from '../../journal/event.ts'
import { addUsage, isReported, noUsage, usageOfStep } from '../../journal/usage.ts'
import { defined } from '../../kit/defined.ts'
import { wholeJson } from '../../kit/embedded-json.ts'
import { emit, inSequence } from '../dialect.ts'
import { agUiFrame, customFrame } from './ag-ui-frame.ts'
import { type AgUiState, type AgUiProjection, startRun, closeStep, emitInRun } from './ag-ui-state.ts'
import { clientCallsOf, interruptsOf } from './open-interrupts.ts'

export function addTokens(state: AgUiState, model: string, spent: Parameters<typeof usageOfStep>[0]): AgUiState {
  const total = addUsage(state.usage.get(model) ?? noUsage, usageOfStep(spent))
  return { ...state, usage: new Map(state.usage).set(model, total) }
}

/** The stream ends here; the run goes on with the request that brings what it waits for. */
export function parkedFrames(state: AgUiState, at: number): AgUiProjection {
  const interrupts = interruptsOf(state.awaited, (callId) => state.calls.get(callId)?.name)
  const pendingToolCallIds = clientCallsOf(state.awaited)
  const success = { type: 'success', ...(state.modern && pendingToolCallIds.length > 0 ? { pendingToolCallIds } : {}) }
  return finishFrames(state, at, { outcome: interrupts.length > 0 ? { type: 'interrupt', interrupts } : success })
}

function finishFrames(state: AgUiState, timestamp: number, fields: Record<string, unknown>): AgUiProjection {
  return inSequence(state, startRun, closeStep, (next) => {
    const { threadId, runId } = next
    const frame = agUiFrame('RUN_FINISHED', { timestamp, threadId, runId, ...fields, ...usageOf(next) })
    return emit({ ...next, started: false, usage: new Map() }, frame)
  })
}

export function endFrames(state: AgUiState, { at, data }: EventOf<'run.ended'>): AgUiProjection {
  const { status, error, reason } = data
  if (status === 'succeeded') return finishFrames(state, at, { ...resultOf(state, data), outcome: { type: 'success' } })
  if (status === 'canceled') {
    return inSequence(
      state,
      (next) => emitInRun(next, customFrame('run.cancelled', defined({ reason }))),
      (next) => finishFrames(next, at, next.modern ? { outcome: { type: 'cancelled' } } : {}),
    )
  }
  return inSequence(state, startRun, closeStep, (next) => {
    const { code, message = 'The run failed.' } = error ?? {}
    const failure = agUiFrame('RUN_ERROR', { timestamp: at, message, ...defined({ code }), ...usageOf(next) })
    return emit({ ...next, started: false }, failure)
  })
}

/** The answer as a value, if the run was asked for JSON. */
function resultOf(
  { isJson, longMessage }: AgUiState,
  { output, messageId }: EventData<'run.ended'>,
): { result?: unknown } {
  if (!isJson) return {}
  const text = output ?? (longMessage?.id === messageId ? longMessage?.text : undefined)
  const value = wholeJson(text ?? '')?.value
  // The client refuses a result that is null.
  return value == null ? {} : { result: value }
}

/** One entry for each model; none if no provider reported any tokens. */
function usageOf({ usage }: AgUiState): { usage?: object[] } {
  const entries = [...usage].filter(([, totals]) => isReported(totals))
  if (entries.length === 0) return {}
  return {
    usage: entries.map(([name, totals]) => {
      const slash = name.indexOf('/')
      const { inputTokens, outputTokens, reasoningTokens, cachedTokens, cacheWriteTokens } = totals
      return {
        ...(slash > 0 ? { provider: name.slice(0, slash) } : {}),
        model: name.slice(slash + 1),
        inputTokens,
        outputTokens,
        totalTokens: inputTokens + outputTokens,
        reasoningTokens,
        cachedInputTokens: cachedTokens,
        cacheWriteInputTokens: cacheWriteTokens,
      }
    }),
  }
}
