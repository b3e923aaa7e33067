// The state of a run or of a tool call, as a badge.

import type { RunInfo } from '@polylog/client'
import { useWords } from '../i18n/words.ts'
import { Badge, type Tone } from '../ui/badge.tsx'
import { runWords } from './words.ts'

const tones: Record<RunInfo['status'], Tone> = {
  queued: 'neutral',
  running: 'accent',
  awaiting_input: 'warn',
  succeeded: 'good',
  failed: 'bad',
  cancelled: 'neutral',
}

export function StatusBadge({ status }: { status: RunInfo['status'] }) {
  const words = useWords(runWords)
  return (
    <Badge tone={tones[status]} dot={status === 'running' ? 'pulse' : true}>
      {words[status]}
    </Badge>
  )
}
