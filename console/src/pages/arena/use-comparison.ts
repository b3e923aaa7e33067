// One comparison: read once, then kept up to date by the feed; and the vote.

import { useState } from 'react'
import type { Comparison } from '@polylog/client'
import { useApi } from '../../api/api.ts'
import { userQuery } from '../../api/named-user.ts'
import { problemOf, useLoaded } from '../../api/use-loaded.ts'
import { useFeed } from '../../feed/feed.ts'
import { needsLists } from '../../feed/live-state.ts'
import { useWords } from '../../i18n/words.ts'
import { showProblem } from '../../ui/toast.tsx'
import { arenaWords } from './words.ts'

export type Preference = NonNullable<Comparison['preference']>

export function useComparison(id: string) {
  const words = useWords(arenaWords)
  const api = useApi()
  const [isVoting, setVoting] = useState(false)
  const loaded = useLoaded(`comparison ${id}`, async ({ json }, signal) => {
    const path = `/api/ab/comparison/${encodeURIComponent(id)}`
    return (await json<{ comparison: Comparison }>(path, { query: userQuery(), signal })).comparison
  })
  useFeed((frame) => {
    if (needsLists(frame)) loaded.reload()
    else if ((frame.type === 'comparison.opened' || frame.type === 'comparison.voted') && isThis(frame.comparison)) {
      loaded.change(() => frame.comparison)
    }
  })
  const isThis = ({ comparison_id }: Comparison) => comparison_id === id

  const vote = async (preference: Preference) => {
    if (isVoting || loaded.data === undefined) return
    setVoting(true)
    try {
      const body = { comparison_id: id, preference, revise: loaded.data.preference !== null }
      const voted = await api.json<Comparison>('/api/ab/preference', { method: 'POST', query: userQuery(), body })
      loaded.change(() => voted)
    } catch (error) {
      showProblem(words.voteFailed, problemOf(error))
      loaded.reload()
    } finally {
      setVoting(false)
    }
  }
  return { comparison: loaded.data, error: loaded.error, reload: loaded.reload, vote, isVoting }
}
