// What is compared of two runs besides their text: model, time, tokens, cost, tools. Pure.

import type { RunInfo } from '@polylog/client'
import { answerText, type RunView } from '../../run/run-view.ts'

/** Null: not known, or hidden until a vote. */
export type RunFacts = {
  status: RunInfo['status'] | null
  model: string | null
  /** From the start of the work to its end. */
  durationMs: number | null
  waitedMs: number | null
  inputTokens: number | null
  outputTokens: number | null
  costMicroUsd: number | null
  steps: number | null
  tools: number
  chars: number
}

export function runFacts(view: RunView, info: RunInfo | undefined): RunFacts {
  const { state } = view
  const usage = info?.usage ?? null
  const startedAt = info?.startedAtMs ?? null
  return {
    status: info?.status ?? null,
    model: state.start?.metadata.model ?? null,
    durationMs: startedAt === null || info?.endedAtMs == null ? null : info.endedAtMs - startedAt,
    waitedMs: startedAt === null || info === undefined ? null : startedAt - info.createdAtMs,
    inputTokens: usage?.inputTokens ?? null,
    outputTokens: usage?.outputTokens ?? null,
    costMicroUsd: usage?.costMicroUsd ?? null,
    steps: usage?.steps ?? null,
    tools: state.blocks.filter(({ type }) => type === 'tool').length,
    chars: answerText(view).length,
  }
}
