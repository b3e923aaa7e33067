// The events with which a run goes on that is claimed in the transaction of its acceptance: it is
// running at once, and often its first step has begun. So a run that starts at once needs one
// commit before its model is asked.

import type { NewEvent, RunEvent, RunSpec } from '../journal/event.ts'
import type { AcceptInput } from '../stores/run-store.ts'
import { hasBudgets } from './budgets.ts'
import type { RunDependencies } from './run-dependencies.ts'

/** `isFirstTurn`: there are no earlier messages, so nothing can come between the start of the run and its first step. */
export function immediateStart(
  accepted: readonly RunEvent[],
  spec: RunSpec,
  isFirstTurn: boolean,
  { engines, ids, limits }: Pick<RunDependencies, 'engines' | 'ids' | 'limits'>,
): NonNullable<AcceptInput['start']> {
  const last = accepted.at(-1)
  const at = last?.at ?? 0
  const first: NewEvent[] = [{ type: 'run.state', data: { from: 'queued', to: 'running', trigger: 'turn.started' } }]
  // A budget is checked, and may end the run or warn, before the step begins.
  if (isFirstTurn && !hasBudgets(limits) && engines.get(spec.engine).kind === 'step')
    first.push({ type: 'step.started', data: { step: 1, messageId: ids(), model: spec.model } })
  const events = first.map((event, index): RunEvent => ({
    seq: (last?.seq ?? 0) + 1 + index,
    at,
    attempt: 1,
    ...event,
  }))
  return { events, at, engine: spec.engine }
}
