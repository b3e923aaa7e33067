// The journal of a run with the frames of the chosen dialects, over one connection.

import { useEffect, useMemo } from 'react'
import { useApi } from '../../api/api.ts'
import { type FollowedJournal, JournalFollower } from '../../run/journal-follower.ts'
import type { JournalRow } from '../../run/journal-row.ts'

/** `rows` is the same list while it grows; `count` changes with it. */
export function useWires(runId: string, formats: string): FollowedJournal & { rows: readonly JournalRow[] } {
  const api = useApi()
  const { rows, follower } = useMemo(() => {
    const made: JournalRow[] = []
    return { rows: made, follower: new JournalFollower(api, runId, formats.split(','), (row) => made.push(row)) }
  }, [api, runId, formats])
  useEffect(() => follower.follow(), [follower])
  return { ...follower.journal.use(), rows }
}
