// One run in the chosen dialects: a row for each event of its journal, a column for each dialect, and in each cell the bytes
// that the dialect sends for the event. The columns, the search and the row are in the address.

import { type CSSProperties, useEffect, useMemo, useRef, useState } from 'react'
import { Link } from 'wouter'
import { useShortcuts } from '../../app/shortcuts.ts'
import { useLocale, useWords } from '../../i18n/words.ts'
import { ConnectionBadge } from '../../run/connection-badge.tsx'
import { useFoundRows } from '../../run/event-filter.ts'
import type { JournalRow } from '../../run/journal-row.ts'
import { Button } from '../../ui/button.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { Icon } from '../../ui/icon.tsx'
import { Problem } from '../../ui/problem.tsx'
import { SearchField } from '../../ui/search-field.tsx'
import { Spinner } from '../../ui/spinner.tsx'
import { VirtualList, type VirtualListHandle } from '../../ui/virtual-list.tsx'
import { withVisibleControls } from '../../ui/visible-text.ts'
import { ColumnChoice } from './column-choice.tsx'
import { dialects, dialectsFrom, firstColumns } from './dialects.ts'
import { WireHeader } from './wire-header.tsx'
import { WireRow } from './wire-row.tsx'
import { useWires } from './use-wires.ts'
import { wiresWords } from './words.ts'
import './wires-view.css'

const rowHeight = 72
const headerHeight = 112
/** The widths of the first column and of the others, in pixels. */
const eventWidth = 132
const columnWidth = 260

export function WiresView({ runId }: { runId: string }) {
  const words = useWords(wiresWords)
  const locale = useLocale()
  const first = useMemo(() => readAddress(location.search), [])
  const [columns, setColumns] = useState(first.columns)
  const [text, setText] = useState(first.text)
  const [seq, setSeq] = useState(first.seq)
  const [isFollowing, setFollowing] = useState(first.seq === null)
  const list = useRef<VirtualListHandle>(null)
  const { rows, count, connection, error } = useWires(runId, columns.join(','))
  const wanted = text.trim().toLowerCase()
  const { found, isDone } = useFoundRows(
    rows,
    count,
    wanted === '' ? null : wanted,
    () => (row) => hasText(row, wanted),
  )
  const length = found?.length ?? count
  const rowAt = (index: number): JournalRow | undefined => rows[found?.[index] ?? index]
  const current = seq === null ? -1 : indexOfSeq(length, (index) => rowAt(index)?.seq ?? 0, seq)
  const isLive = connection === 'live' || connection === 'reconnecting'
  useAddress(columns.join(','), text, seq)

  useEffect(() => {
    if (current >= 0) list.current?.scrollTo(current)
  }, [current])
  useEffect(() => {
    if (isLive && isFollowing && seq === null && length > 0) list.current?.scrollTo(length - 1, 'end')
  }, [length, isLive, isFollowing, seq])
  const move = (by: 1 | -1) => {
    const next = rowAt(Math.min(length - 1, Math.max(0, current + by)))
    if (next === undefined) return
    setFollowing(false)
    setSeq(next.seq)
  }
  useShortcuts([
    { keys: 'ArrowUp', label: words.keysRow, run: () => move(-1) },
    { keys: 'ArrowDown', label: words.keysRow, run: () => move(1) },
  ])

  if (connection === 'failed' && error !== null && count === 0) {
    if (error.status !== 404) return <Problem error={error} />
    return (
      <EmptyState
        icon="wire"
        title={words.notFound}
        actions={
          <Link className="button button-plain" href="/runs">
            {words.allRuns}
          </Link>
        }
      >
        {words.notFoundHelp}
      </EmptyState>
    )
  }
  const asked = rows[0]?.type === 'run.accepted' ? rows[0].data.input : ''
  return (
    <div className="wires">
      <header className="wires-head">
        <Link
          className="wires-back"
          href={`/runs/${encodeURIComponent(runId)}${seq === null ? '' : `?seq=${seq}`}`}
          aria-label={words.toRun}
          title={words.toRun}
        >
          <Icon name="left" />
        </Link>
        <h1 className="cut" title={asked}>
          <bdi>{withVisibleControls(asked) || words.title}</bdi>
        </h1>
        <ConnectionBadge connection={connection} recovered={0} />
        <span className="grow" />
        {isLive ? (
          <Button
            small
            look="quiet"
            aria-pressed={isFollowing}
            onClick={() => {
              setFollowing(!isFollowing)
              setSeq(null)
            }}
          >
            {isFollowing ? words.following : words.follow}
          </Button>
        ) : null}
        <span className="faint numbers wires-found" role="status">
          {found === null
            ? null
            : isDone
              ? words.found(found.length.toLocaleString(locale), count.toLocaleString(locale))
              : words.searching}
        </span>
        <div className="wires-search">
          <SearchField label={words.search} value={text} onChange={setText} />
        </div>
        <ColumnChoice chosen={columns} onChange={setColumns} />
      </header>
      {columns.length === 0 ? (
        <EmptyState icon="wire" title={words.noColumns} />
      ) : count === 0 ? (
        <Spinner center />
      ) : length === 0 && isDone ? (
        <EmptyState
          icon="search"
          title={words.nothingFits}
          actions={<Button onClick={() => setText('')}>{words.clear}</Button>}
        />
      ) : (
        <div
          className="wires-list"
          style={{ '--columns': columns.length } as CSSProperties}
          // Whoever scrolls wants to read.
          onWheel={() => setFollowing(false)}
          onTouchMove={() => setFollowing(false)}
        >
          <VirtualList
            ref={list}
            label={words.rows}
            count={length}
            rowHeight={rowHeight}
            minWidth={eventWidth + columns.length * columnWidth}
            keyOf={(index) => rowAt(index)?.seq ?? index}
            header={{
              height: headerHeight,
              content: (
                <div className="wire-row wire-header-row">
                  <span className="wire-event faint">{words.event}</span>
                  {dialects
                    .filter(({ name }) => columns.includes(name))
                    .map((dialect) => (
                      <WireHeader key={dialect.name} runId={runId} dialect={dialect} />
                    ))}
                </div>
              ),
            }}
            renderRow={(index) => {
              const row = rowAt(index)
              if (row === undefined) return null
              return (
                <WireRow
                  runId={runId}
                  row={row}
                  start={rows[0]?.atMs ?? row.atMs}
                  columns={columns}
                  isCurrent={row.seq === seq}
                />
              )
            }}
          />
        </div>
      )}
    </div>
  )
}

