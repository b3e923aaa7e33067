// An event of the journal as its owner may read it. Left out is what belongs to the operator or to another server, and not to
// the user: the system prompt of a configuration, the handle of a remote agent, the state of a provider.

import type { RunEvent } from '../../journal/event.ts'
import { isoTime } from '../../kit/clock.ts'

export type ShownEvent = { seq: number; at: string; atMs: number; attempt: number; type: string; data: unknown }

export function shownEvent(event: RunEvent): ShownEvent {
  const { seq, at, attempt, type } = event
  return { seq, at: isoTime(at), atMs: at, attempt, type, data: withoutInternals(event) }
}

function withoutInternals(event: RunEvent): unknown {
  switch (event.type) {
    case 'run.accepted': {
      const { systemPrompt: _prompt, ...spec } = event.data.spec
      return { ...event.data, spec }
    }
    case 'engine.handle':
      return { engine: event.data.engine }
    case 'step.done': {
      const { provider: _state, ...data } = event.data
      return data
    }
    default:
      return event.data
  }
}
