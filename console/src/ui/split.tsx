// A list at the left and what was chosen from it beside it. A phone shows one of the two: the list until something is
// chosen.

import type { ReactNode } from 'react'
import './split.css'

type SplitProps = {
  /** Above the list, and always visible. */
  head: ReactNode
  list: ReactNode
  detail: ReactNode
  /** True: a phone shows the detail. */
  isChosen: boolean
  /** There is nothing to choose from: the list has the whole width. */
  isEmpty?: boolean
  /** The list has short rows, and the detail needs the room. */
  narrow?: boolean
  label: string
}

export function Split({ head, list, detail, isChosen, isEmpty = false, narrow = false, label }: SplitProps) {
  return (
    <div className="split" data-chosen={isChosen} data-empty={isEmpty} data-narrow={narrow}>
      <section className="split-side" aria-label={label}>
        <header className="split-head">{head}</header>
        <div className="split-list">{list}</div>
      </section>
      {isEmpty ? null : <div className="split-detail">{detail}</div>}
    </div>
  )
}
