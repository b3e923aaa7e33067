// One of the two answers. Its head names the configuration only after the vote.

import { Link } from 'wouter'
import type { Comparison } from '@polylog/client'
import { pages } from '../../app/pages.ts'
import { useWords } from '../../i18n/words.ts'
import { ConnectionBadge } from '../../run/connection-badge.tsx'
import { RunBlocks } from '../../run/run-blocks.tsx'
import type { FollowedRun } from '../../run/run-follower.ts'
import { isEnded } from '../../run/run-view.ts'
import { Badge } from '../../ui/badge.tsx'
import { Keys } from '../../ui/button.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Problem } from '../../ui/problem.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { arenaWords } from './words.ts'

type ArmProps = { side: 'a' | 'b'; runId: string; run: FollowedRun; comparison: Comparison }

export function Arm({ side, runId, run, comparison }: ArmProps) {
  const words = useWords(arenaWords)
  const { view, connection, recovered, error } = run
  const { state } = view
  const name = side === 'a' ? words.first : words.second
  const config = side === 'a' ? comparison.side_a_config : comparison.side_b_config
  const isPreferred = comparison.preference === side
  const isEmpty = state.blocks.every((block) => block.type === 'text' && block.text === '')
  const isOver = isEnded(view)
  const hasRunPage = pages.some(({ path }) => path === '/runs')
  return (
    <section className="arm" data-preferred={isPreferred} aria-label={name}>
      <header className="arm-head">
        <Keys text={side === 'a' ? '1' : '2'} />
        <h3 className="cut">{config ?? name}</h3>
        {config === null ? null : <span className="faint arm-side">{name}</span>}
        <span className="grow" />
        {config !== null && hasRunPage ? (
          <Link
            className="button icon-button button-quiet button-small"
            href={`/runs/${encodeURIComponent(runId)}`}
            aria-label={words.openRun(name)}
            title={words.openRun(name)}
          >
            <Icon name="run" />
          </Link>
        ) : null}
        {isPreferred ? <Badge tone="good">{words.preferred}</Badge> : null}
        {isOver ? null : <ConnectionBadge connection={connection} recovered={recovered} />}
        {state.status === 'failed' || state.status === 'cancelled' ? (
          <Badge tone="bad">{state.status === 'failed' ? words.armFailed : words.armStopped}</Badge>
        ) : null}
      </header>
      <div className="arm-body">
        {connection === 'failed' && error !== null ? <Problem error={error} /> : null}
        {isEmpty && !isOver && connection !== 'failed' ? (
          <p className="row soft">
            <Spinner label={words.working} />
            {words.working}
          </p>
        ) : null}
        <RunBlocks runId={runId} view={view} />
        {state.error === undefined ? null : <Problem error={state.error} />}
      </div>
    </section>
  )
}
