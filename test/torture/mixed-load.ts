// Clients of every wire that start runs with tools, questions and cancels, people who decide, and the
// checks of every run when all is over. What happens to the servers meanwhile is the business of the
// test. Everything random comes from one seed.

import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import type { Random } from '../support/random.ts'
import { checkDecisions, checkRun, type SentDecision } from './checks.ts'
import type { OutsideWorld } from './outside-world.ts'
import { type Finished, type Plan, retried, TortureClient, type TorturedServer } from './torture-client.ts'
import { type Wire, wires } from './wires.ts'

export type LoadOptions = {
  /** Clients at a time. */
  clients: number
  /** Which wires take part; all unless said otherwise. */
  wires?: readonly Wire[]
}

export type LoadResult = {
  runs: number
  connections: number
  cancels: number
  decisions: number
  /** Unsafe calls that were interrupted, so that a person was asked. */
  unknownOutcomes: number
  payments: number
  byWire: Record<string, number>
}

/** Several clients act as one user, so that runs of one conversation queue behind each other. */
const users = 4

const checksAtOnce = 6

export class MixedLoad {
  readonly finished: Finished[] = []
  private readonly server: TorturedServer
  private readonly world: OutsideWorld
  private readonly random: Random
  private readonly options: LoadOptions
  private readonly decisions: SentDecision[] = []
  private starting = true
  private running = true
  private started = 0

  constructor(server: TorturedServer, world: OutsideWorld, random: Random, options: LoadOptions) {
    this.server = server
    this.world = world
    this.random = random
    this.options = options
  }

  /** Starts runs until `trouble` is over, and resolves when the last of them has ended. */
  async during(trouble: (random: Random) => Promise<void>): Promise<void> {
    const clients = Array.from({ length: this.options.clients }, (_, index) => this.client(index, this.random.fork()))
    const people = Array.from({ length: users }, (_, index) => this.person(`user${index}`, this.random.fork()))
    try {
      // A client that fails ends the test at once.
      await Promise.race([trouble(this.random.fork()), Promise.all(clients).then(() => new Promise<void>(() => {}))])
      this.starting = false
      await Promise.all(clients)
    } finally {
      this.starting = false
      this.running = false
      await Promise.all(people)
    }
  }

  /** Throws if a promise was broken. */
  async check(): Promise<LoadResult> {
    const ledger = await this.world.ledger()
    const twice = Object.entries(ledger.paid).filter(([, count]) => count > 1)
    assert.deepEqual(twice, [], 'every payment was made at most once')
    checkDecisions(this.decisions, ledger)
    for (let first = 0; first < this.finished.length; first += checksAtOnce) {
      const some = this.finished.slice(first, first + checksAtOnce)
      await Promise.all(some.map((finished) => checkRun(this.server.baseUrl, finished, ledger, this.random)))
    }
    const byWire: Record<string, number> = {}
    for (const { wire } of this.finished) byWire[wire.name] = (byWire[wire.name] ?? 0) + 1
    return {
      runs: this.finished.length,
      connections: this.finished.reduce((sum, { connections }) => sum + connections, 0),
      cancels: this.finished.filter(({ cancelAnswer }) => cancelAnswer !== undefined).length,
      decisions: this.decisions.length,
      unknownOutcomes: new Set(this.decisions.filter(({ outcome }) => outcome === 'unknown').map(({ id }) => id)).size,
      payments: Object.keys(ledger.paid).length,
      byWire,
    }
  }

  private async client(index: number, random: Random): Promise<void> {
    const taking = this.options.wires ?? wires
    for (let round = index; this.starting; round += 1) {
      // Every wire gets its turn, whatever the seed says.
      const wire = taking[round % taking.length] as Wire
      this.started += 1
      const plan = planOf(random, wire, `t${this.started}`, `user${index % users}`)
      this.finished.push(await new TortureClient(this.server, wire, plan, random).run())
    }
  }

  /** Decides on everything that waits for this user. What a crash left unknown is never run again. */
  private async person(user: string, random: Random): Promise<void> {
    while (this.running) {
      const { status, text } = await retried(this.server, `/v1/tool-confirmations?status=pending&userId=${user}`)
      assert.equal(status, 200, text)
      for (const { id, outcome, payload } of JSON.parse(text) as Pending[]) {
        const isUnknown = outcome === 'unknown'
        const decisions = [isUnknown || random.chance(0.2) ? 'reject' : 'confirm'] as SentDecision['decision'][]
        // A second person clicks at the same moment.
        if (!isUnknown && random.chance(0.2)) decisions.push(random.pick(['confirm', 'reject'] as const))
        await Promise.all(
          decisions.map(async (decision) => {
            const answer = await retried(this.server, `/v1/tool-confirmations/${id}/${decision}?userId=${user}`, {})
            this.decisions.push({ id, decision, outcome, payment: payload?.payment, answer })
          }),
        )
      }
      await this.answerQuestions(user)
      await wait(80)
    }
  }

  private async answerQuestions(user: string): Promise<void> {
    const { text } = await retried(this.server, `/v1/agent/runs?status=awaiting_input&userId=${user}&limit=100`)
    const found = JSON.parse(text) as { runs?: { runId: string; family?: string }[] } | { runId: string }[]
    for (const { runId } of Array.isArray(found) ? found : (found.runs ?? [])) {
      const pending = await retried(this.server, `/v1/jobs/${runId}/interaction/pending?userId=${user}`)
      if (pending.status !== 200) continue
      const question = (JSON.parse(pending.text) as { pending?: { interaction_id: number; kind: string } | null })
        .pending
      if (question == null) continue
      await retried(this.server, `/v1/jobs/${runId}/interaction/reply?userId=${user}`, {
        interaction_id: question.interaction_id,
        response: 'as you like',
        idempotency_key: `${runId}:${question.interaction_id}`,
      })
    }
  }
}

type Pending = { id: string; outcome: string | null; payload: { payment?: string } | null }

function planOf(random: Random, wire: Wire, mark: string, user: string): Plan {
  const tools = Array.from({ length: random.between(0, 2) }, () => random.pick(wire.tools))
  const words = random.chance(0.1) ? 200 : random.between(1, 30)
  const prompt = [
    `mark=${mark}`,
    `words=${words}`,
    `pause=${random.between(0, 4)}`,
    ...(tools.length === 0 ? [] : [`tools=${tools.join(',')}`]),
    // A call that takes long is still at work when something happens to its server.
    ...(random.chance(0.4) ? [`toolms=${random.between(50, 2500)}`] : []),
    ...(random.chance(0.1) ? ['vary'] : []),
  ].join(' ')
  return {
    mark,
    user,
    // The same few names for all users: names that clients choose are each user's own.
    conversation: `chat-${random.between(1, 3)}`,
    prompt,
    tools,
    cancelAfter: random.chance(0.15) ? random.between(1, 40) : undefined,
    leaveAfter: random.chance(0.4) ? random.between(1, 30) : undefined,
  }
}
