// A client that compares by itself sends one question twice at once, to two
// configurations, with the same time of sending. The second request is another answer
// to the first question and not a question of its own: it brings no message, does not
// wait for the first answer and does not see it. The pair is stored as a comparison
// that nobody is asked to vote on until the client makes it one, so that the history
// gets the answer that came if the other fails.

import type { EventData, RunSpec } from '../journal/event.ts'
import type { Ids } from '../kit/ids.ts'
import type { ComparisonRow } from '../stores/comparison-store.ts'
import type { RunFilter, RunRow, RunStore } from '../stores/run-store.ts'
import type { StartRequest } from './start-request.ts'

export type FirstAnswer = { run: RunRow; conversationId: string; userMessageId: string; configName: string }

/**
 * Both requests are sent together. A client that sends the same time with every request must not have its second
 * question taken for the second answer to its first.
 */
const togetherMs = 60_000

/** Without the name of a conversation the first request is one of the newest of its owner. */
const newestRunsMax = 5

/** The run that answers the same question already; undefined if the request asks something new. */
export async function findFirstAnswer(
  request: StartRequest,
  /** Undefined if the request names no conversation. Then the first one has made it. */
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

function asksTheSame({ spec, input }: EventData<'run.accepted'>, request: StartRequest): boolean {
  return spec.sentAt === request.sentAt && input === request.input && spec.secondOf === undefined
}

/** There is nothing to compare with an answer that failed; then the second one simply answers the question. */
function isComparable({ run }: FirstAnswer): boolean {
  return run.status !== 'failed' && run.status !== 'canceled'
}

/** The first answer is the history until somebody decides. */
export function secondAnswerSpec(spec: RunSpec, first: FirstAnswer | undefined): RunSpec {
  if (first === undefined) return spec
  return { ...spec, ...(isComparable(first) ? { variant: 'shadow' } : {}), secondOf: first.run.id }
}

/** What is stored with the second answer. */
export function pairOf(
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
