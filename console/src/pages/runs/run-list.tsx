// The runs of the user, newest first, with filters that are in the address. States change live, through the feed.

import { type FormEvent, useState } from 'react'
import { Link, useLocation, useSearchParams } from 'wouter'
import { useCurl } from '../../api/curl.ts'
import { useLocale, useWords } from '../../i18n/words.ts'
import { StatusBadge } from '../../run/status-badge.tsx'
import { runWords } from '../../run/words.ts'
import { Button } from '../../ui/button.tsx'
import { durationText, useNow } from '../../ui/countdown.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Page } from '../../ui/page.tsx'
import { Problem } from '../../ui/problem.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { withVisibleControls } from '../../ui/visible-text.ts'
import { type ListedRun, useRuns } from './use-runs.ts'
import { runsWords } from './words.ts'
import './run-list.css'

const open = 'queued,running,awaiting_input'
const filters = ['', open, 'awaiting_input', 'succeeded', 'failed', 'cancelled'] as const

export function RunList() {
  const words = useWords(runsWords)
  const states = useWords(runWords)
  const [query, setQuery] = useSearchParams()
  const status = filters.find((each) => each === query.get('status')) ?? ''
  const conversationId = query.get('conversationId') ?? ''
  const { items, hasMore, loadMore, isLoading, error, reload } = useRuns(status, conversationId)
  const labels: Record<(typeof filters)[number], string> = {
    '': words.all,
    [open]: words.open,
    awaiting_input: states.awaiting_input,
    succeeded: states.succeeded,
    failed: states.failed,
    cancelled: states.cancelled,
  }
  const call = useCurl('/v1/agent/chat', { body: { input: 'What time is it?' }, options: '-N' })
  const isFiltered = status !== '' || conversationId !== ''
  return (
    <Page
      title={words.title}
      about={words.about}
      actions={<OpenById />}
      bar={
        <>
          <div className="run-filters" role="group" aria-label={words.filterStatus}>
            {filters.map((each) => (
              <button
                key={each}
                type="button"
                className="run-filter"
                aria-pressed={each === status}
                onClick={() =>
                  setQuery({ ...(each === '' ? {} : { status: each }), ...inConversation(conversationId) })
                }
              >
                {labels[each]}
              </button>
            ))}
          </div>
          {conversationId === '' ? null : (
            <Button
              small
              icon="close"
              onClick={() => setQuery(status === '' ? {} : { status })}
              title={words.removeFilter}
            >
              {words.ofConversation}
            </Button>
          )}
        </>
      }
    >
      {error === undefined ? null : <Problem error={error} onRetry={reload} />}
      {isLoading ? <Spinner center /> : null}
      {!isLoading && error === undefined && items.length === 0 ? (
        isFiltered ? (
          <EmptyState
            icon="filter"
            title={words.noneFiltered}
            actions={<Button onClick={() => setQuery({})}>{words.all}</Button>}
          />
        ) : (
          <EmptyState icon="run" title={words.none} call={call}>
            {words.noneHelp}
          </EmptyState>
        )
      ) : null}
      {items.length === 0 ? null : <RunTable runs={items} />}
      {hasMore ? (
        <div>
          <Button onClick={() => void loadMore()}>{words.more}</Button>
        </div>
      ) : null}
    </Page>
  )
}

function inConversation(conversationId: string): Record<string, string> {
  return conversationId === '' ? {} : { conversationId }
}

/** For an id from a log or from somebody else. */
function OpenById() {
  const words = useWords(runsWords)
  const [, navigate] = useLocation()
  const [id, setId] = useState('')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (id.trim() !== '') navigate(`/runs/${encodeURIComponent(id.trim())}`)
  }
  return (
    <form className="run-by-id" onSubmit={submit}>
      <input
        className="input input-code"
        aria-label={words.findRun}
        placeholder={words.findRun}
        spellCheck={false}
        value={id}
        onChange={(event) => setId(event.target.value)}
      />
      <Button type="submit" disabled={id.trim() === ''}>
        {words.openRun}
      </Button>
    </form>
  )
}

function RunTable({ runs }: { runs: readonly ListedRun[] }) {
  const words = useWords(runsWords)
  const now = useNow(runs.some(({ endedAtMs }) => endedAtMs === null))
  return (
    <table className="run-table">
      <thead>
        <tr>
          <th scope="col">{words.columnRun}</th>
          <th scope="col">{words.columnStatus}</th>
          <th scope="col" className="run-wide">
            {words.columnAgent}
          </th>
          <th scope="col" className="run-number run-wide">
            {words.columnEvents}
          </th>
          <th scope="col" className="run-number run-wide">
            {words.columnTokens}
          </th>
          <th scope="col" className="run-number">
            {words.columnDuration}
          </th>
          <th scope="col" className="run-number run-medium">
            {words.columnTime}
          </th>
        </tr>
      </thead>
      <tbody>
        {runs.map((run) => (
          <RunLine key={run.runId} run={run} now={now} />
        ))}
      </tbody>
    </table>
  )
}

function RunLine({ run, now }: { run: ListedRun; now: number }) {
  const words = useWords(runsWords)
  const locale = useLocale()
  const tokens = run.usage === null ? 0 : run.usage.inputTokens + run.usage.outputTokens
  const isToday = new Date(run.createdAtMs).toDateString() === new Date(now).toDateString()
  const created = new Date(run.createdAtMs)
  return (
    <tr>
      <td className="run-cell">
        <Link href={`/runs/${encodeURIComponent(run.runId)}`} className="run-link">
          <bdi className="cut">{withVisibleControls(run.input ?? '') || words.noInput}</bdi>
          <code className="faint">{run.runId}</code>
        </Link>
      </td>
      <td>
        <StatusBadge status={run.status} />
      </td>
      <td className="run-wide soft">{run.agentId}</td>
      <td className="run-number run-wide">{Number(run.cursor).toLocaleString(locale)}</td>
      <td className="run-number run-wide">{tokens === 0 ? '–' : tokens.toLocaleString(locale)}</td>
      <td className="run-number">{durationText((run.endedAtMs ?? now) - run.createdAtMs)}</td>
      <td className="run-number run-medium faint" title={created.toLocaleString(locale)}>
        {isToday ? created.toLocaleTimeString(locale) : created.toLocaleDateString(locale)}
        <Icon name="right" size={12} />
      </td>
    </tr>
  )
}
