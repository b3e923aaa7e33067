// Which events of a run a person wants to see. A long run is searched in slices, a few milliseconds in each animation frame,
// and only its new events are searched when it grows.

import { useEffect, useState } from 'react'
import { type EventGroup, eventGroups, groupOf, severityOf } from './event-groups.ts'
import type { JournalRow } from './journal-row.ts'

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

function isFiltering({ groups, problems, text }: EventFilter): boolean {
  return groups.length > 0 || problems || text.trim() !== ''
}

type FoundRows = {
  /** The indices of the rows that fit; null if there is no filter. */
  found: readonly number[] | null
  /** False while rows are still being searched. */
  isDone: boolean
}

export function useFiltered(rows: readonly JournalRow[], count: number, filter: EventFilter): FoundRows {
  return useFoundRows(rows, count, isFiltering(filter) ? JSON.stringify(filter) : null, () => matcher(filter))
}

/** `key` names what is searched for; null for no filter. `open` makes the test that a row has to pass. */
export function useFoundRows(
  rows: readonly JournalRow[],
  count: number,
  key: string | null,
  open: () => (row: JournalRow) => boolean,
): FoundRows {
  const [search, setSearch] = useState<{ key: string; rows: unknown; found: number[]; looked: number } | null>(null)
  useEffect(() => {
    if (key === null) return
    const started = search?.key === key && search.rows === rows ? search : { key, rows, found: [], looked: 0 }
    if (started.looked >= count && started === search) return
    const fits = open()
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
  }, [key, rows, count, search])
  if (key === null) return { found: null, isDone: true }
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
