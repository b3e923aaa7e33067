// Tells screen readers what changed, politely. A text that streams would make them talk without end, so at most one
// sentence is told every few seconds, and only the newest counts.

import { createStore } from '../app/store.ts'

const sentence = createStore('')
const betweenMs = 3000
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
  sentence.set(waiting)
  waiting = null
  timer = setTimeout(tell, betweenMs)
}

export function Announcer() {
  return (
    <div className="visually-hidden" role="status" aria-live="polite">
      {sentence.use()}
    </div>
  )
}
