// The time until something expires. It ticks once a second and tells screen readers only that it has expired.

import { useEffect, useState } from 'react'
import { useWords } from '../i18n/words.ts'
import { uiWords } from './words.ts'

const second = 1000

/** `at` is in epoch milliseconds. */
export function Countdown({ at }: { at: number }) {
  const words = useWords(uiWords)
  const now = useNow(at > Date.now())
  if (now >= at) return <span>{words.expired}</span>
  return (
    <time className="numbers" aria-hidden="true">
      {durationText(Math.ceil((at - now) / second) * second)}
    </time>
  )
}

/** The time of day, every second while `isRunning`. */
export function useNow(isRunning: boolean): number {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    if (!isRunning) return
    const timer = setInterval(() => setNow(Date.now()), second)
    return () => clearInterval(timer)
  }, [isRunning])
  return now
}

/** 340 ms, 2.4 s, 1:05, 2:03:00, 3 d 4 h. */
export function durationText(ms: number): string {
  if (ms < second) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 60 * second) return ms % second === 0 ? `${ms / second} s` : `${(ms / second).toFixed(1)} s`
  const total = Math.floor(ms / second)
  const [days, hours, minutes, seconds] = [
    Math.floor(total / 86_400),
    Math.floor(total / 3600) % 24,
    Math.floor(total / 60) % 60,
    total % 60,
  ]
  const two = (part: number) => String(part).padStart(2, '0')
  if (days > 0) return `${days} d ${hours} h`
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds)}` : `${minutes}:${two(seconds)}`
}
