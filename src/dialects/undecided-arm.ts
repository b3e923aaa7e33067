// What a run may show while it is an arm of a comparison that waits for its vote. The
// journal event loses what would tell which configuration answered, before any dialect,
// timeline or trace folds it; so a new wire cannot forget to hide it. After the vote
// the same folds get the events as they are.
//
// Times stay, since the pace of an answer can be seen while it is written.

import type { EventData, EventOf, RunEvent } from '../journal/event.ts'
import { type Dialect, silent } from './dialect.ts'

/** Stands where a model would be named. */
export const hiddenModel = 'hidden until the vote'

const settingsOfConfig = ['configName', 'systemPrompt', 'temperature', 'maxTokens', 'tools', 'blind'] as const

/** The event as a voter may see it; null if nothing of it may be seen. */
function withoutIdentity(event: RunEvent): RunEvent | null {
  switch (event.type) {
    case 'run.accepted': {
      const spec = { ...event.data.spec, model: hiddenModel }
      for (const name of settingsOfConfig) delete spec[name]
      return { ...event, data: { ...event.data, spec } }
    }
    case 'step.started':
      return { ...event, data: { ...event.data, model: hiddenModel } }
    case 'step.done': {
      const { usage: _usage, durationMs: _durationMs, ...data } = event.data
      return { ...event, data: data as EventData<'step.done'> }
    }
    // Only some models think aloud.
    case 'reasoning.delta':
      return null
    default:
      return event
  }
}

/** The events of a run as its readers may see them now. */
export function visibleEvents(events: readonly RunEvent[], undecided: boolean): readonly RunEvent[] {
  return undecided ? events.map(withoutIdentity).filter((event) => event !== null) : events
}

const wrapped = new WeakMap<object, unknown>()

/** The same wire with the same addresses, without what identifies the arm. */
export function undecidedArm<State>(dialect: Dialect<State>): Dialect<State> {
  const known = wrapped.get(dialect) as Dialect<State> | undefined
  if (known !== undefined) return known
  const hiding: Dialect<State> = {
    ...dialect,
    // Readers of one name share their bytes.
    name: `${dialect.name}.undecided`,
    step(state, event) {
      const shown = withoutIdentity(event)
      return shown === null ? silent(state) : dialect.step(state, shown)
    },
    encodeDelta: (state: State, event: EventOf<'text.delta'>) => dialect.encodeDelta(state, event),
  }
  wrapped.set(dialect, hiding)
  return hiding
}
