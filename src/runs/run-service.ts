// What callers may do with runs: start, find, cancel, decide. Every id is checked
// against its owner here, once for all wires: what belongs to somebody else does
// not exist.

import { createHash } from 'node:crypto'
import { chatAgentId } from '../agents/catalogue.ts'
import { Follower } from '../bus/follower.ts'
import { AppError } from '../errors/app-error.ts'
import type { JsonValue, NewEvent, RunEvent, RunSpec } from '../journal/event.ts'
import type { AcceptInput, InteractionRow, MessageRow, RunRow } from '../stores/store.ts'
import { boundContext, enabledTools } from './bounded-context.ts'
import type { RunParts } from './run-parts.ts'
import type { Scheduler } from './scheduler.ts'

export type WhenBusy = 'queue' | 'reject' | 'cancel'

export type StartRequest = {
  owner: string
  family: string
  input: string
  /** Earlier messages that the client sent along; they count only where the conversation has no history of its own. */
  earlier: { role: 'user' | 'assistant'; content: string }[]
  agentId?: string
  conversationId?: string
  sessionId?: string
  context?: Record<string, unknown>
  model?: string
  temperature?: number
  maxTokens?: number
  onDisconnect?: 'continue' | 'cancel'
  whenBusy: WhenBusy
  idempotency: { key: string; route: string; body: unknown } | null
}

export type Started = { run: RunRow; outcome: 'accepted' | 'existing' }

const acceptTriesMax = 8
const titleCharsMax = 60
/** A cancel is confirmed when the run has ended; a store that hangs must not hang the caller too. */
const cancelWaitMs = 10_000

export class RunService {
  private readonly parts: RunParts
  private readonly scheduler: Scheduler
  private stopped = false
  /** The last accept under way for each conversation or session; see `inTurn`. */
  private readonly accepting = new Map<string, Promise<unknown>>()

  constructor(parts: RunParts, scheduler: Scheduler) {
    this.parts = parts
    this.scheduler = scheduler
  }

  refuseNewRuns(): void {
    this.stopped = true
  }

  /** The run and its input are on disk when this resolves. */
  async start(request: StartRequest): Promise<Started> {
    if (this.stopped) throw new AppError('shutting_down', 'The server is going down. Try again in a moment.')
    const agentId = request.agentId ?? chatAgentId
    const definition = this.parts.catalogue.get(agentId)
    const context = request.context === undefined ? undefined : boundContext(request.context)
    const tools = request.context === undefined ? undefined : enabledTools(request.context)
    const spec: RunSpec = {
      agentId,
      engine: this.parts.engineName,
      model: this.parts.models.resolve(request.model ?? definition.card.model),
      ...(request.temperature === undefined ? {} : { temperature: request.temperature }),
      ...(request.maxTokens === undefined ? {} : { maxTokens: request.maxTokens }),
      ...(context === undefined ? {} : { context }),
      ...(tools === undefined ? {} : { tools }),
      ...(request.onDisconnect === undefined ? {} : { onDisconnect: request.onDisconnect }),
    }
    const idempotency =
      request.idempotency === null
        ? null
        : { key: request.idempotency.key, route: request.idempotency.route, fingerprint: fingerprint(request.idempotency.body) }
    if (idempotency !== null) {
      const existing = await this.findStarted(request.owner, idempotency)
      if (existing !== undefined) return { run: existing, outcome: 'existing' }
    }
    return await this.inTurn(request, async () => {
      for (let attempt = 1; ; attempt++) {
        try {
          return await this.tryAccept(request, spec, idempotency)
        } catch (error) {
          // The conversation changed between looking and accepting: look again.
          if (!(error instanceof AppError) || error.code !== 'accept_stale' || attempt >= acceptTriesMax) throw error
        }
      }
    })
  }

  /**
   * Accepts for one conversation go one after another on this node: side by side they would only make each other
   * stale, and the last of many would run out of tries. Between nodes the store decides.
   */
  private async inTurn<T>(request: StartRequest, work: () => Promise<T>): Promise<T> {
    const { owner, conversationId, sessionId } = request
    if (conversationId === undefined && sessionId === undefined) return await work()
    const place = conversationId === undefined ? JSON.stringify([owner, sessionId]) : conversationId
    const turn = (this.accepting.get(place) ?? Promise.resolve()).then(work, work)
    this.accepting.set(place, turn)
    try {
      return await turn
    } finally {
      if (this.accepting.get(place) === turn) this.accepting.delete(place)
    }
  }

