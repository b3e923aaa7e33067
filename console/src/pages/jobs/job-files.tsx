// The files that a job has stored: download one, or everything as a zip.

import { useApi } from '../../api/api.ts'
import { problemOf, useLoaded } from '../../api/use-loaded.ts'
import { useLocale, useWords } from '../../i18n/words.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { sizeText } from '../../ui/file-field.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Problem } from '../../ui/problem.tsx'
import { saveFile } from '../../ui/save-file.ts'
import { Spinner } from '../../ui/spinner.tsx'
import { showProblem } from '../../ui/toast.tsx'
import { withVisibleControls } from '../../ui/visible-text.ts'
import { hasEnded, type JobInfo, jobPath } from './job-api.ts'
import { jobWords } from './words.ts'

type Artifacts = { artifacts: { path: string; size: number }[] }

export function JobFiles({ job }: { job: JobInfo }) {
  const words = useWords(jobWords)
  const locale = useLocale()
  const api = useApi()
  const { data, error, reload } = useLoaded<Artifacts>(`files ${job.request_id} ${job.status}`, ({ json }, signal) =>
    json(jobPath(job.request_id, '/artifacts'), { signal }),
  )
  const save = async (rest: string, name: string) => {
    try {
      saveFile(await api.blob(jobPath(job.request_id, rest)), name)
    } catch (problem) {
      showProblem(words.downloadFailed, problemOf(problem))
    }
  }
  if (error !== undefined) return <Problem error={error} onRetry={reload} />
  if (data === undefined) return <Spinner center />
  return (
    <>
      {data.artifacts.length === 0 ? <EmptyState icon="file" title={words.noFiles} /> : null}
      <ul className="job-files" aria-label={words.files}>
        {data.artifacts.map(({ path, size }) => (
          <li key={path} className="row">
            <Icon name="file" />
            <bdi className="grow cut">{withVisibleControls(path)}</bdi>
            <span className="faint numbers">{sizeText(size, locale)}</span>
            <IconButton
              icon="download"
              small
              label={words.downloadFile(withVisibleControls(path))}
              onClick={() => {
                const address = path.split('/').map(encodeURIComponent).join('/')
                void save(`/artifacts/${address.replace(/^artifacts\//, '')}`, path.split('/').at(-1) ?? path)
              }}
            />
          </li>
        ))}
      </ul>
      {hasEnded(job) ? (
        <div>
          <Button icon="download" onClick={() => void save('/bundle', `${job.request_id}.zip`)}>
            {words.downloadAll}
          </Button>
        </div>
      ) : null}
    </>
  )
}
