// Tells screen readers what changed. A text that streams would make them talk without end, so at most one sentence is
// told every few seconds, and only the newest counts.

import { createStore } from '../app/store.ts'

/** The newest sentence. The number grows with each, because a reader is told the same sentence twice if it happens twice. */
export const announcement = createStore({ number: 0, text: '' })

export const betweenMs = 3000
let waiting: string | null = null
let timer: ReturnType<typeof setTimeout> | undefined

export function announce(text: string): void {
  waiting = text
  if (timer === undefined) tell()
}

function tell(): void {
  if (waiting === null) {
    timer = undefined
    return
  }
  const text = waiting
  waiting = null
  announcement.set(({ number }) => ({ number: number + 1, text }))
  timer = setTimeout(tell, betweenMs)
}
