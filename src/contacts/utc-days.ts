// Calendar days in UTC, as whole numbers that can be subtracted.

const dayMs = 86_400_000

/** The number of the UTC day that a time is in; 1 January 1970 is day 0. */
export function dayOf(at: number): number {
  return Math.floor(at / dayMs)
}

/** The number of a day of the calendar. A day that the month does not have gives the last day of the month. */
export function dayOfDate(year: number, month: number, day: number): number {
  const lastOfMonth = new Date(Date.UTC(year, month, 0)).getUTCDate()
  return dayOf(Date.UTC(year, month - 1, Math.min(day, lastOfMonth)))
}

/** The date of a time in UTC, as `YYYY-MM-DD`. */
export function dateOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10)
}
