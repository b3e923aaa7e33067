// The sentence for screen readers. They speak when something is added here, politely: after what they are saying.

import { announcement } from './announcements.ts'

export function Announcer() {
  const { number, text } = announcement.use()
  return (
    <div className="visually-hidden" role="status" aria-live="polite">
      {text === '' ? null : <p key={number}>{text}</p>}
    </div>
  )
}
