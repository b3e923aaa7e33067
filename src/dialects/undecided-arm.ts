// Hides the configuration behind an arm of a comparison until the vote (a blind test). The
// identifying fields are removed from the journal events before any dialect, timeline or
// trace folds them, so a new wire cannot forget to hide them. After the vote the same folds
// get the unchanged events.
//
// Times are not hidden, because the reader sees the pace of a live answer anyway.

import { diagnosticCodes } from '../journal/diagnostic-codes.ts'
import type { EventData, RunEvent } from '../journal/event.ts'
import type { JsonDelta } from '../journal/stored-events.ts'
import { type Dialect, silent } from './dialect.ts'

/** Replaces the names of the model and the engine. */
export const hiddenModel = 'hidden until the vote'

const settingsOfConfig = [
  'configName',
  'systemPrompt',
  'temperature',
  'maxTokens',
  'providerOptions',
  'providerTools',
  'fallbackModels',
  'tools',
  'blind',
] as const

/** Diagnostics that name an engine or a model. */
const identifyingCodes: ReadonlySet<string> = new Set([diagnosticCodes.engineFallback, diagnosticCodes.modelFallback])

/** The event without identifying fields; null if the whole event must be hidden. */
function withoutIdentity(event: RunEvent): RunEvent | null {
  switch (event.type) {
    case 'run.accepted': {
      const spec = { ...event.data.spec, model: hiddenModel, engine: hiddenModel }
      for (const name of settingsOfConfig) delete spec[name]
      const { echo: _echo, ...data } = event.data
      return { ...event, data: { ...data, spec } }
    }
    case 'tool.called': {
      const { source } = event.data
      return source?.startsWith('engine:') === true || source?.startsWith('provider:') === true
        ? { ...event, data: { ...event.data, source: hiddenModel } }
        : event
    }
    case 'engine.handle':
      return null
    case 'diagnostic':
      return identifyingCodes.has(event.data.code) ? null : event
    case 'step.started':
      return { ...event, data: { ...event.data, model: hiddenModel } }
    case 'step.done': {
      const { usage: _usage, costMicroUsd: _cost, durationMs: _duration, provider: _provider, ...data } = event.data
      return { ...event, data: data as EventData<'step.done'> }
    }
    case 'answer.discarded':
      return null
    // The size of the context window would identify the model.
    case 'context.cut':
    case 'context.summarised':
      return null
    // Only some models send reasoning, so its presence would identify the model.
    case 'reasoning.delta':
      return null
    default:
      return event
  }
}

/** The events that readers of the run may see at this time. */
export function visibleEvents(events: readonly RunEvent[], undecided: boolean): readonly RunEvent[] {
  return undecided ? events.map(withoutIdentity).filter((event) => event !== null) : events
}

const wrapped = new WeakMap<object, unknown>()

/** The same dialect, with the same addresses, without the fields that identify the arm. */
export function undecidedArm<State>(dialect: Dialect<State>): Dialect<State> {
  const known = wrapped.get(dialect) as Dialect<State> | undefined
  if (known !== undefined) return known
  const hiding: Dialect<State> = {
    ...dialect,
    // A different name, because readers of dialects with the same name share encoded bytes.
    name: `${dialect.name}.undecided`,
    step(state, event) {
      const shown = withoutIdentity(event)
      return shown === null ? silent(state) : dialect.step(state, shown)
    },
    encodeDelta: (state: State, delta: JsonDelta) => dialect.encodeDelta(state, delta),
  }
  wrapped.set(dialect, hiding)
  return hiding
}
