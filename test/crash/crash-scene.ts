// Runs against the repeatable provider, on a server that is killed in the middle. A `Host`
// is a server with its restarts. A `CrashScene` is one run with its client, which keeps the
// frames that it got, and with the person who decides. It also has the checks that every
// run must pass, no matter how often its server was killed.

import assert from 'node:assert/strict'
import type { FakeFeishu } from '../support/fake-feishu.ts'
import type { Polylog } from '../support/polylog.ts'
import { type PolylogProcess, startPolylogProcess } from '../support/polylog-process.ts'
import type { FakeProcess } from '../support/spawn-fake.ts'
import { queryDatabase } from '../support/test-database.ts'
import { openStream, type SseFrame, type SseStream } from '../support/sse.ts'

/** What the checks look at; which of it an entry has depends on its event. */
type Payload = {
  name?: string
  status?: string
  error?: { code: string }
  code?: string
  resolution?: string
  trigger?: string
  state?: string
  text?: string
}

export type Timeline = {
  status: string
  skipped: number
  events: { seq: number; id: string; event: string; payload: Payload }[]
}
export type Confirmation = {
  id: string
  toolName: string
  outcome: 'unknown' | null
  status: string
  payload: Record<string, unknown>
}
export type Message = { role: string; content: string; metadata: Record<string, unknown> }
type Decide = 'confirm' | 'reject'

export function environmentOf(provider: FakeProcess, feishu: FakeFeishu): Record<string, string> {
  return {
    OPENAI_API_KEY: 'fake-key',
    OPENAI_BASE_URL: `${provider.baseUrl}/v1`,
    POLYLOG_MODEL: 'openai/repeatable',
    FEISHU_APP_ID: feishu.appId,
    FEISHU_APP_SECRET: feishu.appSecret,
    FEISHU_BASE_URL: feishu.baseUrl,
    // A keep-alive belongs to a connection, and the comparison is about the journal.
    POLYLOG_PING_MS: '600000',
    POLYLOG_LOG: 'info',
  }
}

/** One data folder, and the server that uses it at this moment. */
export class Host {
  server: Polylog
  /** The server as a process, if it is one: only a process can be killed. */
  private process: PolylogProcess | undefined
  readonly provider: FakeProcess
  readonly feishu: FakeFeishu

  private constructor(server: PolylogProcess, provider: FakeProcess, feishu: FakeFeishu) {
    this.server = server
    this.process = server
    this.provider = provider
    this.feishu = feishu
  }

  static async start(provider: FakeProcess, feishu: FakeFeishu): Promise<Host> {
    return new Host(await startPolylogProcess(environmentOf(provider, feishu)), provider, feishu)
  }

  async kill(): Promise<void> {
    assert.ok(this.process !== undefined, 'the server runs in this process')
    await this.process.kill()
  }

  /** The next server, in the process of the test. */
  async restart(): Promise<void> {
    this.server = await this.server.restart()
    this.process = undefined
  }

  /** The next server, as a process that can be killed. */
  async restartProcess(): Promise<void> {
    assert.ok(this.process !== undefined, 'the server runs in this process')
    this.process = await this.process.restartProcess()
    this.server = this.process
  }

  /** Straight from the database: notes have no route of their own. Only while no server has it. */
  async notes(): Promise<string[]> {
    const rows = await queryDatabase(this.server.dataDir, 'SELECT text FROM notes ORDER BY text')
    return rows.map((row) => String(row['text']))
  }
}

export class CrashScene {
  readonly host: Host
  /** Names this run in its prompt and in the messages that it sends. */
  readonly mark: string
  runId = ''
  conversationId = ''
  /** Everything that the client got, over all connections, in whole frames. */
  seen = ''
  stream!: SseStream
  private readonly decided = new Set<string>()

  constructor(host: Host, mark: string) {
    this.host = host
    this.mark = mark
  }

  get baseUrl(): string {
    return this.host.server.baseUrl
  }

  async ask(words = '', conversationId?: string): Promise<void> {
    const prompt = `Tell Bob hello. mark=${this.mark} message-bob ${words}`
    this.stream = await openStream(`${this.baseUrl}/v1/agent/chat`, {
      body: { prompt, ...(conversationId === undefined ? {} : { conversationId }) },
    })
    assert.equal(this.stream.status, 200)
    this.runId = String(this.stream.headers['x-run-id'])
    this.conversationId = decodeURIComponent(String(this.stream.headers['x-conversation-id']))
  }

  waitFor(fits: (frame: SseFrame) => boolean): Promise<SseFrame> {
    return this.stream.waitFor(fits)
  }

  /** The connection is over, one way or the other: a client keeps whole frames, and asks for the rest again. */
  async lost(): Promise<void> {
    await this.stream.ended()
    const text = this.stream.text()
    const whole = text.lastIndexOf('\n\n')
    if (whole !== -1) this.seen += text.slice(0, whole + 2)
  }

  lastId(): string | undefined {
    return [...this.seen.matchAll(/^id: (\S+)$/gm)].at(-1)?.[1]
  }

