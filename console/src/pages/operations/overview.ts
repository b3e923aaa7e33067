// The overview for operators, read again every few seconds while somebody looks.

import { useEffect } from 'react'
import type { RunInfo } from '@polylog/client'
import { type Loaded, useLoaded } from '../../api/use-loaded.ts'

export type OpenRun = {
  runId: string
  userId: string
  conversationId: string | null
  family: string
  agentId: string
  status: RunInfo['status']
  attempt: number
  node: string | null
  cancelRequested: boolean
  createdAtMs: number
  startedAtMs: number | null
  stuck: 'no_node' | 'cancel_pending' | 'queued_long' | 'deadline_passed' | null
}

export type OpenStream = {
  format: string
  runId: string | null
  openMs: number
  bufferedBytes: number
  seq: number | null
  lag: number | null
}

export type ListedNode = {
  id: string
  name: string
  version: string
  live: boolean
  draining: boolean
  running: number
  capacity: number
  startedAtMs: number
  seenAtMs: number
}

export type LoadSample = {
  atMs: number
  commits: number
  commitMs: number
  commitMsMax: number
  commitQueue: number
  streams: number
  runs: Partial<Record<RunInfo['status'], number>> | null
}

export type Overview = {
  timestampMs: number
  node: string
  counts: Partial<Record<RunInfo['status'], number>>
  runs: OpenRun[]
  nodes: ListedNode[]
  streams: OpenStream[]
  load: { everyMs: number; samples: LoadSample[] }
}

/** As often as the server takes a sample. */
const everyMs = 5000

export function useOverview(isPaused: boolean): Loaded<Overview> {
  const loaded = useLoaded<Overview>('operations', ({ json }, signal) => json('/v1/operations', { signal }))
  const { reload } = loaded
  // A refusal does not go away by itself.
  const isRefused = loaded.error?.status === 403
  useEffect(() => {
    if (isPaused || isRefused) return
    const timer = setInterval(() => !document.hidden && reload(), everyMs)
    document.addEventListener('visibilitychange', reload)
    return () => {
      clearInterval(timer)
      document.removeEventListener('visibilitychange', reload)
    }
  }, [isPaused, isRefused, reload])
  return loaded
}
