// Accepts requests: reads the conversation, plans the rows of the new runs, and stores
// them in one transaction (optimistic concurrency). If the conversation changed in
// between, the store refuses the rows as stale and acceptance starts over.

import { createHash } from 'node:crypto'
import { AppError } from '../errors/app-error.ts'
import { shownConversationId } from '../kit/conversation-id.ts'
import { defined } from '../kit/defined.ts'
import { KeyedMutex } from '../kit/keyed-mutex.ts'
import { sortedJson } from '../kit/sorted-json.ts'
import type { NewEvent, RunEvent, RunSpec } from '../journal/event.ts'
import { checkEvent } from '../journal/event-codec.ts'
import { filesOf } from '../journal/message-parts.ts'
import type { AcceptExtraRows, AcceptInput, CancelRequest, LeaseRequest, RunRow } from '../stores/run-store.ts'
import { checkDayBudgets } from './budgets.ts'
import { checkReadable } from './prompt-files.ts'
import { immediateStart } from './immediate-start.ts'
import { isOffered, needsOf } from './placement.ts'
import { newRunTrace } from './run-trace.ts'
import type { RunDependencies } from './run-dependencies.ts'
import { specFor } from './run-spec.ts'
import type { Scheduler } from './scheduler.ts'
import { type FirstAnswer, findFirstAnswer, comparisonOf, secondAnswerSpec } from './second-answer.ts'
import type { StartRequest } from './start-request.ts'
import { findRunConversation, namesOf, type RunConversation } from './run-conversation.ts'
import { runInputFor, type RunInput } from './run-input.ts'

/** `reused`: an equal request succeeded before, and `run` is the run of that request. */
export type StartResult = {
  run: RunRow
  outcome: 'accepted' | 'existing'
  reused?: true
  /** The run was accepted without a comparison. A later answer to the same question may still make it part of one. */
  standsAlone?: true
}

/** The runs that are about to be accepted together, in one turn of a conversation. */
export type PlannedTurn = { conversationId: string; userMessageId: string; runIds: string[]; at: number }

type PlannedRun = { request: StartRequest; spec: RunSpec; idempotency: AcceptInput['idempotency'] }
type Turn = {
  conversation: RunConversation
  /** The newest open run of the conversation, which the new runs wait for. */
  behind: RunRow | undefined
  at: number
  runInput: RunInput
  /** The id of the run whose turn this one joins. */
  leader: string | undefined
}

type AcceptContext = {
  /** The conversation has no earlier messages. */
  isFirstTurn: boolean
  behind: RunRow | undefined
  /** The open runs, with their cancel requests, that the new run takes the place of. */
  replaced: readonly RunRow[]
  extra: AcceptExtraRows | undefined
}

const acceptTriesMax = 8
const titleCharsMax = 60

export class RunAcceptance {
  private readonly dependencies: RunDependencies
  private readonly scheduler: Scheduler
  /** See `serialize`. */
  private readonly accepting = new KeyedMutex()

  constructor(dependencies: RunDependencies, scheduler: Scheduler) {
    this.dependencies = dependencies
    this.scheduler = scheduler
  }

  /**
   * Accepts several runs that answer one question in parallel, in one transaction. They share one conversation, one user
   * message and one turn, all taken from the first request; the others differ only in how the question is answered.
   */
  async startTogether(
    requests: readonly StartRequest[],
    extraRows?: (turn: PlannedTurn) => AcceptExtraRows,
  ): Promise<StartResult[]> {
    const first = requests[0] as StartRequest
    const keys = requests.map(keyOf)
    // Checked first, so that a repeated request finds its run even if agents, models or the conversation changed since.
    const existing = await this.findAllStarted(first.owner, keys)
    if (existing !== undefined) return existing
    await checkDayBudgets(first.owner, this.dependencies)
    const items = requests.map((request, index): PlannedRun => ({
      request,
      spec: specFor(request, this.dependencies),
      idempotency: keys[index] ?? null,
    }))
    return await this.serialize(first, async () => {
      for (let attempt = 1; ; attempt++) {
        try {
          return await this.tryAccept(items, extraRows)
        } catch (error) {
          // The conversation changed after it was read: try again.
          if (!(error instanceof AppError) || error.code !== 'accept_stale') throw error
          if (attempt >= acceptTriesMax) {
            throw new AppError(
              'store_busy',
              'Too many requests came at once for this conversation. Try again in a moment.',
              {
                cause: error,
              },
            )
          }
        }
      }
    })
  }

