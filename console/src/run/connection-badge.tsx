// Whether what is shown is what the journal has: live, reconnecting, caught up.

import { useEffect } from 'react'
import { useWords } from '../i18n/words.ts'
import { announce } from '../ui/announcements.ts'
import { Badge, type Tone } from '../ui/badge.tsx'
import type { Connection } from './run-follower.ts'
import { runWords } from './words.ts'

const tones: Record<Connection, Tone> = {
  connecting: 'neutral',
  live: 'good',
  reconnecting: 'warn',
  cut: 'bad',
  'caught-up': 'info',
  ended: 'neutral',
  failed: 'bad',
}

export function ConnectionBadge({ connection, recovered }: { connection: Connection; recovered: number }) {
  const words = useWords(runWords)
  const texts: Record<Connection, string> = {
    connecting: words.connecting,
    live: words.live,
    reconnecting: words.reconnecting,
    cut: words.cut,
    'caught-up': words.caughtUp(recovered),
    ended: words.ended,
    failed: words.unreadable,
  }
  const text = texts[connection]
  useEffect(() => {
    if (connection === 'reconnecting' || connection === 'caught-up') announce(text)
  }, [connection, text])
  const isMoving = connection === 'live' || connection === 'reconnecting' || connection === 'connecting'
  return (
    <Badge tone={tones[connection]} dot={isMoving ? 'pulse' : true}>
      {text}
    </Badge>
  )
}
