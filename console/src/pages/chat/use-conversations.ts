// The list of conversations: most recently used first, searched on the server, page by page.

import { useCallback, useState } from 'react'
import type { Conversation } from '@polylog/client'
import { useApi } from '../../api/api.ts'
import { problemOf, useLoaded } from '../../api/use-loaded.ts'
import { useFeed } from '../../feed/feed.ts'
import { needsLists } from '../../feed/live-state.ts'
import { useWords } from '../../i18n/words.ts'
import { showProblem } from '../../ui/toast.tsx'
import { chatWords } from './words.ts'

const pageConversations = 100

export function useConversations(search: string) {
  const words = useWords(chatWords)
  const api = useApi()
  const query = { limit: pageConversations, ...(search === '' ? {} : { q: search }) }
  const [older, setOlder] = useState<{ search: string; items: Conversation[]; isAll: boolean } | null>(null)
  const loaded = useLoaded(`conversations ${search}`, ({ json }, signal) =>
    json<Conversation[]>('/v1/conversations', { query, signal }),
  )
  useFeed((frame) => {
    if (needsLists(frame)) loaded.reload()
    else if (frame.type === 'conversation.deleted') {
      const isOther = ({ id }: Conversation) => id !== frame.conversationId
      loaded.change((old) => old.filter(isOther))
      setOlder((old) => (old === null ? null : { ...old, items: old.items.filter(isOther) }))
    } else if (frame.type === 'conversation.changed') {
      // Which conversations a search finds is known to the server only.
      if (search === '') loaded.change((old) => withChange(old, frame.conversation))
      else loaded.reload()
    }
  })
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

/** Most recently used first. */
function withChange(items: readonly Conversation[], changed: Conversation): Conversation[] {
  const others = items.filter(({ id }) => id !== changed.id)
  const at = others.findIndex(({ updatedAtMs }) => updatedAtMs <= changed.updatedAtMs)
  return at < 0 ? [...others, changed] : others.toSpliced(at, 0, changed)
}
