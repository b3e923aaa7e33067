// Checks the events of a whole run against the rules in invariants.json, and reports for
// each rule whether it is kept and which events break it. Pure functions. They check a
// journal as well as the messages that a wire sent; a wire adds checks of its own.
//
// While a run has not ended, an event that may still come does not count as missing.

import type { RunEvent } from './event.ts'
import { type Phase, phaseAfter, refusal } from './transitions.ts'

/** An event of the journal, or one that a wire sent. */
export type CheckedEvent = {
  readonly seq: number
  readonly type: string
  readonly data: Readonly<Record<string, unknown>>
}

type Violation = { readonly seq: number; readonly message: string }

export type RuleVerdict<On extends string = string> = {
  readonly id: string
  readonly kind: 'transition' | 'mapping' | 'pairing' | 'ordering'
  /** Which `seq` the violations refer to: the journal's, or that of the wire with this name. */
  readonly on: On
  readonly rule: string
  /** How often the rule applied in this run. */
  readonly seen: number
  readonly kept: boolean
  readonly broken: readonly Violation[]
}

type Pattern = { type: string; data?: Record<string, unknown> }
export type Rule = {
  id: string
  on: string
  text: string
  when?: Pattern
  next?: string[]
  previous?: string[]
  is?: Pattern
  opens?: string
  closes?: string
  key?: string
  check?: string
}
export type Findings = { seen: number; broken: Violation[] }
type Edge = { id: string; from: string; to: string; trigger: string }

/** The checks that a rule can name instead of a pattern. */
export type Checks = Readonly<Record<string, (list: readonly CheckedEvent[]) => Findings>>

/**
 * One verdict per edge of the state machine. A transition that is in no table belongs to no single rule, so every edge that
 * leaves the same state reports it.
 */
export function edgeVerdicts<On extends string>(
  kind: 'transition' | 'mapping',
  on: On,
  edges: readonly Edge[],
  changes: readonly CheckedEvent[],
): RuleVerdict<On>[] {
  const matches = (edge: Edge, { data }: CheckedEvent) =>
    edge.from === data.from && edge.to === data.to && edge.trigger === data.trigger
  const strays = changes.filter((change) => !edges.some((edge) => matches(edge, change)))
  return edges.map((edge) => {
    const broken = strays
      .filter(({ data }) => data.from === edge.from)
      .map(({ seq, data }) => ({
        seq,
        message: `There is no edge ${String(data.from)} -> ${String(data.to)} for ${String(data.trigger)}.`,
      }))
    const rule = `${edge.from} -> ${edge.to} for ${edge.trigger}`
    const seen = changes.filter((change) => matches(edge, change)).length
    return { id: edge.id, kind, on, rule, seen, kept: broken.length === 0, broken }
  })
}

/** `list` holds all events of the journal or wire that `rule.on` names. */
export function ruleVerdict<On extends string>(
  kind: 'pairing' | 'ordering',
  on: On,
  rule: Rule,
  list: readonly CheckedEvent[],
  { checks, ended }: { checks: Checks; ended: boolean },
): RuleVerdict<On> {
  const { seen, broken } = findingsOf(rule, list, checks, ended)
  return { id: rule.id, kind, on, rule: rule.text, seen, kept: broken.length === 0, broken }
}

function findingsOf(rule: Rule, list: readonly CheckedEvent[], checks: Checks, ended: boolean): Findings {
  if (rule.check !== undefined) {
    const check = Object.hasOwn(checks, rule.check) ? checks[rule.check] : undefined
    if (check === undefined) throw new Error(`invariants.json names a check that does not exist: ${rule.check}`)
    return check(list)
  }
  if (rule.opens !== undefined) return checkPairs(rule, list, ended)
  return checkNeighbours(rule, list, ended)
}

