// The log of a job as a terminal would show it, in pieces.

import { useState } from 'react'
import { useApi } from '../../api/api.ts'
import { problemOf, useLoaded } from '../../api/use-loaded.ts'
import { useWords } from '../../i18n/words.ts'
import { Button } from '../../ui/button.tsx'
import { CodeBlock } from '../../ui/code-block.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { Problem } from '../../ui/problem.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { showProblem } from '../../ui/toast.tsx'
import { jobPath } from './job-api.ts'
import { jobWords } from './words.ts'

const pieceBytes = 200_000

type LogPiece = { byte_to: number; chunk: string }

export function JobLog({ id }: { id: string }) {
  const words = useWords(jobWords)
  const api = useApi()
  const read = (from: number, signal?: AbortSignal) =>
    api.json<LogPiece>(jobPath(id, '/logs/range'), {
      query: { stream: 'pty', byte_from: from, byte_to: from + pieceBytes },
      signal,
    })
  const { data, error, reload, change } = useLoaded(`log ${id}`, async (_, signal) => {
    const piece = await read(0, signal)
    return { text: piece.chunk, at: piece.byte_to, hasMore: piece.byte_to >= pieceBytes }
  })
  const [isLoading, setLoading] = useState(false)
  const loadMore = async () => {
    if (data === undefined) return
    setLoading(true)
    try {
      const piece = await read(data.at)
      change((old) => ({
        text: old.text + piece.chunk,
        at: piece.byte_to,
        hasMore: piece.byte_to >= old.at + pieceBytes,
      }))
    } catch (problem) {
      showProblem(words.log, problemOf(problem))
    } finally {
      setLoading(false)
    }
  }
  if (error !== undefined) return <Problem error={error} onRetry={reload} />
  if (data === undefined) return <Spinner center />
  if (data.text === '') return <EmptyState icon="file" title={words.noLog} />
  return (
    <>
      <CodeBlock code={data.text} label={words.log} />
      {data.hasMore ? (
        <div>
          <Button small disabled={isLoading} onClick={() => void loadMore()}>
            {words.loadMore}
          </Button>
        </div>
      ) : null}
    </>
  )
}
