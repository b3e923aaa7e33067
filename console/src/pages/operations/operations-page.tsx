// What the server does now, for operators: runs of all users, those that may be stuck, the load, readers and nodes.

import { useState } from 'react'
import { useCurl } from '../../api/curl.ts'
import { useShortcuts } from '../../app/shortcuts.ts'
import { useLocale, useWords } from '../../i18n/words.ts'
import { Button } from '../../ui/button.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { Page } from '../../ui/page.tsx'
import { Problem } from '../../ui/problem.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { Load } from './load.tsx'
import { millisecondsText } from './milliseconds-text.ts'
import { Nodes } from './nodes.tsx'
import { OpenRuns } from './open-runs.tsx'
import { type Overview, useOverview } from './overview.ts'
import { Readers } from './readers.tsx'
import { operationWords } from './words.ts'
import '../../ui/table.css'
import './operations.css'

export default function OperationsPage() {
  const words = useWords(operationWords)
  const [isPaused, setPaused] = useState(false)
  const { data, error, reload } = useOverview(isPaused)
  const call = useCurl('/v1/operations')
  const toggle = () => setPaused(!isPaused)
  useShortcuts([{ keys: 'p', label: isPaused ? words.goOn : words.pause, run: toggle }])
  if (error?.status === 403) {
    return (
      <EmptyState icon="key" title={words.refused} call={call}>
        {words.refusedHelp}
      </EmptyState>
    )
  }
  return (
    <Page
      title={words.title}
      about={words.about}
      actions={
        <Button icon={isPaused ? 'play' : 'pause'} aria-pressed={isPaused} onClick={toggle}>
          {isPaused ? words.goOn : words.pause}
        </Button>
      }
    >
      {error === undefined ? null : <Problem error={error} onRetry={reload} />}
      {data === undefined && error === undefined ? <Spinner center /> : null}
      {data === undefined ? null : (
        <>
          <Tiles overview={data} />
          <Load overview={data} />
          <OpenRuns overview={data} />
          <Readers overview={data} />
          <Nodes overview={data} />
        </>
      )}
    </Page>
  )
}

function Tiles({ overview: { counts, runs, streams, load } }: { overview: Overview }) {
  const words = useWords(operationWords)
  const locale = useLocale()
  const stuck = runs.filter((run) => run.stuck !== null).length
  const commit = load.samples.findLast(({ commits }) => commits > 0)
  const tiles: { label: string; value: string; tone?: 'warn' | 'bad' }[] = [
    { label: words.running, value: (counts.running ?? 0).toLocaleString(locale) },
    { label: words.waiting, value: (counts.awaiting_input ?? 0).toLocaleString(locale) },
    { label: words.queued, value: (counts.queued ?? 0).toLocaleString(locale) },
    { label: words.stuck, value: stuck.toLocaleString(locale), ...(stuck > 0 ? { tone: 'bad' as const } : {}) },
    { label: words.readers, value: streams.length.toLocaleString(locale) },
    { label: words.commitTime, value: commit === undefined ? '–' : millisecondsText(commit.commitMs) },
  ]
  return (
    <dl className="tiles" aria-label={words.now}>
      {tiles.map(({ label, value, tone }) => (
        <div key={label} className="tile" data-tone={tone}>
          <dt>{label}</dt>
          <dd className="numbers">{value}</dd>
        </div>
      ))}
    </dl>
  )
}
