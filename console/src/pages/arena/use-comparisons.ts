// The comparisons of the user, newest first, page by page. The feed tells what changes.

import { useCallback, useState } from 'react'
import type { Comparison } from '@polylog/client'
import { useApi } from '../../api/api.ts'
import { userQuery } from '../../api/named-user.ts'
import { problemOf, useLoaded } from '../../api/use-loaded.ts'
import { useFeed } from '../../feed/feed.ts'
import { needsLists } from '../../feed/live-state.ts'
import { useWords } from '../../i18n/words.ts'
import { showProblem } from '../../ui/toast.tsx'
import { arenaWords } from './words.ts'

/** `question` is its beginning. */
export type ListedComparison = Comparison & { question: string }

const pageComparisons = 50

export function useComparisons() {
  const words = useWords(arenaWords)
  const api = useApi()
  const [older, setOlder] = useState<{ items: ListedComparison[]; isAll: boolean } | null>(null)
  const read = async (before?: string, signal?: AbortSignal) => {
    const query = { ...userQuery(), limit: pageComparisons, ...(before === undefined ? {} : { before }) }
    const { comparisons } = await api.json<{ comparisons: ListedComparison[] }>('/api/ab/comparisons', {
      query,
      signal,
    })
    return comparisons
  }
  const loaded = useLoaded('comparisons', (_, signal) => read(undefined, signal))
  useFeed((frame) => {
    if (needsLists(frame)) loaded.reload()
    else if (frame.type === 'comparison.opened' || frame.type === 'comparison.voted') {
      const { comparison } = frame
      const isKnown = loaded.data?.some(({ comparison_id }) => comparison_id === comparison.comparison_id) === true
      // A new one: the feed does not have its question.
      if (!isKnown) loaded.reload()
      else loaded.change((old) => old.map((item) => merged(item, comparison)))
    } else if (frame.type === 'conversation.deleted') loaded.reload()
  })
  const first = loaded.data ?? []
  const ids = new Set(first.map(({ comparison_id }) => comparison_id))
  const items = [...first, ...(older?.items.filter(({ comparison_id }) => !ids.has(comparison_id)) ?? [])]
  const last = items.at(-1)?.comparison_id

  const loadMore = useCallback(async () => {
    if (last === undefined) return
    try {
      const page = await read(last)
      setOlder((old) => ({ items: [...(old?.items ?? []), ...page], isAll: page.length < pageComparisons }))
    } catch (error) {
      showProblem(words.more, problemOf(error))
    }
  }, [api, last])

  return {
    items,
    hasMore: older === null ? first.length === pageComparisons : !older.isAll,
    loadMore,
    isLoading: loaded.isLoading && loaded.data === undefined,
    error: loaded.error,
    reload: loaded.reload,
  }
}

function merged(item: ListedComparison, changed: Comparison): ListedComparison {
  return item.comparison_id === changed.comparison_id ? { ...item, ...changed } : item
}
