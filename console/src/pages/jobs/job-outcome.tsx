// The result of a job: its JSON, how it came to fit, what went wrong, and everything as a zip.

import { useLoaded } from '../../api/use-loaded.ts'
import { useWords } from '../../i18n/words.ts'
import { EmptyState } from '../../ui/empty-state.tsx'
import { JsonTree } from '../../ui/json-tree.tsx'
import { Markdown } from '../../ui/markdown.tsx'
import { Card } from '../../ui/page.tsx'
import { Problem } from '../../ui/problem.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { CopyButton } from '../../ui/copy-button.tsx'
import { hasEnded, type JobInfo, jobPath, type JobResult } from './job-api.ts'
import { jobWords } from './words.ts'

export function JobOutcome({ job }: { job: JobInfo }) {
  const words = useWords(jobWords)
  const isOver = hasEnded(job)
  const { data, error, reload } = useLoaded(isOver ? `result ${job.request_id}` : null, ({ json }, signal) =>
    json<{ result: JobResult }>(jobPath(job.request_id, '/result'), { signal }),
  )
  if (!isOver) {
    return <EmptyState icon="clock" title={words.noResult} />
  }
  if (error !== undefined) return <Problem error={error} onRetry={reload} />
  if (data === undefined) return <Spinner center />
  const { result } = data
  return (
    <>
      {result.error === null ? null : <Problem error={result.error} />}
      {result.data === null ? (
        result.error === null ? (
          <p className="faint">{words.noData}</p>
        ) : null
      ) : (
        <Card title={words.result} actions={<CopyButton text={() => JSON.stringify(result.data, null, 2)} />}>
          {typeof result.data === 'string' ? (
            <Markdown text={result.data} />
          ) : (
            <JsonTree value={result.data} label={words.result} />
          )}
          {result.repair_level === 'none' ? null : <p className="faint">{words[`repaired_${result.repair_level}`]}</p>}
        </Card>
      )}
      {result.validation_warnings.length === 0 ? null : (
        <Card title={words.warnings}>
          <ul className="job-warnings">
            {result.validation_warnings.map((warning) => (
              <li key={warning}>{warning}</li>
            ))}
          </ul>
        </Card>
      )}
    </>
  )
}