  /**
   * Serializes the accepts of one conversation on this node. In parallel they would make each other stale, and the last of
   * many would run out of tries. Between nodes the store's check for stale rows is enough.
   */
  private async serialize<T>(request: StartRequest, work: () => Promise<T>): Promise<T> {
    const name = request.conversationId ?? request.sessionId
    if (name === undefined && request.sentAt === undefined) return await work()
    // Without a name the sending time is the key, because two requests with one sending time may be two answers to one question.
    const key = JSON.stringify([request.owner, name ?? request.sentAt])
    return await this.accepting.run(key, work)
  }

  /** The runs that an earlier request with the same idempotency keys started; undefined if the request is new. */
  private async findAllStarted(
    owner: string,
    keys: readonly AcceptInput['idempotency'][],
  ): Promise<StartResult[] | undefined> {
    const known: StartResult[] = []
    for (const key of keys) {
      const run = key === null ? undefined : await this.findStarted(owner, key)
      if (run === undefined) return undefined
      known.push({ run, outcome: 'existing' })
    }
    return known
  }

  /** The run that an idempotency key belongs to. Throws if the key was used with another body. */
  async findStarted(
    owner: string,
    wanted: { key: string; route: string; fingerprint: string },
  ): Promise<RunRow | undefined> {
    const found = await this.dependencies.store.findIdempotent(owner, wanted.route, wanted.key)
    if (found === undefined) return undefined
    if (found.fingerprint !== wanted.fingerprint) {
      throw new AppError(
        'idempotency_key_reused',
        'This Idempotency-Key was used with another body. Use a new key for a new request.',
      )
    }
    return await this.dependencies.store.readRun(found.runId)
  }

  private async tryAccept(
    items: readonly PlannedRun[],
    extraRows?: (turn: PlannedTurn) => AcceptExtraRows,
  ): Promise<StartResult[]> {
    const first = (items[0] as PlannedRun).request
    const at = this.dependencies.clock.now()
    const found = await findRunConversation(first, this.dependencies)
    const firstAnswer = items.length === 1 ? await this.firstAnswer(first, found, at) : undefined
    const conversation: RunConversation =
      firstAnswer === undefined ? found : { id: firstAnswer.conversationId, exists: true, announce: false, name: null }
    const open = conversation.exists ? await this.dependencies.store.openRuns(conversation.id) : []
    // Checked again after the open runs are read, because the same request may have been sent twice at once.
    const existing = await this.findAllStarted(
      first.owner,
      items.map(({ idempotency }) => idempotency),
    )
    if (existing !== undefined) return existing
    const joined = open.find((run) => run.id === firstAnswer?.run.id)
    const behind = open.filter((run) => run !== joined).at(-1)
    if (behind !== undefined && firstAnswer === undefined) refuseIfBusy(first, behind)
    const runInput = await this.runInputFor(first, conversation, at, firstAnswer)
    for (const { spec } of items) checkReadable(runInput.parts, spec, this.dependencies)

    const planned: { input: AcceptInput; spec: RunSpec }[] = []
    for (const item of items) {
      const leader = joined?.id ?? planned[0]?.input.run.id
      const spec = secondAnswerSpec(item.spec, firstAnswer)
      planned.push({ spec, input: this.acceptInput({ ...item, spec }, { conversation, behind, at, runInput, leader }) })
    }
    const inputs = planned.map(({ input }) => input)
    const comparison = comparisonOf(
      firstAnswer,
      { runId: inputs[0]?.run.id as string, configName: items[0]?.spec.configName, at },
      this.dependencies.ids,
    )
    const extra =
      comparison === undefined ? extraRows?.(plannedTurn(inputs, conversation, runInput, at)) : { comparison }
    let replaced: RunRow[] = []
    if (first.whenBusy === 'cancel' && firstAnswer === undefined && inputs[0] !== undefined) {
      const cancel: CancelRequest = { by: first.owner, reason: 'replaced by a newer message', at }
      inputs[0].cancelEarlier = cancel
      replaced = open.map((run) => ({ ...run, cancel: run.cancel ?? cancel }))
    }
    const isFirstTurn = !conversation.exists && runInput.messages.length <= 1
    return await this.store(planned, { isFirstTurn, behind, replaced, extra })
  }