  /** Attaches again after the last whole frame. False when there is nothing left to get. */
  async attach(): Promise<boolean> {
    const last = this.lastId()
    this.stream = await openStream(`${this.baseUrl}/v1/agent/runs/${this.runId}/stream`, {
      headers: last === undefined ? {} : { 'last-event-id': last },
    })
    assert.ok(this.stream.status === 200 || this.stream.status === 204, `re-attach answered ${this.stream.status}`)
    return this.stream.status === 200
  }

  async pending(): Promise<Confirmation[]> {
    return await this.get<Confirmation[]>(`/v1/tool-confirmations?status=pending&runId=${this.runId}`)
  }

  /** 200, or 409 where it was decided before. */
  async decide(id: string, how: Decide): Promise<number> {
    this.decided.add(id)
    const response = await fetch(`${this.baseUrl}/v1/tool-confirmations/${id}/${how}`, { method: 'POST' })
    await response.body?.cancel()
    return response.status
  }

  /** Decides every earlier question, and leaves the question about this tool open. */
  untilAsked(tool: string): Promise<SseFrame> {
    // The question is stored before it is shown, so a client that lists pending questions could answer it too early.
    return this.decideUntil(toolIs(tool, 'awaiting_input'), 'reject', tool)
  }

  /** Decides every question until a frame fits. */
  async decideUntil(
    fits: (frame: SseFrame) => boolean,
    unknown: Decide = 'reject',
    exceptAbout?: string,
  ): Promise<SseFrame> {
    const { stream } = this
    const watch = { over: false }
    const found = stream.waitFor(fits).finally(() => {
      watch.over = true
    })
    // This includes questions from before this connection, which it does not show again.
    const helper = (async () => {
      let frames = -1
      while (!watch.over) {
        if (frames === stream.frames.length) {
          await Promise.race([
            found.catch(() => {}),
            stream.waitFor(() => stream.frames.length > frames).catch(() => {}),
          ])
          continue
        }
        frames = stream.frames.length
        for (const { id, outcome, toolName } of await this.pending()) {
          if (!watch.over && !this.decided.has(id) && toolName !== exceptAbout)
            await this.decide(id, outcome === 'unknown' ? unknown : 'confirm')
        }
      }
    })()
    const frame = await found
    await helper
    return frame
  }

  /** Attaches and drives the run to its end, deciding what has to be decided. */
  async finish(unknown: Decide = 'reject'): Promise<void> {
    if (!(await this.attach())) return
    await this.decideUntil((frame) => frame.json.event === 'agent.end', unknown)
    await this.lost()
  }

  async get<T>(path: string): Promise<T> {
    const response = await fetch(`${this.baseUrl}${path}`)
    assert.equal(response.status, 200, `${path} answered ${response.status}`)
    return (await response.json()) as T
  }

  timeline(runId = this.runId): Promise<Timeline> {
    return this.get<Timeline>(`/v1/agent/runs/${runId}/timeline`)
  }

  messages(): Promise<Message[]> {
    return this.get<Message[]>(`/v1/agent/messages?conversationId=${this.conversationId}`)
  }

  async asked(): Promise<number[]> {
    return (await (await fetch(`${this.host.provider.baseUrl}/control/asked?mark=${this.mark}`)).json()) as number[]
  }

  /** How many messages of this run Feishu got, and in how many requests. */
  async sent(): Promise<{ messages: number; requests: number }> {
    const mine = (await this.host.feishu.sent()).filter((message) => message.text === `hello of ${this.mark}`)
    return { messages: mine.length, requests: mine.reduce((sum, message) => sum + message.requests, 0) }
  }

  async fullReplay(): Promise<string> {
    const stream = await openStream(`${this.baseUrl}/v1/agent/runs/${this.runId}/stream`)
    await stream.ended()
    return stream.text()
  }

  /** What holds for every ended run, wherever its server died. */
  async checkHistory(status = 'succeeded'): Promise<Timeline> {
    const timeline = await this.timeline()
    const { events } = timeline
    assert.equal(timeline.status, status)
    assert.equal(timeline.skipped, 0)
    assert.deepEqual(
      events.map(({ seq }) => seq),
      events.map((_, index) => index + 1),
      'the timeline has no hole',
    )
    const addresses = events.map(({ id }) => id.split('.').map(Number) as [number, number?])
    for (const [index, [seq, part = 1]] of addresses.entries()) {
      const [before = 0, partBefore = 1] = addresses[index - 1] ?? []
      assert.ok(
        seq === before + 1 || (seq === before && part === partBefore + 1),
        `the journal goes on after ${before}, not with ${seq}`,
      )
    }
    assert.deepEqual(
      events.flatMap(({ event }, index) => (event === 'agent.end' ? [index] : [])),
      [events.length - 1],
      'one end, and nothing after it',
    )
    assert.equal(this.seen, await this.fullReplay(), 'what the client got is what an uninterrupted one gets')
    return timeline
  }
}

export const named = (event: string) => (frame: SseFrame) => frame.json.event === event

export const toolIs = (name: string, status: string) => (frame: SseFrame) =>
  frame.json.event === 'tool.state' && frame.json.data.name === name && frame.json.data.status === status
