// The unfinished runs of all users, oldest first; those that may be stuck say why. The address holds which are shown.

import { Link, useSearch } from 'wouter'
import { session } from '../../api/session.ts'
import { useCurl } from '../../api/curl.ts'
import { useWords } from '../../i18n/words.ts'
import { StatusBadge } from '../../run/status-badge.tsx'
import { Badge } from '../../ui/badge.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { TimeAgo } from '../../ui/time-ago.tsx'
import { withVisibleControls } from '../../ui/visible-text.ts'
import type { OpenRun, Overview } from './overview.ts'
import { operationWords } from './words.ts'

/** The server lists no more. */
const listedMax = 200

const kinds = {
  all: () => true,
  running: ({ status }: OpenRun) => status === 'running',
  waiting: ({ status }: OpenRun) => status === 'awaiting_input',
  queued: ({ status }: OpenRun) => status === 'queued',
  stuck: ({ stuck }: OpenRun) => stuck !== null,
} as const

type Kind = keyof typeof kinds

export function OpenRuns({ overview }: { overview: Overview }) {
  const words = useWords(operationWords)
  const chosen = new URLSearchParams(useSearch()).get('runs') ?? ''
  const kind: Kind = Object.hasOwn(kinds, chosen) ? (chosen as Kind) : 'all'
  const call = useCurl('/v1/agent/chat', { options: '-N', body: { input: words.noRunsAsk } })
  const shown = overview.runs.filter(kinds[kind])
  return (
    <section className="stack" aria-label={words.runs}>
      <div className="row row-wrap">
        <h2 className="grow">{words.runs}</h2>
        <Tabs
          label={words.views}
          current={addressOf(kind)}
          tabs={(Object.keys(kinds) as Kind[]).map((name) => ({
            href: addressOf(name),
            label: words[name],
            count: overview.runs.filter(kinds[name]).length,
          }))}
        />
      </div>
      {overview.runs.length === 0 ? (
        <EmptyState icon="run" title={words.noRuns} call={call}>
          {words.noRunsHelp}
        </EmptyState>
      ) : shown.length === 0 ? (
        <p className="faint">{words.noneOfKind}</p>
      ) : (
        <RunTable runs={shown} nodes={overview.nodes} />
      )}
      {overview.runs.length >= listedMax ? <p className="faint">{words.runsMax(listedMax)}</p> : null}
    </section>
  )
}

function RunTable({ runs, nodes }: { runs: readonly OpenRun[]; nodes: Overview['nodes'] }) {
  const words = useWords(operationWords)
  const nodeNames = new Map(nodes.map(({ id, name }) => [id, withVisibleControls(name)]))
  return (
    <div className="table-box operations-runs" tabIndex={0} role="region" aria-label={words.runs}>
      <table className="table">
        <thead>
          <tr>
            <th scope="col">{words.run}</th>
            <th scope="col">{words.user}</th>
            <th scope="col" className="table-wide">
              {words.agent}
            </th>
            <th scope="col">{words.status}</th>
            <th scope="col" className="table-wide">
              {words.node}
            </th>
            <th scope="col" className="table-number table-wide">
              {words.attempt}
            </th>
            <th scope="col" className="table-number">
              {words.age}
            </th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <tr key={run.runId}>
              <td>
                <RunLink runId={run.runId} userId={run.userId} />
              </td>
              <td className="cut">
                <bdi>{withVisibleControls(run.userId)}</bdi>
              </td>
              <td className="cut table-wide">
                {withVisibleControls(run.agentId)} <span className="faint">{run.family}</span>
              </td>
              <td>
                <span className="row">
                  {run.stuck === null ? (
                    <StatusBadge status={run.status} />
                  ) : (
                    <span title={words[`stuckHelp_${run.stuck}`]}>
                      <Badge tone="bad" dot>
                        {words[`stuck_${run.stuck}`]}
                      </Badge>
                    </span>
                  )}
                  {run.cancelRequested ? <Badge>{words.stopping}</Badge> : null}
                </span>
              </td>
              <td className="cut table-wide faint">
                {run.node === null ? '–' : (nodeNames.get(run.node) ?? run.node.slice(-6))}
              </td>
              <td className="table-number table-wide">{run.attempt}</td>
              <td className="table-number faint">
                <TimeAgo at={run.createdAtMs} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** The end of an id tells runs apart; its beginning is the time. */
const shownIdChars = 8

/** Operators see the runs of all users in this list, but can open only their own. */
export function RunLink({ runId, userId }: { runId: string; userId?: string }) {
  const { token, user } = session.use()
  const isReadable = token !== null || user === null || userId === undefined || userId === user
  const text = <code title={runId}>…{runId.slice(-shownIdChars)}</code>
  return isReadable ? <Link href={`/runs/${encodeURIComponent(runId)}`}>{text}</Link> : text
}

function addressOf(kind: Kind): string {
  return kind === 'all' ? '/operations' : `/operations?runs=${kind}`
}
