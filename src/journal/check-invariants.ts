// A whole run against every rule of invariants.json: kept or broken, and where.
// Pure. Rules about edges and calls look at the journal; rules about what a client
// may rely on look at the envelopes of the wire fcmp, as they really went out.
//
// A run that goes on is judged by what has happened: what must still come is not
// missing before the run has ended.

import type { RunEvent, RunStatus } from './event.ts'
import invariants from './invariants.json' with { type: 'json' }
import { type Phase, phaseAfter, refusal } from './transitions.ts'

export type WireEvent = {
  readonly seq: number
  readonly type: string
  readonly data: Readonly<Record<string, unknown>>
}

export type Offence = { readonly seq: number; readonly message: string }

export type Verdict = {
  readonly id: string
  readonly kind: 'transition' | 'mapping' | 'pairing' | 'ordering'
  /** Whose `seq` an offence names. */
  readonly on: 'journal' | 'fcmp'
  readonly rule: string
  /** How often the run came to what the rule is about. */
  readonly seen: number
  readonly kept: boolean
  readonly broken: readonly Offence[]
}

type Pattern = { type: string; data?: Record<string, unknown> }
type Rule = {
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
type Findings = { seen: number; broken: Offence[] }
type Edge = { id: string; from: string; to: string; trigger: string }

const stateChanged = 'conversation.state.changed'

export function checkInvariants(events: readonly RunEvent[], wire: readonly WireEvent[]): Verdict[] {
  const ended = events.some(({ type }) => type === 'run.ended')
  const changes = events.filter(({ type }) => type === 'run.state')
  const told = wire.filter(({ type }) => type === stateChanged)
  return [
    ...edgeVerdicts('transition', 'journal', invariants.transitions, changes),
    ...edgeVerdicts('mapping', 'fcmp', invariants.mapping, told),
    ...(invariants.pairing as Rule[]).map((rule) => verdictOf('pairing', rule, events, wire, ended)),
    ...(invariants.ordering as Rule[]).map((rule) => verdictOf('ordering', rule, events, wire, ended)),
  ]
}

/**
 * Which edges the run took. An edge that is in no table belongs to no rule either, so it is told by the rules that leave the
 * same state: each of them might have been meant.
 */
function edgeVerdicts(
  kind: 'transition' | 'mapping',
  on: 'journal' | 'fcmp',
  edges: readonly Edge[],
  changes: readonly WireEvent[],
): Verdict[] {
  const matches = (edge: Edge, { data }: WireEvent) =>
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

function verdictOf(
  kind: 'pairing' | 'ordering',
  rule: Rule,
  events: readonly RunEvent[],
  wire: readonly WireEvent[],
  ended: boolean,
): Verdict {
  const on = rule.on === 'fcmp' ? 'fcmp' : 'journal'
  const list: readonly WireEvent[] = on === 'fcmp' ? wire : events
  const { seen, broken } = findingsOf(rule, list, ended)
  return { id: rule.id, kind, on, rule: rule.text, seen, kept: broken.length === 0, broken }
}

function findingsOf(rule: Rule, list: readonly WireEvent[], ended: boolean): Findings {
  if (rule.check !== undefined) {
    const check = Object.hasOwn(checks, rule.check) ? checks[rule.check] : undefined
    if (check === undefined) throw new Error(`invariants.json names a check that does not exist: ${rule.check}`)
    return check(list)
  }
  if (rule.opens !== undefined) return closings(rule, list, ended)
  return neighbours(rule, list, ended)
}

/** `when` needs that the next (or the previous) event of certain types `is` a certain one. */
function neighbours(rule: Rule, list: readonly WireEvent[], ended: boolean): Findings {
  const findings: Findings = { seen: 0, broken: [] }
  const { when, is } = rule
  if (when === undefined || is === undefined) throw new Error(`invariants.json: ${rule.id} says nothing`)
  const types = rule.next ?? rule.previous ?? []
  const counts = ({ type }: WireEvent) => types.includes('*') || types.includes(type)
  for (const [index, event] of list.entries()) {
    if (!fits(when, event)) continue
    findings.seen += 1
    const found = rule.next === undefined ? list.slice(0, index).findLast(counts) : list.slice(index + 1).find(counts)
    if (found !== undefined && fits(is, found)) continue
    // What must follow may still come.
    if (found === undefined && rule.next !== undefined && !ended) continue
    const where = rule.next === undefined ? 'before' : 'after'
    const instead = found === undefined ? 'nothing' : `${found.type} (${found.seq})`
    findings.broken.push({
      seq: event.seq,
      message: `${is.type} should stand ${where} ${event.type}; there is ${instead}.`,
    })
  }
  return findings
}

/** What is opened is closed once, under its key, and before the end. */
function closings(rule: Rule, list: readonly WireEvent[], ended: boolean): Findings {
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

const checks: Readonly<Record<string, (list: readonly WireEvent[]) => Findings>> = {
  one_terminal_state: (list) => {
    const terminal = list.filter(({ type, data }) => type === stateChanged && isTerminal(data.to))
    return offences(terminal.length, terminal.slice(1), () => 'The run had ended before.')
  },
  seq_without_hole: (list) =>
    offences(
      list.length,
      list.filter(({ seq }, index) => seq !== (list[index - 1]?.seq ?? 0) + 1),
      ({ seq }) => `What stands before ${seq} is missing.`,
    ),
  accepted_first: (list) => {
    const first = list[0]
    const again = list.slice(1).filter(({ type }) => type === 'run.accepted')
    const late = first === undefined || first.type === 'run.accepted' ? [] : [first]
    return offences(list.length === 0 ? 0 : 1, [...late, ...again], ({ type }) => `${type} stands in the wrong place.`)
  },
  nothing_after_end: (list) => {
    const end = list.findIndex(({ type }) => type === 'run.ended')
    return offences(end === -1 ? 0 : 1, end === -1 ? [] : list.slice(end + 1), () => 'The run had ended before.')
  },
  allowed_in_state: (list) => {
    const broken: Offence[] = []
    let phase: Phase = 'new'
    for (const event of list as unknown as readonly RunEvent[]) {
      const reason = refusal(phase, event)
      if (reason !== null) broken.push({ seq: event.seq, message: `${reason}.` })
      phase = phaseAfter(phase, event)
    }
    return { seen: list.length, broken }
  },
  attempts_grow: (list) => {
    const broken: Offence[] = []
    let taken = 0
    for (const event of list as unknown as readonly RunEvent[]) {
      if (event.type === 'run.state' && event.data.to === 'running') taken += 1
      const expected = Math.max(1, taken)
      if (event.attempt === expected) continue
      broken.push({ seq: event.seq, message: `This is attempt ${expected}, and the event says ${event.attempt}.` })
    }
    return { seen: taken, broken }
  },
  states_connect: (list) => {
    const changes = list.filter(({ type }) => type === stateChanged)
    return offences(
      changes.length,
      changes.filter(({ data }, index) => data.from !== (changes[index - 1]?.data.to ?? invariants.initial)),
      ({ data }) => `The run was not ${String(data.from)}.`,
    )
  },
}

function offences(seen: number, list: readonly WireEvent[], say: (event: WireEvent) => string): Findings {
  return { seen, broken: list.map((event) => ({ seq: event.seq, message: say(event) })) }
}

function isTerminal(status: unknown): boolean {
  return invariants.terminal.includes(status as RunStatus)
}

function fits(pattern: Pattern, event: WireEvent): boolean {
  return pattern.type === event.type && (pattern.data === undefined || includes(event.data, pattern.data))
}

function includes(value: unknown, part: unknown): boolean {
  if (typeof part !== 'object' || part === null) return value === part
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(part).every(([key, inner]) => includes((value as Record<string, unknown>)[key], inner))
}
