// Everything that waits for a decision, over all runs, and what was decided. `/inbox` is what waits, `/inbox/<id>` one of
// it, `/inbox/history` what was decided.

import { type ReactNode, useEffect, useMemo, useRef, useState } from 'react'
import { useLocation } from 'wouter'
import type { Interaction } from '@polylog/client'
import { pathParts } from '../../app/path-part.ts'
import { useShortcuts } from '../../app/shortcuts.ts'
import { useCurl } from '../../api/curl.ts'
import { liveState } from '../../feed/live-state.ts'
import { useWords } from '../../i18n/words.ts'
import { announce } from '../../ui/announcements.ts'
import { EmptyState } from '../../ui/empty-state.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { Split } from '../../ui/split.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { DecisionDetail } from './decision-detail.tsx'
import { DecisionRow, titleOf } from './decision-row.tsx'
import { History } from './history.tsx'
import { inboxWords } from './words.ts'

export default function InboxPage() {
  const words = useWords(inboxWords)
  const [location] = useLocation()
  const [named = ''] = pathParts(location)
  const { decisions } = liveState.use()
  const head = (
    <>
      <h1>{words.title}</h1>
      <Tabs
        label={words.views}
        current={named === 'history' ? '/inbox/history' : '/inbox'}
        tabs={[
          { href: '/inbox', label: words.waiting, count: decisions.size },
          { href: '/inbox/history', label: words.history },
        ]}
      />
    </>
  )
  return named === 'history' ? <History head={head} /> : <Waiting head={head} named={named} />
}

function Waiting({ head, named }: { head: ReactNode; named: string }) {
  const words = useWords(inboxWords)
  const { decisions, hasMoreDecisions, isRead } = liveState.use()
  const [, navigate] = useLocation()
  const list = useRef<HTMLUListElement>(null)
  const items = useMemo(() => [...decisions.values()].toSorted(byUrgency), [decisions])
  const call = useCurl('/v1/agent/chat', { options: '-N', body: { input: words.emptyAsk } })
  useArrivals(items)

  // A wide page shows the first one until another is chosen. It stays the same one when the list changes: a key that was
  // meant for it must not decide another one that has just taken its place.
  const [shown, setShown] = useState<string>()
  const first = items[0]?.id
  useEffect(() => {
    if (named !== '' || first === undefined) setShown(undefined)
    else setShown((old) => old ?? first)
  }, [named, first])
  const currentId = named === '' ? (shown ?? first) : named
  const current = items.find(({ id }) => id === currentId)
  const at = current === undefined ? -1 : items.indexOf(current)
  const choose = (next: Interaction | undefined) => {
    navigate(next === undefined ? '/inbox' : addressOf(next), { replace: true })
    const index = next === undefined ? -1 : items.indexOf(next)
    list.current?.children[index]?.querySelector('a')?.focus()
  }
  const move = (by: number) => choose(items[Math.max(0, Math.min(items.length - 1, at + by))])
  useShortcuts([
    { keys: 'j', label: words.next, run: () => move(1) },
    { keys: 'k', label: words.previous, run: () => move(-1) },
    { keys: 'ArrowDown', label: words.next, run: () => move(1) },
    { keys: 'ArrowUp', label: words.previous, run: () => move(-1) },
  ])

  if (items.length === 0 && named === '') {
    return (
      <Split
        label={words.list}
        head={head}
        isChosen={false}
        list={
          isRead ? (
            <EmptyState icon="inbox" title={words.empty} call={call}>
              {words.emptyHelp}
            </EmptyState>
          ) : (
            <Spinner center />
          )
        }
        detail={null}
        isEmpty
      />
    )
  }
  return (
    <Split
      label={words.list}
      head={head}
      isChosen={named !== ''}
      list={
        <>
          <ul ref={list}>
            {items.map((item) => (
              <li key={item.id}>
                <DecisionRow item={item} href={addressOf(item)} isCurrent={item === current} />
              </li>
            ))}
          </ul>
          {hasMoreDecisions ? <p className="faint split-end">{words.more(items.length)}</p> : null}
        </>
      }
      detail={
        current === undefined ? (
          isRead ? (
            <Gone />
          ) : (
            <Spinner center />
          )
        ) : (
          <DecisionDetail key={current.id} item={current} onDecided={() => choose(items[at + 1] ?? items[at - 1])} />
        )
      }
    />
  )
}

function Gone() {
  const words = useWords(inboxWords)
  return (
    <EmptyState icon="check" title={words.gone}>
      {words.goneHelp}
    </EmptyState>
  )
}

/** Tells screen readers of what comes in while the page is open. */
function useArrivals(items: readonly Interaction[]): void {
  const words = useWords(inboxWords)
  const known = useRef<Set<string> | null>(null)
  useEffect(() => {
    const fresh = items.find(({ id }) => known.current?.has(id) === false)
    if (fresh !== undefined) announce(words.arrived(titleOf(fresh, words)))
    known.current = new Set(items.map(({ id }) => id))
  }, [items, words])
}

/** What expires first comes first, then what was asked first. */
function byUrgency(one: Interaction, other: Interaction): number {
  const first = one.expiresAtMs ?? Infinity
  const second = other.expiresAtMs ?? Infinity
  if (first !== second) return first - second
  return one.createdAtMs - other.createdAtMs || (one.id < other.id ? -1 : 1)
}

function addressOf({ id }: Interaction): string {
  return `/inbox/${encodeURIComponent(id)}`
}
