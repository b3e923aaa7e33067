// Checks a whole run against every rule of invariants.json. Rules about state transitions
// and calls read the journal; rules about promises to clients read the envelopes as they
// were sent.

import {
  type Checks,
  commonChecks,
  edgeVerdicts,
  type CheckedEvent,
  journalChecks,
  violations,
  type Rule,
  ruleVerdict,
  type RuleVerdict,
} from '../../journal/check-rules.ts'
import type { RunEvent, RunStatus } from '../../journal/event.ts'
import invariants from '../../journal/invariants.json' with { type: 'json' }
import type { FcmpType } from './envelope.ts'

const stateChanged: FcmpType = 'conversation.state.changed'

/** The result of checking one rule on a run. */
export type RunVerdict = RuleVerdict<'journal' | 'fcmp'>

export function checkInvariants(events: readonly RunEvent[], envelopes: readonly CheckedEvent[]): RunVerdict[] {
  return [...invariantVerdicts(events, envelopes)]
}

/** As `checkInvariants`, one verdict after the other: each takes a pass over the events. */
export function* invariantVerdicts(
  events: readonly RunEvent[],
  envelopes: readonly CheckedEvent[],
): Generator<RunVerdict, undefined> {
  const ended = events.some(({ type }) => type === 'run.ended')
  const judge = (kind: 'pairing' | 'ordering', rule: Rule) =>
    rule.on === 'fcmp'
      ? ruleVerdict(kind, 'fcmp', rule, envelopes, { checks: fcmpChecks, ended })
      : ruleVerdict(kind, 'journal', rule, events, { checks: journalChecks, ended })
  yield* edgeVerdicts(
    'transition',
    'journal',
    invariants.transitions,
    events.filter(({ type }) => type === 'run.state'),
  )
  yield* edgeVerdicts(
    'mapping',
    'fcmp',
    invariants.mapping,
    envelopes.filter(({ type }) => type === stateChanged),
  )
  for (const rule of invariants.pairing as Rule[]) yield judge('pairing', rule)
  for (const rule of invariants.ordering as Rule[]) yield judge('ordering', rule)
}

const fcmpChecks: Checks = {
  ...commonChecks,
  one_terminal_state: (list) => {
    const terminal = list.filter(({ type, data }) => type === stateChanged && isTerminal(data.to))
    return violations(terminal.length, terminal.slice(1), () => 'The run had ended before.')
  },
  states_connect: (list) => {
    const changes = list.filter(({ type }) => type === stateChanged)
    return violations(
      changes.length,
      changes.filter(({ data }, index) => data.from !== (changes[index - 1]?.data.to ?? invariants.initial)),
      ({ data }) => `The run was not ${String(data.from)}.`,
    )
  },
}

function isTerminal(status: unknown): boolean {
  return invariants.terminal.includes(status as RunStatus)
}
