// A short word about a state. The colour repeats what the word says and is never the only sign.

import type { ReactNode } from 'react'
import './badge.css'

export type Tone = 'neutral' | 'good' | 'warn' | 'bad' | 'info' | 'accent'

export function Badge({
  tone = 'neutral',
  dot = false,
  children,
}: {
  tone?: Tone
  dot?: boolean | 'pulse'
  children: ReactNode
}) {
  return (
    <span className={`badge badge-${tone}`}>
      {dot === false ? null : <span className={dot === 'pulse' ? 'badge-dot badge-pulse' : 'badge-dot'} />}
      {children}
    </span>
  )
}
