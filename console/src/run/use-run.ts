// Runs that components read. Two components that show the same run share one connection, and a run that was read before
// is there at once when its conversation is opened again.

import { useEffect, useMemo } from 'react'
import type { ChatRequest, ConnectionState } from '@polylog/client'
import { type Api, useApi } from '../api/api.ts'
import { type FollowedRun, type OpenedRun, RunFollower } from './run-follower.ts'

/** How many runs are kept that nobody shows at the moment. */
const keptMax = 60
const followers = new WeakMap<Api, Map<string, RunFollower>>()

export function followerOf(api: Api, runId: string, opened?: OpenedRun): RunFollower {
  const known = followers.get(api) ?? new Map<string, RunFollower>()
  followers.set(api, known)
  const found = known.get(runId) ?? new RunFollower(api, runId, opened)
  // The most recently used one is the last.
  known.delete(runId)
  known.set(runId, found)
  if (known.size > keptMax) known.delete(known.keys().next().value ?? '')
  return found
}

/** Reads the run from its beginning again when it is next shown: after a vote its frames tell more. */
export function forgetRun(api: Api, runId: string): void {
  followers.get(api)?.delete(runId)
}

/** The run, live. Another `round` asks for its follower again. */
export function useRun(runId: string, round = 0): FollowedRun & { follower: RunFollower } {
  const api = useApi()
  const follower = useMemo(() => followerOf(api, runId), [api, runId, round])
  useEffect(() => follower.follow(), [follower])
  return { ...follower.run.use(), follower }
}

/** Asks an agent. Resolves when the server has stored the run; its stream is then followed by whoever shows it. */
export async function startRun(api: Api, request: ChatRequest): Promise<{ runId: string; conversationId: string }> {
  const controller = new AbortController()
  let listener: (connection: ConnectionState) => void = () => {}
  const run = await api.client.chat(
    // A tab that is closed must not end the run, whatever the server does by default.
    { ...request, onDisconnect: 'continue' },
    { signal: controller.signal, onConnection: (connection) => listener(connection) },
  )
  followerOf(api, run.id, { frames: run, controller, hear: (next) => (listener = next) })
  return { runId: run.id, conversationId: run.conversationId ?? '' }
}
