// The dates of a contact in the next 30 days: events, and the birthday of the profile.

import type { ContactEventRow, ContactRow } from '../stores/contact-store.ts'
import { dateOf, dayOf, dayOfDate } from './utc-days.ts'

export type UpcomingDate = {
  kind: 'event' | 'birthday'
  /** The id of the event; null for a birthday. */
  eventId: string | null
  /** The title of the event; empty for a birthday. */
  title: string
  /** `YYYY-MM-DD`, in UTC. */
  date: string
  /** 0: today. */
  daysUntil: number
  /** How old the contact becomes; null if the year of birth is unknown, and for events. */
  age: number | null
}

type DatedRecords = {
  contact: Pick<ContactRow, 'profile'>
  events: readonly Pick<ContactEventRow, 'id' | 'title' | 'eventDate'>[]
}

const daysAhead = 30
const datesMax = 20
const dayMs = 86_400_000

/** The nearest first; at most `datesMax`. An event that is over today is not upcoming, one later today is. */
export function upcomingDates({ contact, events }: DatedRecords, now: number): UpcomingDate[] {
  const today = dayOf(now)
  const dates: UpcomingDate[] = []
  for (const { id, title, eventDate } of events) {
    if (eventDate === null || eventDate <= now || dayOf(eventDate) - today > daysAhead) continue
    const daysUntil = dayOf(eventDate) - today
    dates.push({ kind: 'event', eventId: id, title, date: dateOf(eventDate), daysUntil, age: null })
  }
  const birthday = nextBirthday(contact.profile['birthday'], now)
  if (birthday !== null && birthday.daysUntil <= daysAhead) dates.push(birthday)
  return dates
    .sort((left, right) => left.daysUntil - right.daysUntil || compareText(left.eventId ?? '', right.eventId ?? ''))
    .slice(0, datesMax)
}

/** In a year without 29 February, that birthday is on the 28th. Null if the value is not a birthday. */
function nextBirthday(value: unknown, now: number): UpcomingDate | null {
  const parts = typeof value === 'string' ? /^(\d{4}|-)-(\d{2})-(\d{2})$/.exec(value) : null
  if (parts === null) return null
  const [born, month, day] = [Number(parts[1]), Number(parts[2]), Number(parts[3])]
  if (month < 1 || month > 12 || day < 1 || day > 31) return null
  const today = dayOf(now)
  const thisYear = new Date(now).getUTCFullYear()
  const year = dayOfDate(thisYear, month, day) >= today ? thisYear : thisYear + 1
  const at = dayOfDate(year, month, day)
  const age = Number.isNaN(born) || year <= born ? null : year - born
  return { kind: 'birthday', eventId: null, title: '', date: dateOf(at * dayMs), daysUntil: at - today, age }
}

function compareText(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0
}
