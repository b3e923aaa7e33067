// A list of any length that draws only the rows that are visible. Rows may have different heights; they are measured.

import { type ReactNode, type Ref, useImperativeHandle, useRef } from 'react'
import { useVirtualizer } from '@tanstack/react-virtual'
import './virtual-list.css'

/** Rows above and below the visible ones, so that fast scrolling shows no gaps. */
const overscan = 8

export type VirtualListHandle = { scrollTo(index: number): void }

type VirtualListProps = {
  count: number
  /** The usual height of a row in pixels. */
  rowHeight: number
  /** What stays the same while rows are added before it. */
  keyOf(index: number): string | number
  row(index: number): ReactNode
  label: string
  ref?: Ref<VirtualListHandle>
}

export function VirtualList({ count, rowHeight, keyOf, row, label, ref }: VirtualListProps) {
  const scroller = useRef<HTMLDivElement>(null)
  const rows = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    getItemKey: keyOf,
    overscan,
  })
  useImperativeHandle(ref, () => ({ scrollTo: (index) => rows.scrollToIndex(index, { align: 'auto' }) }), [rows])
  return (
    <div ref={scroller} className="virtual-list" role="list" aria-label={label} tabIndex={0}>
      <div className="virtual-list-inside" style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map(({ key, index, start }) => (
          <div
            key={key}
            ref={rows.measureElement}
            data-index={index}
            role="listitem"
            aria-setsize={count}
            aria-posinset={index + 1}
            className="virtual-list-row"
            style={{ transform: `translateY(${start}px)` }}
          >
            {row(index)}
          </div>
        ))}
      </div>
    </div>
  )
}
