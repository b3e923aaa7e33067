// Client-side A/B comparison: the client sends one question twice, to two configurations,
// with the same `sentAt`. The second request becomes a second answer to the first question:
// it adds no user message, does not wait for the first answer and does not see it. The pair
// is stored as a comparison that is not offered for a vote until the client asks for one. If
// one answer fails, the history gets the other.

import { isDeepStrictEqual } from 'node:util'
import type { EventData, RunSpec } from '../journal/event.ts'
import type { Ids } from '../kit/ids.ts'
import type { ComparisonRow } from '../stores/comparison-store.ts'
import type { RunFilter, RunRow, RunStore } from '../stores/run-store.ts'
import type { StartRequest } from './start-request.ts'

export type FirstAnswer = { run: RunRow; conversationId: string; userMessageId: string; configName: string }

/**
 * The two requests must arrive within this time. Otherwise a client that sends the same `sentAt` with every request
 * would have a later question treated as a second answer.
 */
const togetherMs = 60_000

/** How many of the owner's newest runs are searched for the first answer if the request names no conversation. */
const newestRunsMax = 5

/** The run that already answers the same question; undefined if the question is new. */
export async function findFirstAnswer(
  request: StartRequest,
  /** Undefined if the request names no conversation; the first request has then created one. */
  conversationId: string | undefined,
  { store, nowMs }: { store: Pick<RunStore, 'listRuns' | 'readEvents'>; nowMs: number },
): Promise<FirstAnswer | undefined> {
  const { owner, sentAt } = request
  if (sentAt === undefined || request.regenerate === true) return undefined
  const newest = async (filter: Omit<RunFilter, 'owner'>) => (await store.listRuns({ owner, ...filter })).rows
  const runs = await newest(conversationId === undefined ? { limit: newestRunsMax } : { conversationId, limit: 1 })
  for (const run of runs) {
    if (run.family !== request.family || run.conversationId === null) continue
    if (Math.abs(nowMs - run.createdAt) > togetherMs) continue
    const [accepted] = (await store.readEvents(run.id, 0, 1)).events
    if (accepted?.type !== 'run.accepted' || !asksTheSame(accepted.data, request)) continue
    if (conversationId === undefined) {
      const [last] = await newest({ conversationId: run.conversationId, limit: 1 })
      if (accepted.data.newConversation !== true || last?.id !== run.id) continue
    }
    const { userMessageId, spec } = accepted.data
    if (userMessageId === null) continue
    return { run, conversationId: run.conversationId, userMessageId, configName: spec.configName ?? 'default' }
  }
  return undefined
}

function asksTheSame({ spec, input, parts }: EventData<'run.accepted'>, request: StartRequest): boolean {
  if (spec.sentAt !== request.sentAt || input !== request.input || spec.secondOf !== undefined) return false
  return isDeepStrictEqual(parts, request.parts)
}

/** False if the first answer failed or was cancelled. The second answer is then an ordinary answer, not a shadow. */
function isComparable({ run }: FirstAnswer): boolean {
  return run.status !== 'failed' && run.status !== 'canceled'
}

/** Marks the second answer as a shadow, so that the first answer stays in the history until the user votes. */
export function secondAnswerSpec(spec: RunSpec, first: FirstAnswer | undefined): RunSpec {
  if (first === undefined) return spec
  return { ...spec, ...(isComparable(first) ? { variant: 'shadow' } : {}), secondOf: first.run.id }
}

/** The comparison row that is stored with the second answer. */
export function comparisonOf(
  first: FirstAnswer | undefined,
  second: { runId: string; configName: string | undefined; at: number },
  ids: Ids,
): ComparisonRow | undefined {
  if (first === undefined) return undefined
  return {
    id: ids(),
    conversationId: first.conversationId,
    owner: first.run.owner,
    userMessageId: first.userMessageId,
    runA: first.run.id,
    runB: second.runId,
    messageA: null,
    messageB: null,
    configA: first.configName,
    configB: second.configName ?? 'default',
    firstSideIsConfigA: true,
    offered: false,
    state: 'pending',
    preference: null,
    preferenceAt: null,
    revisions: [],
    createdAt: second.at,
  }
}
