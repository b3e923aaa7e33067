// The jobs of the user, newest first, kept up to date by the feed.

import { useState } from 'react'
import type { FeedRun } from '@polylog/client'
import { useApi } from '../../api/api.ts'
import { type Loaded, problemOf, useLoaded } from '../../api/use-loaded.ts'
import { shellWords } from '../../app/words.ts'
import { useFeed } from '../../feed/feed.ts'
import { needsLists } from '../../feed/live-state.ts'
import { useWords } from '../../i18n/words.ts'
import { showProblem } from '../../ui/toast.tsx'
import { type JobSummary, jobStatusOf } from './job-api.ts'

const pageRows = 50

type JobPage = { jobs: JobSummary[]; next_before: string | null }

export type JobList = Pick<Loaded<JobPage>, 'error' | 'reload'> & {
  jobs: readonly JobSummary[] | undefined
  hasMore: boolean
  isLoadingMore: boolean
  loadMore(): Promise<void>
}

export function useJobs(): JobList {
  const api = useApi()
  const shell = useWords(shellWords)
  const { data, error, reload, change } = useLoaded<JobPage>('jobs', ({ json }, signal) =>
    json('/v1/jobs', { query: { limit: pageRows }, signal }),
  )
  const [isLoadingMore, setLoadingMore] = useState(false)
  useFeed((frame) => {
    if (needsLists(frame)) reload()
    else if (frame.type === 'run.deleted') {
      change((old) => ({ ...old, jobs: old.jobs.filter(({ request_id: id }) => id !== frame.runId) }))
    } else if (frame.type === 'run.changed' && frame.run.family === 'jobs') {
      const job = summaryOf(frame.run)
      change((old) => {
        const isKnown = old.jobs.some(({ request_id: id }) => id === job.request_id)
        const jobs = isKnown
          ? old.jobs.map((one) => (one.request_id === job.request_id ? job : one))
          : [job, ...old.jobs].toSorted((one, other) => (one.created_at < other.created_at ? 1 : -1))
        return { ...old, jobs }
      })
    }
  })
  const loadMore = async () => {
    setLoadingMore(true)
    try {
      const before = data?.next_before ?? undefined
      const more = await api.json<JobPage>('/v1/jobs', { query: { limit: pageRows, before } })
      change((old) => ({ jobs: [...old.jobs, ...more.jobs], next_before: more.next_before }))
    } catch (problem) {
      showProblem(shell.failed, problemOf(problem))
    } finally {
      setLoadingMore(false)
    }
  }
  return { jobs: data?.jobs, hasMore: data?.next_before != null, isLoadingMore, loadMore, error, reload }
}

function summaryOf(run: FeedRun): JobSummary {
  return {
    request_id: run.runId,
    status: jobStatusOf(run.status),
    skill_id: run.skillId,
    created_at: run.createdAt,
    updated_at: run.endedAt ?? run.startedAt ?? run.createdAt,
    error: null,
  }
}
