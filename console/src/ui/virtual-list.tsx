// A list of any length that draws only the rows that are visible. Rows may have different heights; they are measured.

import { type ReactNode, type Ref, useImperativeHandle, useRef } from 'react'
import { useVirtualizer } from '@tanstack/react-virtual'
import './virtual-list.css'

/** Rows above and below the visible ones, so that fast scrolling shows no gaps. */
const overscan = 8

export type VirtualListHandle = {
  /** `end`: the end of the row becomes visible; the default is the whole row, if it fits. */
  scrollTo(index: number, align?: 'auto' | 'end'): void
}

type VirtualListProps = {
  count: number
  /** The usual height of a row in pixels. */
  rowHeight: number
  /** What stays the same while rows are added before it. */
  keyOf(index: number): string | number
  renderRow(index: number): ReactNode
  label: string
  /** Stays above the rows and moves sideways with them. Its height is in pixels. */
  header?: { height: number; content: ReactNode }
  /** Drawn over all rows. */
  overlay?: ReactNode
  /** Rows are at least this wide in pixels; the list then scrolls sideways too. */
  minWidth?: number
  ref?: Ref<VirtualListHandle>
}

export function VirtualList({
  count,
  rowHeight,
  keyOf,
  renderRow,
  label,
  header,
  overlay,
  minWidth = 0,
  ref,
}: VirtualListProps) {
  const scroller = useRef<HTMLDivElement>(null)
  const rows = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    getItemKey: keyOf,
    overscan,
    scrollMargin: header?.height ?? 0,
    scrollPaddingStart: header?.height ?? 0,
  })
  useImperativeHandle(ref, () => ({ scrollTo: (index, align = 'auto') => rows.scrollToIndex(index, { align }) }), [
    rows,
  ])
  return (
    <div ref={scroller} className="virtual-list" tabIndex={0} role="group" aria-label={label}>
      {header === undefined ? null : (
        <div className="virtual-list-header" style={{ minWidth, height: header.height }}>
          {header.content}
        </div>
      )}
      <div
        className="virtual-list-inside"
        role={count === 0 ? undefined : 'list'}
        style={{ height: rows.getTotalSize(), minWidth }}
      >
        {overlay}
        {rows.getVirtualItems().map(({ key, index, start }) => (
          <div
            key={key}
            ref={rows.measureElement}
            data-index={index}
            role="listitem"
            aria-setsize={count}
            aria-posinset={index + 1}
            className="virtual-list-row"
            style={{ transform: `translateY(${start - (header?.height ?? 0)}px)` }}
          >
            {renderRow(index)}
          </div>
        ))}
      </div>
    </div>
  )
}
