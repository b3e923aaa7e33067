// A row of views of which one is shown. Arrow keys move between them.

import { type KeyboardEvent, type ReactNode, useRef } from 'react'
import './view-tabs.css'

export type ViewTab<Name extends string> = { name: Name; label: ReactNode }

type ViewTabsProps<Name extends string> = {
  label: string
  tabs: readonly ViewTab<Name>[]
  current: Name
  onChoose(name: Name): void
  /** The id of the element that shows the view. */
  panel: string
}

export function ViewTabs<Name extends string>({ label, tabs, current, onChoose, panel }: ViewTabsProps<Name>) {
  const list = useRef<HTMLDivElement>(null)
  const move = (event: KeyboardEvent) => {
    const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0
    if (by === 0) return
    event.preventDefault()
    const at = tabs.findIndex(({ name }) => name === current)
    const next = (at + by + tabs.length) % tabs.length
    const chosen = tabs[next]
    if (chosen === undefined) return
    onChoose(chosen.name)
    list.current?.querySelectorAll<HTMLElement>('[role=tab]')[next]?.focus()
  }
  return (
    <div ref={list} className="view-tabs" role="tablist" aria-label={label} onKeyDown={move}>
      {tabs.map((tab) => (
        <button
          key={tab.name}
          type="button"
          role="tab"
          className="view-tab"
          aria-selected={tab.name === current}
          aria-controls={tab.name === current ? panel : undefined}
          tabIndex={tab.name === current ? 0 : -1}
          onClick={() => onChoose(tab.name)}
        >
          {tab.label}
        </button>
      ))}
    </div>
  )
}
