// The record of a run for a component, live while it is shown.

import { useEffect, useMemo } from 'react'
import { useApi } from '../api/api.ts'
import { type FollowedJournal, JournalFollower } from './journal-follower.ts'
import { nativeFormat } from './journal-row.ts'
import { RunRecord } from './run-record.ts'

/** `record` is the same object while it grows; `count` changes with it. */
export function useRunRecord(runId: string): FollowedJournal & { record: RunRecord } {
  const api = useApi()
  const { record, follower } = useMemo(() => {
    const made = new RunRecord()
    return { record: made, follower: new JournalFollower(api, runId, [nativeFormat], (row) => made.add(row)) }
  }, [api, runId])
  useEffect(() => follower.follow(), [follower])
  return { ...follower.journal.use(), record }
}
