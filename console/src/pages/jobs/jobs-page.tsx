// Jobs at the left, and beside them the chosen job, the skills, or the form that starts one. The address holds which:
// `/jobs`, `/jobs/new/<skill>`, `/jobs/<id>` and `/jobs/<id>/<view>`.

import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import { useApi } from '../../api/api.ts'
import { pathParts } from '../../app/path-part.ts'
import { useWords } from '../../i18n/words.ts'
import { StatusBadge } from '../../run/status-badge.tsx'
import { Button, IconButton } from '../../ui/button.tsx'
import { ConfirmDialog } from '../../ui/dialog.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Problem } from '../../ui/problem.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { Split } from '../../ui/split.tsx'
import { TimeAgo } from '../../ui/time-ago.tsx'
import { showToast } from '../../ui/toast.tsx'
import { hasEnded, type JobSummary, runStatusOf } from './job-api.ts'
import { JobDetail } from './job-detail.tsx'
import { JobForm } from './job-form.tsx'
import { SkillList } from './skill-list.tsx'
import { type JobList, useJobs } from './use-jobs.ts'
import { jobWords } from './words.ts'
import './jobs-page.css'

export default function JobsPage() {
  const words = useWords(jobWords)
  const [location, navigate] = useLocation()
  const [first = '', second = ''] = pathParts(location)
  const [isCleaning, setCleaning] = useState(false)
  const list = useJobs()
  const isNew = first === 'new'
  return (
    <>
      <Split
        label={words.list}
        isChosen={first !== ''}
        head={
          <div className="row">
            <h1 className="grow">{words.title}</h1>
            {list.jobs?.some(hasEnded) === true ? (
              <IconButton icon="trash" small label={words.cleanUp} onClick={() => setCleaning(true)} />
            ) : null}
            <Button small look="primary" icon="plus" onClick={() => navigate('/jobs/new')}>
              {words.newJob}
            </Button>
          </div>
        }
        list={<Jobs list={list} current={isNew ? '' : first} />}
        detail={
          first === '' || (isNew && second === '') ? (
            <SkillList hasJobs={(list.jobs?.length ?? 0) > 0} />
          ) : isNew ? (
            <JobForm key={second} skillId={second} />
          ) : (
            <JobDetail key={first} id={first} view={second} />
          )
        }
      />
      {isCleaning ? <CleanUp onClose={() => setCleaning(false)} onDone={list.reload} /> : null}
    </>
  )
}

function Jobs({ list, current }: { list: JobList; current: string }) {
  const words = useWords(jobWords)
  const { jobs, error, reload, hasMore, isLoadingMore, loadMore } = list
  if (error !== undefined) return <Problem error={error} onRetry={reload} />
  if (jobs === undefined) return <Spinner center />
  if (jobs.length === 0) return <p className="faint split-end">{words.empty}</p>
  return (
    <>
      <ul>
        {jobs.map((job) => (
          <li key={job.request_id}>
            <JobRow job={job} isCurrent={job.request_id === current} />
          </li>
        ))}
      </ul>
      {hasMore ? (
        <Button small look="quiet" disabled={isLoadingMore} onClick={() => void loadMore()}>
          {words.showMore}
        </Button>
      ) : null}
    </>
  )
}

function JobRow({ job, isCurrent }: { job: JobSummary; isCurrent: boolean }) {
  const words = useWords(jobWords)
  return (
    <Link
      href={`/jobs/${encodeURIComponent(job.request_id)}`}
      className="split-row"
      aria-current={isCurrent ? 'true' : undefined}
    >
      <Icon name="job" />
      <span className="split-row-title cut">{job.skill_id ?? words.unknownSkill}</span>
      <StatusBadge status={runStatusOf(job.status)} />
      <span className="split-row-note cut">
        <TimeAgo at={Date.parse(job.created_at)} />
      </span>
    </Link>
  )
}

function CleanUp({ onClose, onDone }: { onClose(): void; onDone(): void }) {
  const words = useWords(jobWords)
  const api = useApi()
  const cleanUp = async () => {
    const { runs_deleted: count } = await api.json<{ runs_deleted: number }>('/v1/jobs/cleanup', { method: 'POST' })
    showToast({ tone: 'good', text: words.cleanedUp(count) })
    onDone()
  }
  return (
    <ConfirmDialog title={words.cleanUpTitle} action={words.cleanUp} onConfirm={cleanUp} onClose={onClose}>
      {words.cleanUpHelp}
    </ConfirmDialog>
  )
}
