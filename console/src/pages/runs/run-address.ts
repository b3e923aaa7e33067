// What the address of a run holds: the moment, the views and the filter. It is read once; later it follows what the person
// does, without an entry in the history for every step.

import { useEffect } from 'react'
import { type EventFilter, groupsFrom } from '../../run/event-filter.ts'

export type MainView = 'waterfall' | 'events'
export type SideView = 'conversation' | 'event' | 'rules'

export type RunAddress = {
  /** The number of the event in the journal; null at the end, live. */
  seq: number | null
  view: MainView
  side: SideView
  filter: EventFilter
}

/** Browsers refuse addresses that change too often. */
const restMs = 250

export function readAddress(search: string): RunAddress {
  const query = new URLSearchParams(search)
  const seq = Number.parseInt(query.get('seq') ?? '', 10)
  const side = query.get('side')
  return {
    seq: Number.isSafeInteger(seq) && seq > 0 ? seq : null,
    view: query.get('view') === 'events' ? 'events' : 'waterfall',
    side: side === 'event' || side === 'rules' ? side : 'conversation',
    filter: {
      text: (query.get('q') ?? '').slice(0, 200),
      groups: groupsFrom(query.get('groups') ?? ''),
      problems: query.get('problems') === '1',
    },
  }
}

function addressText({ seq, view, side, filter }: RunAddress): string {
  const query = new URLSearchParams({
    ...(seq === null ? {} : { seq: String(seq) }),
    ...(view === 'waterfall' ? {} : { view }),
    ...(side === 'conversation' ? {} : { side }),
    ...(filter.text === '' ? {} : { q: filter.text }),
    ...(filter.groups.length === 0 ? {} : { groups: filter.groups.join(',') }),
    ...(filter.problems ? { problems: '1' } : {}),
  })
  const text = String(query)
  return text === '' ? '' : `?${text}`
}

export function useAddress(address: RunAddress): void {
  const text = addressText(address)
  useEffect(() => {
    if (text === location.search) return
    const timer = setTimeout(() => history.replaceState(history.state, '', `${location.pathname}${text}`), restMs)
    return () => clearTimeout(timer)
  }, [text])
}
