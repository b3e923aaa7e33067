// Runs an agent. The request starts the run and names it at once, so that it can be followed and stopped however long it
// takes; when it has ended, the same request with the same idempotency key gives its result.

import { useEffect, useRef, useState } from 'react'
import type { JsonValue, PolylogError } from '@polylog/client'
import { type Api, useApi } from '../../api/api.ts'
import { userQuery } from '../../api/named-user.ts'
import { problemOf } from '../../api/use-loaded.ts'
import { useWords } from '../../i18n/words.ts'
import { isEnded } from '../../run/run-view.ts'
import { followerOf } from '../../run/use-run.ts'
import { showProblem } from '../../ui/toast.tsx'
import type { AgentResult } from './snapshots.ts'
import { agentsWords } from './words.ts'

export type AgentRunRequest = {
  agentId: string
  operation?: string
  input: Record<string, JsonValue>
  options: { useCache: boolean; forceRefresh: boolean }
}

export type AgentRunState =
  | { phase: 'idle' }
  | { phase: 'running'; startedAt: number; isStopping: boolean }
  | { phase: 'done'; result: AgentResult; tookMs: number }
  | { phase: 'failed'; error: PolylogError; runId: string | null }

export function useAgentRun() {
  const words = useWords(agentsWords)
  const api = useApi()
  const [state, setState] = useState<AgentRunState>({ phase: 'idle' })
  const latest = useRef<AbortController | null>(null)
  /** The id of the running run: a person may want to stop it before the server has named it. */
  const named = useRef<Promise<string | null>>(Promise.resolve(null))
  useEffect(() => () => latest.current?.abort(), [api])

  const setStopping = (isStopping: boolean) =>
    setState((old) => (old.phase === 'running' ? { ...old, isStopping } : old))
  const run = async (body: AgentRunRequest): Promise<AgentResult | PolylogError | null> => {
    latest.current?.abort()
    const controller = new AbortController()
    latest.current = controller
    const { signal } = controller
    const startedAt = Date.now()
    let runId: string | null = null
    setState({ phase: 'running', startedAt, isStopping: false })
    try {
      const key = api.newKey()
      const begun = api.begin('/v1/agent/run', {
        key,
        query: userQuery(),
        body,
        headers: { accept: 'text/event-stream' },
        signal,
      })
      named.current = begun.then(
        (headers) => headers.get('x-run-id'),
        () => null,
      )
      const headers = await begun
      runId = headers.get('x-run-id')
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
    setStopping(true)
    try {
      const runId = await named.current
      if (runId !== null) await api.client.cancel(runId)
    } catch (failure) {
      setStopping(false)
      showProblem(words.stopFailed, problemOf(failure))
    }
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
