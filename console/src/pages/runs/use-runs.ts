// The list of runs, page by page, kept up to date by the feed.

import { useCallback, useRef, useState } from 'react'
import type { RunInfo } from '@polylog/client'
import { useApi } from '../../api/api.ts'
import { problemOf, useLoaded } from '../../api/use-loaded.ts'
import { useFeed } from '../../feed/feed.ts'
import { isOpen, needsLists } from '../../feed/live-state.ts'
import { useWords } from '../../i18n/words.ts'
import { showProblem } from '../../ui/toast.tsx'
import { runsWords } from './words.ts'

/** `input` is the beginning of what was asked. */
export type ListedRun = RunInfo & { input?: string }

const pageRuns = 50
/** Many runs may start at once; the list is read again once. */
const reloadAfterMs = 300

export function useRuns(status: string, conversationId: string) {
  const words = useWords(runsWords)
  const api = useApi()
  const key = `${status} ${conversationId}`
  const query = {
    include: 'input',
    limit: pageRuns,
    ...(status === '' ? {} : { status }),
    ...(conversationId === '' ? {} : { conversationId }),
  }
  const [older, setOlder] = useState<{ key: string; items: ListedRun[]; isAll: boolean } | null>(null)
  const loaded = useLoaded(`runs ${key}`, ({ json }, signal) => json<ListedRun[]>('/v1/agent/runs', { query, signal }))
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null)
  const reloadSoon = () => {
    timer.current ??= setTimeout(() => {
      timer.current = null
      loaded.reload()
    }, reloadAfterMs)
  }
  const added = older?.key === key ? older : null
  const first = loaded.data ?? []
  const ids = new Set(first.map(({ runId }) => runId))
  const items = [...first, ...(added?.items.filter(({ runId }) => !ids.has(runId)) ?? [])]

  useFeed((frame) => {
    if (needsLists(frame) || frame.type === 'run.deleted') return reloadSoon()
    if (frame.type !== 'run.changed') return
    const { run } = frame
    const isListed = items.some(({ runId }) => runId === run.runId)
    // Whether a run that has changed still fits the filter is known to the server.
    if (!isListed || (status !== '' && !isOpen(run))) return reloadSoon()
    const change = (old: ListedRun[]) => old.map((each) => (each.runId === run.runId ? { ...each, ...run } : each))
    loaded.change(change)
    setOlder((old) => (old === null ? null : { ...old, items: change(old.items) }))
  })

  const last = items.at(-1)?.runId
  const loadMore = useCallback(async () => {
    if (last === undefined) return
    try {
      const page = await api.json<ListedRun[]>('/v1/agent/runs', { query: { ...query, before: last } })
      setOlder((old) => ({
        key,
        items: [...(old?.key === key ? old.items : []), ...page],
        isAll: page.length < pageRuns,
      }))
    } catch (error) {
      showProblem(words.moreFailed, problemOf(error))
    }
  }, [api, last, key])

  return {
    items,
    hasMore: added === null ? first.length === pageRuns : !added.isAll,
    loadMore,
    isLoading: loaded.isLoading && loaded.data === undefined,
    error: loaded.error,
    reload: loaded.reload,
  }
}
