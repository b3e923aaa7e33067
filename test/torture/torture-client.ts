// One client with one run, over any number of connections: it starts the run with an idempotency
// key until it gets an answer, reads, loses the connection (the server was killed, or the client
// disconnected), and attaches again until the stream is over. It keeps every frame, and checks
// that no frame came twice or changed.

import assert from 'node:assert/strict'
import { type IncomingMessage, request as httpRequest } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import type { Random } from '../support/random.ts'
import type { Wire } from './wires.ts'

export type Plan = {
  mark: string
  user: string
  conversation: string
  prompt: string
  tools: string[]
  /** Cancels after so many frames. */
  cancelAfter: number | undefined
  /** Hangs up after so many frames of a connection, and comes back. */
  leaveAfter: number | undefined
}

export type Finished = {
  wire: Wire
  plan: Plan
  id: string
  frames: string[]
  connections: number
  /** What the server answered to the cancel request, if the client sent one. */
  cancelAnswer: Answered | undefined
}

export type Answered = { status: number; text: string }

/** What clients talk to: one server that is killed, or several behind one address. */
export type TorturedServer = {
  readonly baseUrl: string
  /** Resolves when it is worth trying. */
  isUp(): Promise<void>
  sawFrames(count: number): void
}

/** A server that is going down or comes up refuses for a moment; everything else that is not 2xx is a finding. */
const refusals = new Set([503])

export class TortureClient {
  private readonly server: TorturedServer
  private readonly wire: Wire
  private readonly plan: Plan
  private readonly random: Random
  private id: string | undefined
  private frames: string[] = []
  private connections = 0
  private cancelling: Promise<Answered> | undefined

  constructor(server: TorturedServer, wire: Wire, plan: Plan, random: Random) {
    this.server = server
    this.wire = wire
    this.plan = plan
    this.random = random
  }

  async run(): Promise<Finished> {
    if ('field' in this.wire.idFrom) await this.create(this.wire.idFrom.field)
    for (;;) {
      const frames = await this.connect()
      if (frames === 'over') break
      if (this.frames.some((frame) => this.wire.isEnd(frame))) break
    }
    assert.ok(this.id !== undefined)
    const { wire, plan, id, frames, connections } = this
    return { wire, plan, id, frames, connections, cancelAnswer: await this.cancelling }
  }

  /** A family whose streams have a route of their own: the request is answered with JSON. */
  private async create(field: string): Promise<void> {
    const { path, body } = this.startRequest()
    const created = await retried(this.server, path, body, { 'idempotency-key': this.plan.mark })
    assert.equal(created.status, 200, `${path}: ${created.text}`)
    this.id = String((JSON.parse(created.text) as Record<string, unknown>)[field])
  }

  private startRequest(): { path: string; body: object } {
    const { user, prompt, conversation } = this.plan
    return this.wire.start(user, prompt, conversation)
  }

  private async connect(): Promise<'over' | 'lost'> {
    await this.server.isUp()
    this.connections += 1
    const last = this.wire.resumes ? this.lastId() : undefined
    let response: IncomingMessage
    try {
      if (this.id === undefined) {
        const { path, body } = this.startRequest()
        response = await open(this.server.baseUrl + path, body, { 'idempotency-key': this.plan.mark, ...this.accept() })
      } else {
        const headers: Record<string, string> = last === undefined ? {} : { 'last-event-id': last }
        response = await open(this.server.baseUrl + this.wire.attach(this.plan.user, this.id), undefined, headers)
      }
    } catch {
      await wait(20)
      return 'lost'
    }
    const { statusCode = 0 } = response
    if (statusCode === 204) {
      response.resume()
      return 'over'
    }
    if (refusals.has(statusCode)) {
      response.resume()
      await wait(50)
      return 'lost'
    }
    const text = statusCode === 200 ? '' : await textOf(response)
    assert.equal(statusCode, 200, `${this.wire.name} ${this.id ?? 'start'}: ${text}`)
    if ('header' in this.wire.idFrom) this.id ??= response.headers[this.wire.idFrom.header] as string | undefined
    await this.read(response, last === undefined)
    return 'lost'
  }

  private accept(): Record<string, string> {
    return { accept: this.wire.name === 'chunks-ndjson' ? 'application/x-ndjson' : 'text/event-stream' }
  }

  /** `fromStart`: this connection replays the run from its start, and its frames must equal the earlier ones. */
  private async read(response: IncomingMessage, fromStart: boolean): Promise<void> {
    const { separator } = this.wire
    const { leaveAfter } = this.plan
    const leaves = leaveAfter !== undefined && this.random.chance(0.5)
    let rest = ''
    let position = fromStart ? 0 : this.frames.length
    let count = 0
    response.setEncoding('utf8')
    try {
      for await (const piece of response) {
        rest += String(piece)
        const whole = rest.split(separator)
        rest = whole.pop() ?? ''
        const journaled = whole.filter((frame) => frame !== '' && this.wire.isJournaled(frame))
        for (const frame of journaled) {
          const known = this.frames[position]
          if (known !== undefined)
            assert.equal(frame, known, `${this.wire.name} ${this.id}: the frame differs from the earlier connection`)
          else this.frames.push(frame)
          position += 1
        }
        count += journaled.length
        this.server.sawFrames(journaled.length)
        this.mayCancel()
        if (leaves && count >= leaveAfter) response.destroy()
      }
    } catch (error) {
      // A broken connection is what this test is about; a wrong frame is not.
      if (error instanceof assert.AssertionError) throw error
    }
  }

  private mayCancel(): void {
    const { cancelAfter, user } = this.plan
    if (
      cancelAfter === undefined ||
      this.cancelling !== undefined ||
      this.frames.length < cancelAfter ||
      this.id === undefined
    )
      return
    const request = this.wire.cancel(user, this.id)
    if (request === null) return
    this.cancelling = retried(this.server, request.path, request.body)
  }

  private lastId(): string | undefined {
    return this.frames.at(-1)?.match(/^id: (\S+)$/m)?.[1]
  }
}

/** A request that is sent until it is answered: the server may be dying just now. */
export async function retried(
  server: TorturedServer,
  path: string,
  body?: object,
  headers: Record<string, string> = {},
): Promise<Answered> {
  for (;;) {
    await server.isUp()
    try {
      const response = await open(server.baseUrl + path, body, headers)
      const text = await textOf(response)
      if (!refusals.has(response.statusCode ?? 0)) return { status: response.statusCode ?? 0, text }
    } catch {
      // cut off before the whole answer came
    }
    await wait(20)
  }
}

async function textOf(response: IncomingMessage): Promise<string> {
  let text = ''
  for await (const piece of response.setEncoding('utf8')) text += String(piece)
  if (!response.complete) throw new Error('cut off')
  return text
}

function open(url: string, body: object | undefined, headers: Record<string, string>): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      url,
      {
        agent: false,
        method: body === undefined ? 'GET' : 'POST',
        headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      },
      resolve,
    )
    request.on('error', reject)
    request.end(body === undefined ? undefined : JSON.stringify(body))
  })
}
