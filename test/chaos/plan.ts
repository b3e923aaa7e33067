// What goes wrong, and when, as a seed decides it: the same seed gives the same plan.

import type { Random } from '../support/random.ts'
import type { StopMode } from '../support/postgres-server.ts'

export const faultKinds = ['kill', 'freeze', 'drain', 'database-fast', 'database-immediate'] as const
export type FaultKind = (typeof faultKinds)[number]

export type Fault =
  /** SIGKILL, and a new process after `downMs`. */
  | { kind: 'kill'; node: number; downMs: number }
  /** SIGSTOP for this many leases, then SIGCONT. `noticed`: the proxy cuts its connections and sends no new ones. */
  | { kind: 'freeze'; node: number; leases: number; noticed: boolean }
  /** SIGTERM, and a new process after `downMs`. */
  | { kind: 'drain'; node: number; downMs: number }
  | { kind: 'database'; mode: StopMode; downMs: number }

/** Faults that come together, after the clients got this many frames. */
export type Trouble = { afterFrames: number; faults: readonly Fault[] }

export function* chaosPlan(random: Random, nodes: number, framesMax: number): Generator<Trouble, never> {
  for (;;) {
    // Every kind comes once before any comes again.
    for (const kind of shuffled(random, faultKinds)) {
      const node = random.between(0, nodes - 1)
      const faults = [faultOf(random, kind, node)]
      // A second one at the same time, at another node: one node at least stays. A crash of the database comes alone, because
      // deltas are lost if the database and the node of their run die together.
      if (kind !== 'database-immediate' && random.chance(0.25)) {
        const other = (node + random.between(1, nodes - 1)) % nodes
        const kinds = faultKinds.filter((each) =>
          kind === 'database-fast' ? !each.startsWith('database') : each !== 'database-immediate',
        )
        faults.push(faultOf(random, random.pick(kinds), other))
      }
      yield { afterFrames: random.between(1, framesMax), faults }
    }
  }
}

function faultOf(random: Random, kind: FaultKind, node: number): Fault {
  switch (kind) {
    case 'kill':
    case 'drain':
      return { kind, node, downMs: random.between(0, 1500) }
    case 'freeze':
      return { kind, node, leases: random.between(11, 20) / 10, noticed: random.chance(0.5) }
    case 'database-fast':
      return { kind: 'database', mode: 'fast', downMs: random.between(0, 1500) }
    case 'database-immediate':
      return { kind: 'database', mode: 'immediate', downMs: random.between(0, 1500) }
  }
}

function shuffled<T>(random: Random, values: readonly T[]): T[] {
  const rest = [...values]
  const taken: T[] = []
  while (rest.length > 0) taken.push(...rest.splice(random.between(0, rest.length - 1), 1))
  return taken
}

export function describeFault(fault: Fault): string {
  switch (fault.kind) {
    case 'kill':
    case 'drain':
      return `${fault.kind} node ${fault.node + 1}, down for ${fault.downMs} ms`
    case 'freeze':
      return `freeze node ${fault.node + 1} for ${fault.leases} leases${fault.noticed ? ', noticed' : ''}`
    case 'database':
      return `restart the database (${fault.mode}), down for ${fault.downMs} ms`
  }
}
