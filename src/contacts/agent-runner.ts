// How services of this folder run a one-shot agent. The service of one-shot runs implements
// it; it is handed in, because agents read contacts and not the other way round.

import type { JsonValue } from '../journal/event.ts'
import type { Caller } from '../kit/caller.ts'

type JsonObject = Record<string, JsonValue>

export type AgentRequest = {
  agentId: string
  operation: string
  input: JsonObject
  useCache: boolean
  forceRefresh: boolean
}

export type AgentResult = {
  runId: string
  snapshotId: string | null
  cached: boolean
  generatedAt: number
  data: JsonObject
}

export interface AgentRunner {
  /** Resolves when the run has ended. If `signal` is aborted before, the run goes on and this throws. */
  run(caller: Caller, request: AgentRequest, idempotency: null, signal?: AbortSignal): Promise<AgentResult>
}

/** What a client may say about a run. `language` is a language tag; the agent has a default. */
export type AgentOptions = { language?: string | undefined; useCache: boolean; forceRefresh: boolean }

export function agentRequest(
  operation: string,
  caller: Caller,
  scope: JsonObject,
  { language, useCache, forceRefresh }: AgentOptions,
): AgentRequest {
  const input = { userId: caller.userId, ...scope, ...(language === undefined ? {} : { language }) }
  return { agentId: archiveAgentId, operation, input, useCache, forceRefresh }
}

export const archiveAgentId = 'archive_brief'