function readAddress(search: string) {
  const query = new URLSearchParams(search)
  const seq = Number.parseInt(query.get('seq') ?? '', 10)
  const columns = dialectsFrom(query.get('wires') ?? '')
  return {
    columns: columns.length === 0 ? dialectsFrom(firstColumns.join(',')) : columns,
    text: (query.get('q') ?? '').slice(0, 200),
    seq: Number.isSafeInteger(seq) && seq > 0 ? seq : null,
  }
}

/** Browsers refuse addresses that change too often. */
const restMs = 250

function useAddress(columns: string, text: string, seq: number | null): void {
  useEffect(() => {
    const query = new URLSearchParams({
      ...(columns === dialectsFrom(firstColumns.join(',')).join(',') ? {} : { wires: columns }),
      ...(text === '' ? {} : { q: text }),
      ...(seq === null ? {} : { seq: String(seq) }),
    })
    const address = `${location.pathname}${query.size === 0 ? '' : `?${String(query)}`}`
    const timer = setTimeout(() => history.replaceState(history.state, '', address), restMs)
    return () => clearTimeout(timer)
  }, [columns, text, seq])
}

function hasText(row: JournalRow, wanted: string): boolean {
  return (
    row.type.includes(wanted) ||
    Object.values(row.wires).some((frames) => frames?.some((frame) => frame.toLowerCase().includes(wanted)))
  )
}

/** The index of the row with this number, or of the last one before it. */
function indexOfSeq(length: number, seqAt: (index: number) => number, seq: number): number {
  let low = 0
  let high = length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (seqAt(middle) <= seq) low = middle + 1
    else high = middle
  }
  return low - 1
}
