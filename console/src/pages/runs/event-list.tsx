// The events of the journal, one line each.

import { memo, useEffect, useRef } from 'react'
import { preferences } from '../../app/preferences.ts'
import { useLocale, useWords } from '../../i18n/words.ts'
import { groupOf, severityOf, summaryOf } from '../../run/event-groups.ts'
import type { JournalRow } from '../../run/journal-row.ts'
import type { RunRecord } from '../../run/run-record.ts'
import { Button } from '../../ui/button.tsx'
import { durationText } from '../../ui/countdown.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { VirtualList, type VirtualListHandle } from '../../ui/virtual-list.tsx'
import { withVisibleControls } from '../../ui/visible-text.ts'
import { runsWords } from './words.ts'
import './event-list.css'

const rowHeight = 26

type EventListProps = {
  record: RunRecord
  count: number
  /** The indices of the rows that are listed; null for all. */
  found: readonly number[] | null
  index: number
  start: number
  onSeek(index: number): void
  onOpen(): void
  onClear(): void
}

export function EventList({ record, count, found, index, start, onSeek, onOpen, onClear }: EventListProps) {
  const words = useWords(runsWords)
  const list = useRef<VirtualListHandle>(null)
  const length = found?.length ?? count
  // With a filter: the last listed event up to the moment.
  const current = found === null ? index : found.findLastIndex((at) => at <= index)
  useEffect(() => {
    if (current >= 0) list.current?.scrollTo(current)
  }, [current])
  if (length === 0) {
    return (
      <EmptyState
        icon="filter"
        title={words.nothingFits}
        actions={<Button onClick={onClear}>{words.clearFilter}</Button>}
      />
    )
  }
  const indexAt = (at: number) => found?.[at] ?? at
  return (
    <VirtualList
      ref={list}
      label={words.viewEvents}
      count={length}
      rowHeight={rowHeight}
      keyOf={(at) => record.rows[indexAt(at)]?.seq ?? at}
      renderRow={(at) => {
        const place = indexAt(at)
        const row = record.rows[place]
        if (row === undefined) return null
        return (
          <EventRow
            row={row}
            index={place}
            after={(record.times[place] ?? start) - start}
            isCurrent={place === index}
            onSeek={onSeek}
            onOpen={onOpen}
          />
        )
      }}
    />
  )
}

type EventRowProps = {
  row: JournalRow
  index: number
  after: number
  isCurrent: boolean
  onSeek(index: number): void
  onOpen(): void
}

const EventRow = memo(function EventRow({ row, index, after, isCurrent, onSeek, onOpen }: EventRowProps) {
  const locale = useLocale()
  const { language } = preferences.use()
  return (
    <button
      type="button"
      className="event-row"
      data-group={groupOf(row)}
      data-severity={severityOf(row) ?? undefined}
      aria-current={isCurrent ? 'true' : undefined}
      onClick={() => onSeek(index)}
      onDoubleClick={onOpen}
    >
      <span className="event-seq faint numbers">{row.seq.toLocaleString(locale)}</span>
      <span className="event-after faint numbers">{durationText(after)}</span>
      <span className="event-dot" />
      <code className="event-type">{row.type}</code>
      <span className="event-summary cut">{withVisibleControls(summaryOf(row, language))}</span>
    </button>
  )
})
