// How long ago something happened, in the language of the person; the exact time is in the tooltip.

import { useEffect, useState } from 'react'
import { useLocale } from '../i18n/words.ts'

const units: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
]
/** The smallest unit that is shown is a minute. */
const everyMs = 20_000

/** `at` is in epoch milliseconds; it may be in the future. */
export function TimeAgo({ at }: { at: number }) {
  const locale = useLocale()
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs)
    return () => clearInterval(timer)
  }, [])
  return (
    <time className="numbers" dateTime={new Date(at).toISOString()} title={new Date(at).toLocaleString(locale)}>
      {agoText(at - now, locale)}
    </time>
  )
}

function agoText(ms: number, locale: string): string {
  const format = new Intl.RelativeTimeFormat(locale, { numeric: 'auto', style: 'short' })
  const [unit, size] = units.find(([, length]) => Math.abs(ms) >= length) ?? ['second', Infinity]
  return format.format(Math.trunc(ms / size) || 0, unit)
}
