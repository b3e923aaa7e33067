// One job: its state, what it asks, its result and files, what it did, and its log.

import { useEffect } from 'react'
import { Link, useLocation } from 'wouter'
import { useApi } from '../../api/api.ts'
import { problemOf, useLoaded } from '../../api/use-loaded.ts'
import { useFeed } from '../../feed/feed.ts'
import { liveState, needsLists } from '../../feed/live-state.ts'
import { useWords } from '../../i18n/words.ts'
import { DecisionCard } from '../../run/decision-card.tsx'
import { RunBlocks } from '../../run/run-blocks.tsx'
import { StatusBadge } from '../../run/status-badge.tsx'
import { useRun } from '../../run/use-run.ts'
import { runWords } from '../../run/words.ts'
import { announce } from '../../ui/announcements.ts'
import { Button } from '../../ui/button.tsx'
import { durationText } from '../../ui/countdown.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Problem } from '../../ui/problem.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { TimeAgo } from '../../ui/time-ago.tsx'
import { showProblem } from '../../ui/toast.tsx'
import { hasEnded, type JobInfo, jobPath, runStatusOf } from './job-api.ts'
import { JobFiles } from './job-files.tsx'
import { JobLog } from './job-log.tsx'
import { JobOutcome } from './job-outcome.tsx'
import { jobWords } from './words.ts'

const views = ['result', 'activity', 'files', 'log'] as const

export function JobDetail({ id, view }: { id: string; view: string }) {
  const words = useWords(jobWords)
  const {
    data: job,
    error,
    reload,
  } = useLoaded<JobInfo>(`job ${id}`, ({ json }, signal) => json(jobPath(id), { signal }))
  useFeed((frame) => {
    if (needsLists(frame) || (frame.type === 'run.changed' && frame.run.runId === id)) reload()
  })
  const current = views.find((name) => name === view) ?? (job === undefined || hasEnded(job) ? 'result' : 'activity')
  return (
    <div className="job-pane">
      <Link href="/jobs" className="split-back row">
        <Icon name="left" />
        {words.back}
      </Link>
      {error === undefined ? null : <Problem error={error} onRetry={reload} />}
      {job === undefined && error === undefined ? <Spinner center /> : null}
      {job === undefined ? null : (
        <>
          <JobHead job={job} />
          <Questions runId={id} />
          <Tabs
            label={words.views}
            current={jobAddress(id, current)}
            tabs={views.map((name) => ({ href: jobAddress(id, name), label: words[name] }))}
          />
          {current === 'result' ? <JobOutcome job={job} /> : null}
          {current === 'activity' ? <Activity runId={id} /> : null}
          {current === 'files' ? <JobFiles job={job} /> : null}
          {current === 'log' ? <JobLog key={job.status} id={id} /> : null}
        </>
      )}
    </div>
  )
}

function jobAddress(id: string, view: (typeof views)[number]): string {
  return `/jobs/${encodeURIComponent(id)}/${view}`
}

function JobHead({ job }: { job: JobInfo }) {
  const words = useWords(jobWords)
  const run = useWords(runWords)
  const api = useApi()
  const [, navigate] = useLocation()
  const isOver = hasEnded(job)
  const status = runStatusOf(job.status)
  useEffect(() => {
    if (isOver) announce(words.ended(run[status]))
  }, [isOver, status, words, run])
  const cancel = async () => {
    try {
      await api.json(jobPath(job.request_id, '/cancel'), { method: 'POST' })
    } catch (error) {
      showProblem(words.cancelFailed, problemOf(error))
    }
  }
  const tookMs = Date.parse(job.updated_at) - Date.parse(job.created_at)
  return (
    <header className="job-head">
      <div className="row row-wrap">
        <h2 className="job-title cut">{job.skill_id ?? words.unknownSkill}</h2>
        <StatusBadge status={status} />
        <span className="grow" />
        {isOver ? null : (
          <Button small icon="stop" onClick={() => void cancel()}>
            {words.cancel}
          </Button>
        )}
        {isOver && job.skill_id !== null ? (
          <Button small icon="refresh" onClick={() => navigate(`/jobs/new/${encodeURIComponent(job.skill_id ?? '')}`)}>
            {words.again}
          </Button>
        ) : null}
      </div>
      <p className="row row-wrap faint job-facts">
        <span>
          {words.started} <TimeAgo at={Date.parse(job.created_at)} />
        </span>
        {isOver ? (
          <span className="numbers">
            {words.took} {durationText(Math.max(0, tookMs))}
          </span>
        ) : null}
        <span>
          {words.engine} {job.engine}
        </span>
        <Link href={`/runs/${encodeURIComponent(job.request_id)}`}>{words.openRun}</Link>
      </p>
    </header>
  )
}

/** What the job waits for; the first question has to be answered first. */
function Questions({ runId }: { runId: string }) {
  const { decisions } = liveState.use()
  const [first] = [...decisions.values()]
    .filter((decision) => decision.runId === runId)
    .toSorted((one, other) => one.createdAtMs - other.createdAtMs)
  return first === undefined ? null : <DecisionCard key={first.id} item={first} hasKeys />
}

function Activity({ runId }: { runId: string }) {
  const { view, error } = useRun(runId)
  if (error !== null) return <Problem error={error} />
  if (view.frames === 0) return <Spinner center />
  // Decisions have their card above.
  return <RunBlocks runId={runId} view={view} canDecide={false} />
}
