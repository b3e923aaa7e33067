// Earlier comparisons at the left, and one of them, or a new one, beside them.

import { Link, useLocation } from 'wouter'
import { useCommands } from '../../app/palette.tsx'
import { useShortcuts } from '../../app/shortcuts.ts'
import { useWords } from '../../i18n/words.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Problem } from '../../ui/problem.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { Split } from '../../ui/split.tsx'
import { TimeAgo } from '../../ui/time-ago.tsx'
import { withVisibleOverrides } from '../../ui/visible-text.ts'
import { ArenaTabs } from './arena-tabs.tsx'
import { ComparisonView } from './comparison-view.tsx'
import { NewComparison } from './new-comparison.tsx'
import { type ListedComparison, useComparisons } from './use-comparisons.ts'
import { arenaWords } from './words.ts'
import './compare-page.css'

export function ComparePage({ id, isNew }: { id: string | null; isNew: boolean }) {
  const words = useWords(arenaWords)
  const [, navigate] = useLocation()
  const { items, hasMore, loadMore, isLoading, error, reload } = useComparisons()
  const start = () => navigate('/arena/new')
  useShortcuts([{ keys: 'n', label: words.newComparison, run: start }])
  useCommands([{ id: 'new comparison', label: words.newComparison, icon: 'plus', keys: 'n', run: start }])
  const isEmpty = items.length === 0 && !isLoading && error === undefined
  return (
    <Split
      narrow
      label={words.comparisons}
      isChosen={id !== null || isNew || isEmpty}
      head={
        <>
          <div className="row">
            <h1 className="grow">{words.arena}</h1>
            <Button small icon="plus" onClick={start} keys="N">
              {words.newShort}
            </Button>
          </div>
          <ArenaTabs current="/arena" />
        </>
      }
      list={
        <>
          {error === undefined ? null : <Problem error={error} onRetry={reload} />}
          {isLoading ? <Spinner center /> : null}
          {isEmpty ? <p className="split-end faint">{words.noneYet}</p> : null}
          <ul>
            {items.map((item) => (
              <li key={item.comparison_id}>
                <ComparisonRow item={item} isCurrent={item.comparison_id === id} />
              </li>
            ))}
          </ul>
          {hasMore ? (
            <Button small look="quiet" onClick={() => void loadMore()}>
              {words.more}
            </Button>
          ) : null}
        </>
      }
      detail={
        <>
          <div className="split-back compare-back">
            <Link href="/arena" className="button button-quiet button-small">
              <Icon name="left" />
              {words.comparisons}
            </Link>
          </div>
          {id === null ? <NewComparison isFirst={isEmpty} /> : <ComparisonView key={id} id={id} />}
        </>
      }
    />
  )
}

function ComparisonRow({ item, isCurrent }: { item: ListedComparison; isCurrent: boolean }) {
  const words = useWords(arenaWords)
  const { preference, state } = item
  const outcome =
    preference === null
      ? words[`state_${state}`]
      : preference === 'a' || preference === 'b'
        ? words.wins((preference === 'a' ? item.side_a_config : item.side_b_config) ?? '')
        : words[preference]
  const tone = preference !== null ? 'neutral' : state === 'ready' ? 'warn' : state === 'failed' ? 'bad' : 'accent'
  return (
    <Link
      href={`/arena/${encodeURIComponent(item.comparison_id)}`}
      className="split-row compare-row"
      aria-current={isCurrent ? 'true' : undefined}
    >
      <span className="split-row-title cut" dir="auto">
        {withVisibleOverrides(item.question) || words.noText}
      </span>
      <span className="split-row-side">
        <TimeAgo at={Date.parse(item.created_at)} />
      </span>
      <span className="split-row-note row">
        <Badge tone={tone} dot={preference === null}>
          {outcome}
        </Badge>
      </span>
    </Link>
  )
}
