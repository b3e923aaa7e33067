// The page of wires: one run in many dialects. Without a run, the newest ones to choose from.

import { Link, useLocation } from 'wouter'
import type { RunInfo } from '@polylog/client'
import { useCurl } from '../../api/curl.ts'
import { useLoaded } from '../../api/use-loaded.ts'
import { pathPart } from '../../app/path-part.ts'
import { useWords } from '../../i18n/words.ts'
import { StatusBadge } from '../../run/status-badge.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { Page } from '../../ui/page.tsx'
import { Problem } from '../../ui/problem.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { withVisibleControls } from '../../ui/visible-text.ts'
import { dialects } from './dialects.ts'
import { WiresView } from './wires-view.tsx'
import { wiresWords } from './words.ts'
import './wires-page.css'

const shownRuns = 8

export default function WiresPage() {
  const [location] = useLocation()
  const runId = pathPart(location)
  return runId === null ? <ChooseRun /> : <WiresView key={runId} runId={runId} />
}

function ChooseRun() {
  const words = useWords(wiresWords)
  const call = useCurl('/v1/agent/chat', { body: { input: 'What time is it?' }, options: '-N' })
  const { data, error, reload } = useLoaded('newest runs', ({ json }, signal) =>
    json<(RunInfo & { input?: string })[]>('/v1/agent/runs', {
      query: { include: 'input', limit: shownRuns },
      signal,
    }),
  )
  return (
    <Page title={words.title} about={words.about}>
      {error === undefined ? null : <Problem error={error} onRetry={reload} />}
      {data === undefined && error === undefined ? <Spinner center /> : null}
      {data?.length === 0 ? (
        <EmptyState icon="wire" title={words.none} call={call}>
          {words.noneHelp}
        </EmptyState>
      ) : null}
      {data === undefined || data.length === 0 ? null : (
        <div className="wires-choose">
          <p className="soft">{words.chooseHelp}</p>
          <h2>{words.newest}</h2>
          <ul className="wires-runs">
            {data.map(({ runId, input, status }) => (
              <li key={runId}>
                <Link className="wires-run" href={`/wires/${encodeURIComponent(runId)}`}>
                  <bdi className="grow cut">{withVisibleControls(input ?? '') || runId}</bdi>
                  <StatusBadge status={status} />
                </Link>
              </li>
            ))}
          </ul>
          <Link href="/runs">{words.allRuns}</Link>
        </div>
      )}
      <section className="wires-dialects" aria-labelledby="wires-dialects">
        <h2 id="wires-dialects">{words.columns}</h2>
        <ul>
          {dialects.map(({ name, title, doc }) => (
            <li key={name} className="wires-dialect">
              <span className="row">
                <strong>{title}</strong>
                <code className="wires-format">{name}</code>
              </span>
              <span className="soft">{words[`about_${name}`]}</span>
              <code className="faint">{doc}</code>
            </li>
          ))}
        </ul>
      </section>
    </Page>
  )
}
