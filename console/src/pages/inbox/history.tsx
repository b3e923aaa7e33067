// What was decided, newest first: by whom, and with which reason.

import { type ReactNode, useState } from 'react'
import { useLocation } from 'wouter'
import type { Interaction, JsonValue } from '@polylog/client'
import { useApi } from '../../api/api.ts'
import { problemOf, useLoaded } from '../../api/use-loaded.ts'
import { pathParts } from '../../app/path-part.ts'
import { shellWords } from '../../app/words.ts'
import { useFeed } from '../../feed/feed.ts'
import { needsLists } from '../../feed/live-state.ts'
import { useWords } from '../../i18n/words.ts'
import { Badge, type Tone } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { JsonTree } from '../../ui/json-tree.tsx'
import { Problem } from '../../ui/problem.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { Split } from '../../ui/split.tsx'
import { showProblem } from '../../ui/toast.tsx'
import { withVisibleControls } from '../../ui/visible-text.ts'
import { DecisionHead } from './decision-detail.tsx'
import { DecisionRow } from './decision-row.tsx'
import { inboxWords } from './words.ts'

const pageRows = 50

const tones: Record<Interaction['status'], Tone> = {
  pending: 'warn',
  confirmed: 'good',
  replied: 'good',
  rejected: 'bad',
  auto_decided: 'info',
  expired: 'neutral',
  closed: 'neutral',
}

type Decided = { rows: Interaction[]; hasMore: boolean }

export function History({ head }: { head: ReactNode }) {
  const words = useWords(inboxWords)
  const shell = useWords(shellWords)
  const api = useApi()
  const [location] = useLocation()
  const [, named] = pathParts(location)
  const { data, error, reload, change } = useLoaded<Decided>('decided', async ({ json }, signal) => {
    const rows = await json<Interaction[]>('/v1/interactions', { query: { limit: pageRows }, signal })
    return { rows, hasMore: rows.length === pageRows }
  })
  const [isLoadingMore, setLoadingMore] = useState(false)
  useFeed((frame) => {
    if (needsLists(frame)) reload()
    else if (frame.type === 'interaction.decided') {
      const { interaction } = frame
      change(({ rows, ...rest }) => ({
        ...rest,
        rows: [interaction, ...rows.filter(({ id }) => id !== interaction.id)],
      }))
    }
  })
  const loadMore = async () => {
    setLoadingMore(true)
    try {
      const before = data?.rows.at(-1)?.id
      const rows = await api.json<Interaction[]>('/v1/interactions', { query: { limit: pageRows, before } })
      change((old) => ({ rows: [...old.rows, ...rows], hasMore: rows.length === pageRows }))
    } catch (problem) {
      showProblem(shell.failed, problemOf(problem))
    } finally {
      setLoadingMore(false)
    }
  }
  const items = (data?.rows ?? []).filter(({ status }) => status !== 'pending')
  const current = items.find(({ id }) => id === named)
  return (
    <Split
      label={words.history}
      head={head}
      isChosen={current !== undefined}
      list={
        <>
          {error === undefined ? null : <Problem error={error} onRetry={reload} />}
          {data === undefined && error === undefined ? <Spinner center /> : null}
          {data !== undefined && items.length === 0 ? <EmptyState icon="inbox" title={words.noHistory} /> : null}
          <ul>
            {items.map((item) => (
              <li key={item.id}>
                <DecisionRow
                  item={item}
                  href={`/inbox/history/${encodeURIComponent(item.id)}`}
                  isCurrent={item === current}
                  side={<Badge tone={tones[item.status]}>{words[`status_${item.status}`]}</Badge>}
                />
              </li>
            ))}
          </ul>
          {data?.hasMore === true ? (
            <Button small look="quiet" disabled={isLoadingMore} onClick={() => void loadMore()}>
              {words.showMore}
            </Button>
          ) : null}
        </>
      }
      detail={
        current === undefined ? (
          <EmptyState icon="inbox" title={words.choose} />
        ) : (
          <article className="decision">
            <DecisionHead item={current} back="/inbox/history" />
            <p dir="auto">{withVisibleControls(current.message)}</p>
            <div>
              <Badge tone={tones[current.status]}>{words[`status_${current.status}`]}</Badge>
            </div>
            {current.reason === null ? null : (
              <p dir="auto">
                <span className="faint">{words.reason}</span> {withVisibleControls(current.reason)}
              </p>
            )}
            {current.payload === null ? null : (
              <JsonTree value={current.payload as JsonValue} label={words.arguments} />
            )}
          </article>
        )
      }
    />
  )
}
