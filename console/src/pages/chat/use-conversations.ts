// The list of conversations: most recently used first, searched on the server, page by page.

import { useCallback, useState } from 'react'
import type { Conversation } from '@polylog/client'
import { useApi } from '../../api/api.ts'
import { problemOf, useLoaded } from '../../api/use-loaded.ts'
import { createStore } from '../../app/store.ts'
import { useWords } from '../../i18n/words.ts'
import { showProblem } from '../../ui/toast.tsx'
import { chatWords } from './words.ts'

const pageConversations = 100

/** Counts changes of conversations; every list that is shown is loaded again. */
const changes = createStore(0)

export function conversationsChanged(): void {
  changes.set((count) => count + 1)
}

export function useConversations(search: string) {
  const words = useWords(chatWords)
  const api = useApi()
  const round = changes.use()
  const query = { limit: pageConversations, ...(search === '' ? {} : { q: search }) }
  const [older, setOlder] = useState<{ search: string; items: Conversation[]; isAll: boolean } | null>(null)
  const loaded = useLoaded(`conversations ${search}`, ({ json }, signal) =>
    json<Conversation[]>('/v1/conversations', { query, signal }),
  )
  useReloadOn(round, loaded.reload)
  const added = older?.search === search ? older : null
  const first = loaded.data ?? []
  const ids = new Set(first.map(({ id }) => id))
  const items = [...first, ...(added?.items.filter(({ id }) => !ids.has(id)) ?? [])]
  const last = items.at(-1)

  const loadMore = useCallback(async () => {
    if (last === undefined) return
    try {
      const page = await api.json<Conversation[]>('/v1/conversations', { query: { ...query, before: last.id } })
      setOlder((old) => ({
        search,
        items: [...(old?.search === search ? old.items : []), ...page],
        isAll: page.length < pageConversations,
      }))
    } catch (error) {
      showProblem(words.moreConversations, problemOf(error))
    }
  }, [api, last?.id, search])

  const hasMore = added === null ? first.length === pageConversations : !added.isAll
  return {
    items,
    hasMore,
    loadMore,
    isLoading: loaded.isLoading && loaded.data === undefined,
    error: loaded.error,
    reload: loaded.reload,
  }
}

/** Reloads when the number changes, not the first time. */
function useReloadOn(round: number, reload: () => void): void {
  const [seen, setSeen] = useState(round)
  if (seen !== round) {
    setSeen(round)
    queueMicrotask(reload)
  }
}
