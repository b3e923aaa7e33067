// Runs an agent. The request starts the run and names it at once, so that it can be followed and stopped however long it
// takes; when it has ended, the same request with the same idempotency key gives its result.

import { useEffect, useRef, useState } from 'react'
import type { JsonValue, PolylogError } from '@polylog/client'
import { type Api, useApi } from '../../api/api.ts'
import { userQuery } from '../../api/named-user.ts'
import { problemOf } from '../../api/use-loaded.ts'
import { isEnded } from '../../run/run-view.ts'
import { followerOf } from '../../run/use-run.ts'
import type { AgentResult } from './snapshots.ts'

export type AgentRunRequest = {
  agentId: string
  operation?: string
  input: Record<string, JsonValue>
  options: { useCache: boolean; forceRefresh: boolean }
}

export type AgentRunState =
  | { phase: 'idle' }
  | { phase: 'running'; runId: string | null; startedAt: number }
  | { phase: 'done'; result: AgentResult; tookMs: number }
  | { phase: 'failed'; error: PolylogError; runId: string | null }

export function useAgentRun() {
  const api = useApi()
  const [state, setState] = useState<AgentRunState>({ phase: 'idle' })
  const latest = useRef<AbortController | null>(null)
  useEffect(() => () => latest.current?.abort(), [api])

  const run = async (body: AgentRunRequest): Promise<AgentResult | PolylogError | null> => {
    latest.current?.abort()
    const controller = new AbortController()
    latest.current = controller
    const { signal } = controller
    const startedAt = Date.now()
    let runId: string | null = null
    setState({ phase: 'running', runId, startedAt })
    try {
      const key = api.newKey()
      const headers = await api.begin('/v1/agent/run', {
        key,
        query: userQuery(),
        body,
        headers: { accept: 'text/event-stream' },
        signal,
      })
      runId = headers.get('x-run-id')
      setState({ phase: 'running', runId, startedAt })
      // A stored result needs no waiting.
      if (runId !== null && headers.get('x-cached') !== 'true') await ended(api, runId, signal)
      const result = await api.json<AgentResult>('/v1/agent/run', {
        method: 'POST',
        query: userQuery(),
        body,
        headers: { 'idempotency-key': key },
        repeatable: true,
        // If the run could not be followed, it may still be at work.
        runsAgent: true,
        signal,
      })
      setState({ phase: 'done', result, tookMs: Date.now() - startedAt })
      return result
    } catch (failure) {
      if (signal.aborted) return null
      const error = problemOf(failure)
      setState({ phase: 'failed', error, runId })
      return error
    }
  }
  const stop = async () => {
    if (state.phase === 'running' && state.runId !== null) await api.client.cancel(state.runId)
  }
  return { state, run, stop }
}

/** Resolves when the run has ended, or cannot be read. */
async function ended(api: Api, runId: string, signal: AbortSignal): Promise<void> {
  const follower = followerOf(api, runId)
  const leave = follower.follow()
  let forget = () => {}
  try {
    await new Promise<void>((resolve, reject) => {
      const look = () => {
        const { view, connection } = follower.run.get()
        if (isEnded(view) || connection === 'failed') resolve()
      }
      forget = follower.run.subscribe(look)
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
      look()
    })
  } finally {
    forget()
    leave()
  }
}