  /** Stores the runs, and claims those that this node has a free slot for in the same transaction. */
  private async store(
    planned: readonly { input: AcceptInput; spec: RunSpec }[],
    { isFirstTurn, behind, replaced, extra }: AcceptContext,
  ): Promise<StartResult[]> {
    const { store, placement } = this.dependencies
    const lease = this.scheduler.leaseRequest()
    let slots = 0
    try {
      for (const { input, spec } of planned) {
        if (!isOffered(input.run.needs ?? [], placement) || !this.scheduler.reserve()) continue
        slots += 1
        input.claim = lease
        input.start = immediateStart(input.events, spec, isFirstTurn, this.dependencies)
        const engine = this.dependencies.engines.get(spec.engine)
        if (behind === undefined && engine.kind === 'step') engine.prepare?.(spec)
      }
      const inputs = planned.map(({ input }) => input)
      const standsAlone = inputs.length === 1 && extra?.comparison === undefined
      const results: StartResult[] = standsAlone
        ? [await store.accept(inputs[0] as AcceptInput)]
        : await store.acceptAll(inputs, extra)
      if (results[0]?.outcome === 'accepted') for (const run of replaced) this.scheduler.cancel(run)
      for (const [index, result] of results.entries()) {
        if (result.outcome !== 'accepted') continue
        const input = inputs[index] as AcceptInput
        if (result.run.leaseOwner === lease.node) {
          result.run = withTextsOf(input, lease, result.run)
          this.scheduler.adopt(result.run, eventsOf(input), lease)
        }
        // A run that waits for the one before it cannot be claimed by any node yet.
        else this.scheduler.poke(behind === undefined ? result.run.id : undefined)
      }
      const [only] = results
      return standsAlone && only?.outcome === 'accepted' ? [{ ...only, standsAlone }] : results
    } finally {
      for (; slots > 0; slots -= 1) this.scheduler.release()
    }
  }

  private async firstAnswer(
    request: StartRequest,
    conversation: RunConversation,
    nowMs: number,
  ): Promise<FirstAnswer | undefined> {
    // If the request names a conversation that does not exist yet, there is no first answer to look for.
    if (!conversation.exists && conversation.unnamed !== true) return undefined
    return await findFirstAnswer(request, conversation.exists ? conversation.id : undefined, {
      store: this.dependencies.store,
      nowMs,
    })
  }

  private async runInputFor(
    request: StartRequest,
    conversation: RunConversation,
    at: number,
    answered: FirstAnswer | undefined,
  ): Promise<RunInput> {
    if (answered === undefined) return await runInputFor(request, conversation, at, this.dependencies)
    const { input, parts } = request
    return { input, ...defined({ parts }), userMessageId: answered.userMessageId, messages: [], titleText: input }
  }