  /** The run that a key belongs to. Another body under the same key is refused. */
  async findStarted(owner: string, wanted: { key: string; route: string; fingerprint: string }): Promise<RunRow | undefined> {
    const found = await this.parts.store.findIdempotent(owner, wanted.route, wanted.key)
    if (found === undefined) return undefined
    if (found.fingerprint !== wanted.fingerprint) {
      throw new AppError('idempotency_key_reused', 'This Idempotency-Key was used with another body. Use a new key for a new request.')
    }
    return await this.parts.store.readRun(found.runId)
  }

  async get(owner: string, runId: string): Promise<RunRow> {
    const run = await this.parts.store.readRun(runId)
    if (run === undefined || run.owner !== owner) throw new AppError('run_not_found', `There is no run ${JSON.stringify(runId)}.`)
    return run
  }

  /** Resolves when the run has ended; `accepted` is false where it had ended before. */
  async cancel(owner: string, runId: string, reason: string | null): Promise<{ run: RunRow; accepted: boolean }> {
    const run = await this.get(owner, runId)
    if (run.endedAt !== null) return { run, accepted: false }
    await this.requestCancel(runId, owner, reason)
    const ended = await this.waitForEnd(run)
    return { run: ended, accepted: ended.status === 'canceled' }
  }

  async requestCancel(runId: string, by: string, reason: string | null): Promise<void> {
    const row = await this.parts.store.requestCancel(runId, { by, reason, at: this.parts.clock.now() })
    if (row !== undefined && row.endedAt === null) this.scheduler.cancel(row)
  }

  async confirmation(owner: string, id: string): Promise<InteractionRow> {
    const row = await this.parts.store.readInteraction(id)
    if (row === undefined || row.owner !== owner || row.kind !== 'confirmation') {
      throw new AppError('tool_confirmation_not_found', `There is no confirmation ${JSON.stringify(id)}.`)
    }
    return row
  }

  /** `changes` are merged over the arguments that were shown; the result must still fit the tool. */
  async confirm(owner: string, id: string, changes: Record<string, JsonValue> | undefined): Promise<InteractionRow> {
    const row = await this.confirmation(owner, id)
    let response: JsonValue | undefined
    if (changes !== undefined && Object.keys(changes).length > 0) {
      response = { ...(row.input as Record<string, JsonValue>), ...changes }
      const tool = row.toolName === null ? undefined : this.parts.tools.get(row.toolName)
      const wrong = tool === undefined ? null : this.parts.tools.check(tool, response)
      if (wrong !== null) throw new AppError('confirmation_payload_invalid', `The changed arguments do not fit ${row.toolName}: ${wrong}.`)
    }
    return await this.decide(row, { status: 'confirmed', ...(response === undefined ? {} : { response }) }, owner)
  }

  async reject(owner: string, id: string, reason: string | undefined): Promise<InteractionRow> {
    const row = await this.confirmation(owner, id)
    return await this.decide(row, { status: 'rejected', ...(reason === undefined ? {} : { reason }) }, owner)
  }

  private async decide(
    row: InteractionRow,
    decision: { status: 'confirmed' | 'rejected'; response?: JsonValue; reason?: string },
    by: string,
  ): Promise<InteractionRow> {
    const result = await this.parts.store.decide(row.id, { ...decision, by, at: this.parts.clock.now() })
    if (result === undefined) throw new AppError('tool_confirmation_not_found', `There is no confirmation ${JSON.stringify(row.id)}.`)
    if (!result.decided) {
      const expired = result.row.status === 'pending' || result.row.status === 'expired'
      throw new AppError(
        expired ? 'tool_confirmation_expired' : 'tool_confirmation_resolved',
        expired ? 'This confirmation has expired; ask the agent again.' : `This confirmation was decided before: ${result.row.status}.`,
        { details: { confirmationId: row.id, status: expired ? 'expired' : result.row.status } },
      )
    }
    this.scheduler.poke(row.runId)
    return result.row
  }

