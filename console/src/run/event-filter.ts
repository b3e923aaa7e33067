// Which events of a run a person wants to see. A long run is searched in slices, a few milliseconds in each animation frame,
// and only its new events are searched when it grows.

import { useEffect, useState } from 'react'
import { type EventGroup, eventGroups, groupOf } from './event-groups.ts'
import { type JournalRow, severityOf } from './journal-row.ts'

export type EventFilter = {
  /** Groups that are shown; all of them if it is empty. */
  groups: readonly EventGroup[]
  /** Only events in which something went wrong. */
  problems: boolean
  /** A text that the event contains. */
  text: string
}

export const noFilter: EventFilter = { groups: [], problems: false, text: '' }

const sliceMs = 6
/** Events that are looked at before the clock is. */
const sliceRows = 16

export function isFiltering({ groups, problems, text }: EventFilter): boolean {
  return groups.length > 0 || problems || text.trim() !== ''
}

/** The indices of the rows that fit; null if there is no filter. `isDone` is false while rows are still being searched. */
export function useFiltered(
  rows: readonly JournalRow[],
  count: number,
  filter: EventFilter,
): { found: readonly number[] | null; isDone: boolean } {
  const key = JSON.stringify(filter)
  const [search, setSearch] = useState<{ key: string; rows: unknown; found: number[]; looked: number } | null>(null)
  const isActive = isFiltering(filter)
  useEffect(() => {
    if (!isActive) return
    const started = search?.key === key && search.rows === rows ? search : { key, rows, found: [], looked: 0 }
    if (started.looked >= count && started === search) return
    const fits = matcher(filter)
    const frame = requestAnimationFrame(() => {
      const until = performance.now() + sliceMs
      const found = [...started.found]
      let { looked } = started
      while (looked < count && performance.now() < until) {
        for (const end = Math.min(count, looked + sliceRows); looked < end; looked++) {
          if (fits(rows[looked] as JournalRow)) found.push(looked)
        }
      }
      setSearch({ key, rows, found, looked })
    })
    return () => cancelAnimationFrame(frame)
  }, [isActive, key, rows, count, search])
  if (!isActive) return { found: null, isDone: true }
  const isCurrent = search?.key === key && search.rows === rows
  return { found: isCurrent ? search.found : [], isDone: isCurrent && search.looked >= count }
}

function matcher({ groups, problems, text }: EventFilter): (row: JournalRow) => boolean {
  const wanted = text.trim().toLowerCase()
  return (row) => {
    if (groups.length > 0 && !groups.includes(groupOf(row))) return false
    if (problems && severityOf(row) === null) return false
    return (
      wanted === '' ||
      row.type.includes(wanted) ||
      String(row.seq) === wanted ||
      JSON.stringify(row.data).toLowerCase().includes(wanted)
    )
  }
}

export function groupsFrom(text: string): EventGroup[] {
  return eventGroups.filter((group) => text.split(',').includes(group))
}