  /** The rows and events of a new run. A run with a leader joins the leader's turn and adds no message. */
  private acceptInput({ request, spec, idempotency }: PlannedRun, turn: Turn): AcceptInput {
    const { conversation, behind, at, runInput, leader } = turn
    const runId = this.dependencies.ids()
    const messages = leader === undefined ? runInput.messages : []
    const asked = messages.at(-1)
    // Only the question belongs to the run; the other messages of the request are imported history.
    if (asked !== undefined && asked.id === runInput.userMessageId) {
      asked.runId = runId
      asked.metadata = { runId, ...defined({ clientMessageId: request.clientMessageId }) }
    }
    const first: NewEvent[] = [
      {
        type: 'run.accepted',
        data: {
          owner: request.owner,
          family: request.family,
          conversationId: conversation.id,
          // In the order of the schema, so that the quick check of events takes them as they are.
          ...defined({
            newConversation: conversation.exists ? undefined : (true as const),
            sessionId: request.sessionId,
          }),
          userMessageId: runInput.userMessageId,
          input: runInput.input,
          ...defined({
            parts: runInput.parts,
            trace: newRunTrace(this.dependencies),
            continuesHistory: runInput.userMessageId === null ? (true as const) : undefined,
            echo: request.echo,
          }),
          spec: runInput.supersedes === undefined ? spec : { ...spec, supersedes: runInput.supersedes },
        },
      },
    ]
    if (conversation.announce)
      first.push({
        type: 'context.patch',
        data: { layer: 'session', patch: { conversationId: shownConversationId(conversation.id) } },
      })
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
    return {
      run: {
        id: runId,
        owner: request.owner,
        family: request.family,
        agentId: spec.agentId,
        conversationId: conversation.id,
        needs: needsOf(spec, this.dependencies, request.directoryNode),
        createdAt: at,
      },
      conversation: {
        expect: conversation.exists || leader !== undefined ? 'present' : 'absent',
        title: request.title ?? titleOf(runInput.titleText),
        ...(leader === undefined ? namesOf(conversation) : { name: null }),
      },
      expectBehind: behind?.id ?? null,
      ...defined({ joinTurnOf: leader }),
      messages,
      ...(runInput.parts === undefined ? {} : { files: filesOf(runInput.parts).map(({ fileId }) => fileId) }),
      events: first.map((event, index): RunEvent => ({ seq: index + 1, at, attempt: 1, ...checkEvent(event) })),
      idempotency,
      queueMax: this.dependencies.limits.queueMax,
      claim: null,
    }
  }
}

/** The row comes from the store with copies of texts that are in memory anyway. It is kept as long as the run is open, so it gets those. */
function withTextsOf({ run }: AcceptInput, { node }: LeaseRequest, row: RunRow): RunRow {
  const { id, owner, family, agentId, conversationId } = run
  return { ...row, id, owner, family, agentId, conversationId, leaseOwner: node }
}

/** The events of a run that was claimed when it was accepted. */
export function eventsOf(input: AcceptInput | undefined): RunEvent[] {
  return [...(input?.events ?? []), ...(input?.start?.events ?? [])]
}

function plannedTurn(
  inputs: readonly AcceptInput[],
  conversation: RunConversation,
  runInput: RunInput,
  at: number,
): PlannedTurn {
  if (runInput.userMessageId === null)
    throw new AppError('internal_error', 'Runs that start together answer a question, and this turn has none.')
  const runIds = inputs.map(({ run }) => run.id)
  return { conversationId: conversation.id, userMessageId: runInput.userMessageId, runIds, at }
}

/** Throws `conversation_busy` if the request cannot wait for the run before it. */
function refuseIfBusy(request: StartRequest, behind: RunRow): void {
  const replaces = replacesAnswers(request)
  if (request.whenBusy !== 'reject' && !replaces) return
  throw new AppError(
    'conversation_busy',
    replaces
      ? 'Another run is under way in this conversation, so there is no last answer to replace. Wait for it or cancel it first.'
      : 'Another run is under way in this conversation. Wait for it, cancel it, or let this request wait in the queue.',
    { details: { runId: behind.id, status: behind.status } },
  )
}

/** The title of a conversation that has none: the beginning of its first message. */
function titleOf(input: string): string | null {
  const line = input.replace(/\s+/g, ' ').trim()
  if (line === '') return null
  const characters = [...line]
  return characters.length > titleCharsMax ? `${characters.slice(0, titleCharsMax - 1).join('')}…` : line
}

function keyOf({ idempotency }: StartRequest): AcceptInput['idempotency'] {
  return idempotency === null
    ? null
    : { key: idempotency.key, route: idempotency.route, fingerprint: fingerprint(idempotency.body) }
}

/** Bodies that differ only in the order of their keys have the same fingerprint. */
export function fingerprint(body: unknown): string {
  return createHash('sha256').update(sortedJson(body)).digest('hex')
}

/** Which messages are replaced is decided now, so no other run may write any before this one. */
function replacesAnswers({ regenerate, questionId }: StartRequest): boolean {
  return regenerate === true || questionId !== undefined
}
