// One conversation: its messages, newest page first, and the runs that have not ended. Loaded again when one of its runs
// changes.

import { useCallback, useEffect, useMemo, useState } from 'react'
import type { RunInfo, StoredMessage } from '@polylog/client'
import { useApi } from '../../api/api.ts'
import { problemOf, useLoaded } from '../../api/use-loaded.ts'
import { useFeed } from '../../feed/feed.ts'
import { isOpen, needsLists } from '../../feed/live-state.ts'
import { useWords } from '../../i18n/words.ts'
import { showProblem } from '../../ui/toast.tsx'
import { removePending } from './pending.ts'
import { chatWords } from './words.ts'

const pageMessages = 60

/** Oldest first; only those that have not ended. */
function withRun(open: readonly RunInfo[], run: RunInfo): RunInfo[] {
  const others = open.filter(({ runId }) => runId !== run.runId)
  return isOpen(run)
    ? [...others, run].sort((a, b) => a.createdAtMs - b.createdAtMs || (a.runId < b.runId ? -1 : 1))
    : others
}

const none: StoredMessage[] = []
const noRuns: RunInfo[] = []

type LoadedConversation = { messages: StoredMessage[]; open: RunInfo[]; hasEarlier: boolean }

export function useConversation(id: string | null) {
  const words = useWords(chatWords)
  const api = useApi()
  const [earlier, setEarlier] = useState<{ id: string | null; messages: StoredMessage[]; isAll: boolean }>({
    id: null,
    messages: [],
    isAll: false,
  })
  const loaded = useLoaded<LoadedConversation>(id, async ({ client, json }, signal) => {
    const open = await json<RunInfo[]>('/v1/agent/runs', {
      query: { conversationId: id ?? '', status: 'queued,running,awaiting_input', limit: 50 },
      signal,
    })
    // Read after the runs, so that the questions of all of them are in it: a run without one answers the last question again.
    const messages = await client.conversations.messages(id ?? '', { limit: pageMessages, signal })
    return { messages, open: open.toReversed(), hasEarlier: messages.length === pageMessages }
  })
  const { data } = loaded
  useFeed((frame) => {
    if (id === null) return
    if (needsLists(frame)) loaded.reload()
    else if (frame.type === 'run.changed' && frame.run.conversationId === id) {
      const { run } = frame
      const isKnown = data?.open.some(({ runId }) => runId === run.runId) === true
      if (isKnown) loaded.change((old) => ({ ...old, open: withRun(old.open, run) }))
      // A new run comes with its question, an ended one with its answer.
      if (!isKnown || !isOpen(run)) loaded.reload()
    }
  })
  const before = id !== null && earlier.id === id ? earlier : null
  useEffect(() => {
    const runs = new Set(data?.messages.map(({ metadata }) => metadata['runId']))
    if (data !== undefined) removePending(({ runId }) => runId !== null && runs.has(runId))
  }, [data])

  const loadEarlier = useCallback(async () => {
    const first = before?.messages[0] ?? data?.messages[0]
    if (id === null || first === undefined) return
    try {
      const messages = await api.client.conversations.messages(id, { limit: pageMessages, before: first.id })
      setEarlier((old) => ({
        id,
        messages: [...messages, ...(old.id === id ? old.messages : [])],
        isAll: messages.length < pageMessages,
      }))
    } catch (error) {
      showProblem(words.earlierMessages, problemOf(error))
    }
  }, [api, id, before, data])

  const earlierMessages = before?.messages ?? none
  const newest = data?.messages ?? none
  const messages = useMemo(() => [...earlierMessages, ...newest], [earlierMessages, newest])
  return {
    messages,
    open: data?.open ?? noRuns,
    hasEarlier: before === null ? data?.hasEarlier === true : !before.isAll,
    loadEarlier,
    isLoaded: data !== undefined,
    error: loaded.error,
    reload: loaded.reload,
  }
}