/** For each event that matches `when`, the next (or previous) event of the listed types must match `is`. */
function checkNeighbours(rule: Rule, list: readonly CheckedEvent[], ended: boolean): Findings {
  const findings: Findings = { seen: 0, broken: [] }
  const { when, is } = rule
  if (when === undefined || is === undefined) throw new Error(`invariants.json: ${rule.id} says nothing`)
  const types = rule.next ?? rule.previous ?? []
  const counts = ({ type }: CheckedEvent) => types.includes('*') || types.includes(type)
  const where = rule.next === undefined ? 'before' : 'after'
  const judge = (event: CheckedEvent, found: CheckedEvent | undefined) => {
    if (found !== undefined && fits(is, found)) return
    const instead = found === undefined ? 'nothing' : `${found.type} (${found.seq})`
    const message = `${is.type} should stand ${where} ${event.type}; there is ${instead}.`
    findings.broken.push({ seq: event.seq, message })
  }
  // One pass, because a run may have 100,000 events, and as many of them that match.
  let previous: CheckedEvent | undefined
  const waiting: CheckedEvent[] = []
  for (const event of list) {
    const isNeighbour = counts(event)
    if (isNeighbour) for (const earlier of waiting.splice(0)) judge(earlier, event)
    if (fits(when, event)) {
      findings.seen += 1
      if (rule.next === undefined) judge(event, previous)
      else waiting.push(event)
    }
    if (isNeighbour) previous = event
  }
  // Before the end of the run, the required event may still come.
  if (ended) for (const event of waiting) judge(event, undefined)
  return findings
}

/** Everything that is opened must be closed once, with the same key, before the run ends. */
function checkPairs(rule: Rule, list: readonly CheckedEvent[], ended: boolean): Findings {
  const findings: Findings = { seen: 0, broken: [] }
  const open = new Map<unknown, number>()
  for (const { seq, type, data } of list) {
    const key = data[rule.key ?? '']
    if (type === rule.opens) {
      findings.seen += 1
      if (open.has(key)) findings.broken.push({ seq, message: `${String(key)} is open already.` })
      open.set(key, seq)
    } else if (type === rule.closes && !open.delete(key)) {
      findings.broken.push({ seq, message: `${String(key)} is not open.` })
    }
  }
  if (ended) for (const [key, seq] of open) findings.broken.push({ seq, message: `${String(key)} was never closed.` })
  return findings
}

const seqWithoutHole: Checks[string] = (list) =>
  violations(
    list.length,
    list.filter(({ seq }, index) => seq !== (list[index - 1]?.seq ?? 0) + 1),
    ({ seq }) => `What stands before ${seq} is missing.`,
  )

/** Checks that fit any numbered list of events. */
export const commonChecks: Checks = { seq_without_hole: seqWithoutHole }

export const journalChecks: Checks = {
  ...commonChecks,
  accepted_first: (list) => {
    const first = list[0]
    const again = list.slice(1).filter(({ type }) => type === 'run.accepted')
    const late = first === undefined || first.type === 'run.accepted' ? [] : [first]
    return violations(
      list.length === 0 ? 0 : 1,
      [...late, ...again],
      ({ type }) => `${type} stands in the wrong place.`,
    )
  },
  nothing_after_end: (list) => {
    const end = list.findIndex(({ type }) => type === 'run.ended')
    return violations(end === -1 ? 0 : 1, end === -1 ? [] : list.slice(end + 1), () => 'The run had ended before.')
  },
  allowed_in_state: (list) => {
    const broken: Violation[] = []
    let phase: Phase = 'new'
    for (const event of list as unknown as readonly RunEvent[]) {
      const reason = refusal(phase, event)
      if (reason !== null) broken.push({ seq: event.seq, message: `${reason}.` })
      phase = phaseAfter(phase, event)
    }
    return { seen: list.length, broken }
  },
  attempts_grow: (list) => {
    const broken: Violation[] = []
    let taken = 0
    for (const event of list as unknown as readonly RunEvent[]) {
      if (event.type === 'run.state' && event.data.to === 'running') taken += 1
      const expected = Math.max(1, taken)
      if (event.attempt === expected) continue
      broken.push({ seq: event.seq, message: `This is attempt ${expected}, and the event says ${event.attempt}.` })
    }
    return { seen: taken, broken }
  },
}

export function violations(
  seen: number,
  list: readonly CheckedEvent[],
  say: (event: CheckedEvent) => string,
): Findings {
  return { seen, broken: list.map((event) => ({ seq: event.seq, message: say(event) })) }
}

function fits(pattern: Pattern, event: CheckedEvent): boolean {
  return pattern.type === event.type && (pattern.data === undefined || includes(event.data, pattern.data))
}

function includes(value: unknown, part: unknown): boolean {
  if (typeof part !== 'object' || part === null) return value === part
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(part).every(([key, inner]) => includes((value as Record<string, unknown>)[key], inner))
}
