// Checks paired events (such as tool.called and tool.done) before they are written. By the
// pairing rules of invariants.json, each pair must be opened once, closed once, and closed
// before the run ends. A batch is checked as a whole before any of its events is folded into
// the run state, so PairCheck also tracks what the batch itself opened and closed.

import type { RunEvent } from './event.ts'
import invariants from './invariants.json' with { type: 'json' }
import type { RunState } from './run-state.ts'

type Pair = { readonly opens: string; readonly closes: string; readonly key: string }

const pairs: readonly Pair[] = invariants.pairing.flatMap((rule) =>
  'opens' in rule && rule.opens !== undefined ? [{ opens: rule.opens, closes: rule.closes, key: rule.key }] : [],
)

/** The status of a pair in the run state; undefined if it was never opened. */
function pairStatus(state: RunState, opens: string, key: string): 'open' | 'closed' | undefined {
  if (opens === 'tool.called') {
    const call = state.calls.get(key)
    return call === undefined ? undefined : call.done === undefined ? 'open' : 'closed'
  }
  const interaction = state.interactions.get(key)
  return interaction === undefined ? undefined : interaction.resolved === undefined ? 'open' : 'closed'
}

function* openKeys(state: RunState, opens: string): Generator<string> {
  if (opens === 'tool.called') {
    for (const call of state.calls.values()) if (call.done === undefined) yield call.callId
  } else {
    for (const one of state.interactions.values()) if (one.resolved === undefined) yield one.interactionId
  }
}

export class PairCheck {
  private readonly state: RunState
  /** Pairs that the batch changed: `opens key` → their status after it. */
  private changed: Map<string, 'open' | 'closed'> | undefined

  constructor(state: RunState) {
    this.state = state
  }

  /** The reason why `event` may not be written next, or null if it may. */
  refusal(event: Pick<RunEvent, 'type' | 'data'>): string | null {
    // Fast path: nearly all events are text deltas, which belong to no pair.
    if (event.type === 'text.delta') return null
    if (event.type === 'run.ended') return this.leftOpen()
    for (const { opens, closes, key } of pairs) {
      if (event.type !== opens && event.type !== closes) continue
      const id = String((event.data as Record<string, unknown>)[key])
      const name = `${opens} ${id}`
      this.changed ??= new Map()
      const now = this.changed.get(name) ?? pairStatus(this.state, opens, id)
      if (event.type === opens) {
        if (now !== undefined) return `${name} was written before`
        this.changed.set(name, 'open')
      } else {
        if (now !== 'open') return `${event.type} ${id} closes nothing that is open`
        this.changed.set(name, 'closed')
      }
    }
    return null
  }

  private leftOpen(): string | null {
    for (const { opens } of pairs) {
      for (const key of openKeys(this.state, opens)) {
        if (this.changed?.get(`${opens} ${key}`) !== 'closed')
          return `${opens} ${key} is still open, so the run cannot end`
      }
    }
    for (const [name, left] of this.changed ?? [])
      if (left === 'open') return `${name} is still open, so the run cannot end`
    return null
  }
}
