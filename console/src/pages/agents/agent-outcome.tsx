// What came out of an agent: the result of the last request, or a stored one that the address names; whether it came from
// the cache, how old it is, what changed since the one before it, and earlier ones.

import { useEffect, useRef } from 'react'
import { Link } from 'wouter'
import { useLoaded } from '../../api/use-loaded.ts'
import { useLocale, useWords } from '../../i18n/words.ts'
import { Badge } from '../../ui/badge.tsx'
import { CodeBlock } from '../../ui/code-block.tsx'
import { durationText, useNow } from '../../ui/countdown.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Card } from '../../ui/page.tsx'
import { Problem } from '../../ui/problem.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { TimeAgo } from '../../ui/time-ago.tsx'
import type { AgentInfo } from './catalogue.ts'
import { ResultCard } from './result-card.tsx'
import { SnapshotChanges } from './snapshot-changes.tsx'
import type { Snapshot, SnapshotInfo } from './snapshots.ts'
import type { AgentRunState } from './use-agent-run.ts'
import { agentsWords } from './words.ts'

type AgentOutcomeProps = {
  agent: AgentInfo
  operation: string | null
  state: AgentRunState
  snapshotId: string | null
  call: string
  /** The form shows what is wrong. */
  isErrorAtFields: boolean
}

const shownSnapshots = 20

export function AgentOutcome({ agent, operation, state, snapshotId, call, isErrorAtFields }: AgentOutcomeProps) {
  const words = useWords(agentsWords)
  const isRunning = state.phase === 'running'
  const fresh = state.phase === 'done' && (snapshotId === null || state.result.snapshotId === snapshotId) ? state : null
  const stored = useLoaded(snapshotId === null ? null : `snapshot ${snapshotId}`, ({ json }, signal) =>
    json<Snapshot>(`/v1/agent/snapshots/${encodeURIComponent(snapshotId ?? '')}`, { signal }),
  )
  const place = useRef<HTMLDivElement>(null)
  useEffect(() => {
    // On a phone, and after a long form, the result is out of sight.
    if (state.phase !== 'idle') place.current?.scrollIntoView({ block: 'nearest' })
    if (state.phase === 'done') place.current?.scrollTo({ top: 0 })
  }, [state.phase])
  return (
    // A region that scrolls must be reachable by keyboard.
    <div ref={place} className="bench-outcome" tabIndex={0} role="region" aria-label={words.result}>
      {isRunning ? <Running startedAt={state.startedAt} /> : null}
      {state.phase === 'failed' && !isErrorAtFields ? (
        state.error.code === 'run_cancelled' ? (
          <p className="soft bench-stopped" role="status">
            {words.stopped}
          </p>
        ) : (
          <Problem error={state.error} />
        )
      ) : null}
      {stored.error === undefined || fresh !== null ? null : <Problem error={stored.error} onRetry={stored.reload} />}
      {fresh !== null ? (
        <ResultCard
          result={fresh.result}
          expiresAtMs={stored.data?.expiresAtMs ?? null}
          cached={fresh.result.cached}
          tookMs={fresh.tookMs}
          call={call}
        />
      ) : stored.data === undefined ? null : (
        <ResultCard result={stored.data} expiresAtMs={stored.data.expiresAtMs} call={call} />
      )}
      {snapshotId === null ? null : <SnapshotChanges snapshotId={snapshotId} />}
      <History
        agent={agent}
        operation={operation}
        current={snapshotId}
        phase={state.phase}
        call={fresh === null && stored.data === undefined ? call : null}
      />
    </div>
  )
}

function Running({ startedAt }: { startedAt: number }) {
  const words = useWords(agentsWords)
  const now = useNow(true)
  return (
    <p className="row soft bench-running">
      <Spinner label={words.running} />
      <span className="grow">{words.running}</span>
      <span className="numbers faint">{durationText(Math.max(0, Math.floor((now - startedAt) / 1000)) * 1000)}</span>
    </p>
  )
}

type HistoryProps = {
  agent: AgentInfo
  operation: string | null
  current: string | null
  phase: AgentOutcomeProps['state']['phase']
  call: string | null
}

/** Earlier results, newest first. The list stays visible while it is read again after a run. */
function History({ agent, operation, current, phase, call }: HistoryProps) {
  const words = useWords(agentsWords)
  const locale = useLocale()
  const { data, reload } = useLoaded(`snapshots ${agent.id} ${operation ?? ''}`, ({ json }, signal) =>
    json<SnapshotInfo[]>('/v1/agent/snapshots', {
      query: { agentId: agent.id, limit: shownSnapshots, ...(operation === null ? {} : { operation }) },
      signal,
    }),
  )
  const lastPhase = useRef(phase)
  useEffect(() => {
    if (phase !== lastPhase.current && phase === 'done') reload()
    lastPhase.current = phase
  }, [phase, reload])
  if (data === undefined) return null
  if (data.length === 0) {
    return call === null ? null : (
      <div className="bench-empty">
        <Icon name="agent" size={20} />
        <h2>{words.noResult}</h2>
        <p className="soft">{words.noResultHelp}</p>
        <CodeBlock code={call} label="curl" />
      </div>
    )
  }
  return (
    <Card title={words.history}>
      <ul className="bench-history">
        {data.map((item) => {
          const query = new URLSearchParams({
            ...(operation === null ? {} : { operation }),
            snapshot: item.snapshotId,
          })
          return (
            <li key={item.snapshotId}>
              <Link
                href={`/agents/${encodeURIComponent(agent.id)}?${String(query)}`}
                className="bench-snapshot"
                aria-current={item.snapshotId === current ? 'true' : undefined}
              >
                <span className="numbers bench-snapshot-time">
                  {new Date(item.generatedAtMs).toLocaleString(locale, { dateStyle: 'medium', timeStyle: 'short' })}
                </span>
                <span className="cut grow soft">
                  {item.scopeType === 'conversation' || item.scopeType === 'contact' ? item.scopeId : ''}
                </span>
                <code className="faint cut">{item.model}</code>
                {item.expiresAtMs !== null && item.expiresAtMs < Date.now() ? <Badge>{words.expired}</Badge> : null}
                <span className="faint">
                  <TimeAgo at={item.generatedAtMs} />
                </span>
              </Link>
            </li>
          )
        })}
      </ul>
    </Card>
  )
}
