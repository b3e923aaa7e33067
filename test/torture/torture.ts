// Random kills under mixed load over all families. Clients of every wire start runs
// with tools, questions and cancels; people decide; the server is killed after random
// numbers of frames. When the killing is over, every run is checked: one end, a
// journal without a hole, every client's bytes equal to the replay, every unsafe call
// made at most once. Everything random comes from one seed.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { skillsFolder } from '../support/jobs.ts'
import { type Random, randomFrom } from '../support/random.ts'
import { type FakeProcess, spawnFake } from '../support/spawn-fake.ts'
import { checkRun, readJson } from './checks.ts'
import { KilledServer } from './killed-server.ts'
import { type Finished, type Plan, retried, TortureClient } from './torture-client.ts'
import { type Wire, wires } from './wires.ts'

export type TortureOptions = {
  seed: number
  /** Deaths of the server. New runs are started until the last one. */
  deaths: number
  /** Clients at a time. */
  clients: number
  /** A death comes after at most so many frames. */
  framesMax: number
  /** Which wires take part; all unless said otherwise. */
  wires?: readonly Wire[]
  report?: (line: string) => void
}

export type TortureResult = {
  runs: number
  connections: number
  frames: number
  kills: number
  drains: number
  payments: number
  byWire: Record<string, number>
}

/** Several clients act as one user, so that runs of one conversation queue behind each other. */
const users = 4

export async function torture(options: TortureOptions): Promise<TortureResult> {
  const random = randomFrom(options.seed)
  const folder = mkdtempSync(join(tmpdir(), 'polylog-torture-'))
  const provider = await spawnFake('repeatable-provider.ts')
  const ledger = await spawnFake('ledger-server.ts')
  const skills = skillsFolder()
  writeFileSync(join(folder, 'mcp.json'), JSON.stringify({ mcpServers: { ledger: { url: `${ledger.baseUrl}/mcp` } } }))
  const server = await KilledServer.start({
    OPENAI_API_KEY: 'fake-key',
    OPENAI_BASE_URL: `${provider.baseUrl}/v1`,
    POLYLOG_MODEL: 'openai/repeatable',
    POLYLOG_MCP_CONFIG: join(folder, 'mcp.json'),
    POLYLOG_SKILLS_DIR: skills,
    // Keep-alives belong to connections, and the comparison is about the journal.
    POLYLOG_PING_MS: '600000',
    POLYLOG_FCMP_HEARTBEAT_MS: '600000',
    POLYLOG_SESSION_HEARTBEAT_MS: '600000',
  })
  try {
    return await new Torture(options, random, server, ledger).run()
  } finally {
    await server.dispose()
    await provider.stop()
    await ledger.stop()
    for (const path of [folder, skills]) rmSync(path, { recursive: true, force: true })
  }
}

class Torture {
  private readonly options: TortureOptions
  private readonly random: Random
  private readonly server: KilledServer
  private readonly ledger: FakeProcess
  private readonly finished: Finished[] = []
  private killing = true
  private running = true
  private started = 0

  constructor(options: TortureOptions, random: Random, server: KilledServer, ledger: FakeProcess) {
    this.options = options
    this.random = random
    this.server = server
    this.ledger = ledger
  }

  async run(): Promise<TortureResult> {
    const clients = Array.from({ length: this.options.clients }, (_, index) => this.client(index, this.random.fork()))
    const people = Array.from({ length: users }, (_, index) => this.person(`user${index}`, this.random.fork()))
    try {
      await Promise.race([this.kill(this.random.fork()), Promise.all(clients).then(() => new Promise<void>(() => {}))])
      this.killing = false
      await Promise.all(clients)
    } finally {
      this.killing = false
      this.running = false
      await Promise.all(people)
    }
    return await this.check()
  }

  private async kill(random: Random): Promise<void> {
    for (let death = 1; death <= this.options.deaths; death += 1) {
      await this.server.dieOnce(random, this.options.framesMax)
      if (death % 25 === 0) this.options.report?.(`${death} deaths, ${this.finished.length} runs finished`)
    }
  }

  private async client(index: number, random: Random): Promise<void> {
    const taking = this.options.wires ?? wires
    for (let round = index; this.killing; round += 1) {
      // Every wire gets its turn, whatever the seed says.
      const wire = taking[round % taking.length] as Wire
      this.started += 1
      const plan = planOf(random, wire, `t${this.started}`, `user${index % users}`)
      const finished = await new TortureClient(this.server, wire, plan, random).run()
      this.finished.push(finished)
    }
  }

  /** Decides on everything that waits for this user. What a crash left unknown is never run again. */
  private async person(user: string, random: Random): Promise<void> {
    while (this.running) {
      const { status, text } = await retried(this.server, `/v1/tool-confirmations?status=pending&userId=${user}`)
      assert.equal(status, 200, text)
      for (const { id, outcome } of JSON.parse(text) as { id: string; outcome: string | null }[]) {
        const decision = outcome === 'unknown' || random.chance(0.2) ? 'reject' : 'confirm'
        const answer = await retried(this.server, `/v1/tool-confirmations/${id}/${decision}?userId=${user}`, {})
        // 409: it was decided by the request that a kill cut off, or closed with its run.
        assert.ok([200, 409].includes(answer.status), answer.text)
      }
      await this.answerQuestions(user)
      await wait(30)
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

  private async check(): Promise<TortureResult> {
    const ledger = (await readJson(`${this.ledger.baseUrl}/ledger`)) as Record<string, number>
    const twice = Object.entries(ledger).filter(([, count]) => count > 1)
    assert.deepEqual(twice, [], 'every payment was made at most once')
    for (const finished of this.finished) await checkRun(this.server.baseUrl, finished, ledger, this.random)
    const byWire: Record<string, number> = {}
    for (const { wire } of this.finished) byWire[wire.name] = (byWire[wire.name] ?? 0) + 1
    return {
      runs: this.finished.length,
      connections: this.finished.reduce((sum, { connections }) => sum + connections, 0),
      frames: this.server.frames,
      kills: this.server.kills,
      drains: this.server.drains,
      payments: Object.keys(ledger).length,
      byWire,
    }
  }
}

function planOf(random: Random, wire: Wire, mark: string, user: string): Plan {
  const tools = Array.from({ length: random.between(0, 2) }, () => random.pick(wire.tools))
  const words = random.chance(0.1) ? 200 : random.between(1, 30)
  const prompt = [
    `mark=${mark}`,
    `words=${words}`,
    `pause=${random.between(0, 4)}`,
    ...(tools.length === 0 ? [] : [`tools=${tools.join(',')}`]),
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