  private async tryAccept(request: StartRequest, spec: RunSpec, idempotency: AcceptInput['idempotency']): Promise<Started> {
    const { store, ids, clock, limits } = this.parts
    const place = await this.findConversation(request)
    const open = place.exists ? await store.openRuns(place.id) : []
    const behind = open.at(-1)
    if (behind !== undefined && request.whenBusy === 'reject') {
      throw new AppError('conversation_busy', 'Another run is under way in this conversation. Wait for it, cancel it, or send whenBusy: "queue".', {
        details: { runId: behind.id, status: behind.status },
      })
    }
    if (request.whenBusy === 'cancel') {
      await Promise.all(open.map((run) => this.requestCancel(run.id, request.owner, 'replaced by a newer message')))
    }

    const now = clock.now()
    const runId = ids()
    const hasHistory = place.exists && (await store.listMessages(place.id, { limit: 1 })).length > 0
    const imported = hasHistory ? [] : request.earlier
    const messages = [...imported, { role: 'user' as const, content: request.input }].map(
      (message, index): MessageRow => ({
        id: ids(),
        conversationId: place.id,
        runId: index === imported.length ? runId : null,
        parentId: null,
        role: message.role,
        content: message.content,
        state: 'active',
        toolCallId: null,
        metadata: index === imported.length ? { runId } : { imported: true },
        createdAt: now,
      }),
    )
    const first: NewEvent[] = [
      {
        type: 'run.accepted',
        data: {
          owner: request.owner,
          family: request.family,
          conversationId: place.id,
          ...(request.sessionId === undefined ? {} : { sessionId: request.sessionId }),
          userMessageId: messages.at(-1)?.id ?? null,
          input: request.input,
          spec,
        },
      },
    ]
    if (place.announce) first.push({ type: 'context.patch', data: { layer: 'session', patch: { conversationId: place.id } } })
    if (behind !== undefined) {
      first.push({
        type: 'diagnostic',
        data: {
          code: 'conversation_busy',
          message: `Waiting for the run before this one in the conversation (${behind.status}).`,
          details: { runId: behind.id, status: behind.status, whenBusy: request.whenBusy },
        },
      })
    }
    const events = first.map((event, index): RunEvent => ({ seq: index + 1, at: now, attempt: 1, ...event }))
    const reserved = this.scheduler.reserve()
    try {
      const result = await store.accept({
      run: { id: runId, owner: request.owner, family: request.family, agentId: spec.agentId, conversationId: place.id, createdAt: now },
      conversation: { expect: place.exists ? 'present' : 'absent', title: titleOf(request.input), sessionKey: request.sessionId ?? null },
      expectBehind: behind?.id ?? null,
      messages,
      events,
      idempotency,
      queueMax: limits.queueMax,
      claim: reserved ? { node: this.scheduler.node, leaseUntil: this.scheduler.leaseUntil() } : null,
      })
      if (result.outcome === 'accepted') {
        if (result.run.leaseOwner === this.scheduler.node) this.scheduler.adopt(result.run, events)
        else this.scheduler.poke()
      }
      return { run: result.run, outcome: result.outcome }
    } finally {
      if (reserved) this.scheduler.release()
    }
  }

  /**
   * An id that nobody has is taken for the caller; somebody else's does not exist. `announce`: the caller did not
   * name the conversation and has to be told its id.
   */
  private async findConversation(request: StartRequest): Promise<{ id: string; exists: boolean; announce: boolean }> {
    const { store, ids } = this.parts
    if (request.conversationId !== undefined) {
      const found = await store.readConversation(request.conversationId)
      if (found !== undefined && found.owner !== request.owner) throw conversationNotFound(request.conversationId)
      return { id: request.conversationId, exists: found !== undefined, announce: false }
    }
    if (request.sessionId !== undefined) {
      const found = await store.findConversationBySession(request.owner, request.sessionId)
      if (found !== undefined) return { id: found.id, exists: true, announce: false }
    }
    return { id: ids(), exists: false, announce: true }
  }

  private async waitForEnd(run: RunRow): Promise<RunRow> {
    const follower = new Follower(run.id, run.lastSeq, this.parts.store, this.parts.bus)
    const timer = this.parts.clock.after(cancelWaitMs, () => follower.close())
    try {
      while ((await follower.next()) !== null) {
        // Only the end is of interest.
      }
    } finally {
      timer.cancel()
      follower.close()
    }
    return (await this.parts.store.readRun(run.id)) ?? run
  }
}

export function conversationNotFound(id: string): AppError {
  return new AppError('conversation_not_found', `There is no conversation ${JSON.stringify(id)}.`)
}

/** The first message titles a conversation that has no title. */
function titleOf(input: string): string | null {
  const line = input.replace(/\s+/g, ' ').trim()
  if (line === '') return null
  const characters = [...line]
  return characters.length > titleCharsMax ? `${characters.slice(0, titleCharsMax - 1).join('')}…` : line
}

/** The order of keys does not make another body. */
export function fingerprint(body: unknown): string {
  const canonical = JSON.stringify(body, (_key, value: unknown) =>
    value !== null && typeof value === 'object' && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).toSorted(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0)))
      : value,
  )
  return createHash('sha256').update(canonical ?? 'null').digest('hex')
}
