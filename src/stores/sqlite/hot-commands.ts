// Which commands can be acknowledged from the log, before the database has executed them: those whose
// result is certain. They are the acceptance of a run in a new conversation, if its name is known to be
// free, or in one that is known to have no open run, and the appends of a run whose epoch and last seq
// the main thread knows. Everything else is executed first.
//
// The knowledge is exact, because only one process uses the database, all its commands take the same
// queue, and nothing but a claim changes the epoch of a run that has not ended.

import type { RunRow } from '../run-store.ts'
import type { CommandName, Commands } from './commands.ts'
import { type ChangedFacts, isIdle, nameIsFree } from './known-facts.ts'
import { releasesRun } from './run-change.ts'

export type HotAccept = {
  readonly type: 'accept'
  readonly run: RunRow
  readonly slots: number | undefined
  /** The text of its tail row. */
  readonly body: string
  /** It adds messages that are part of the run's history. */
  readonly addsHistory: boolean
}

export type KnownAppend = {
  readonly type: 'append'
  readonly runId: string
  readonly epoch: number
  readonly afterSeq: number
  readonly lastSeq: number
  /** Nothing may be appended after it. */
  readonly releases: boolean
  /** The text of its tail row. Undefined if the database has to execute the append before it is acknowledged. */
  readonly body: string | undefined
}

/** What a command does to the runs that the main thread knows. */
export type RunEffect = HotAccept | KnownAppend

export function runIdOf(effect: RunEffect): string {
  return effect.type === 'append' ? effect.runId : effect.run.id
}

type Append = Commands['append']['takes']
type Accept = Commands['accept']['takes']

/** Undefined if the command is no append, and its result depends on more than the known runs and facts. */
export function runEffect<Name extends CommandName>(
  name: Name,
  input: Commands[Name]['takes'],
  holds: (fact: string) => boolean,
): RunEffect | undefined {
  if (name === 'append') return appendEffect(input as Append)
  if (name === 'accept') return acceptEffect(input as Accept, holds)
  return undefined
}

/** Commands that change neither the epoch nor the last seq of any run. All others may. */
const changingNoRun: ReadonlySet<string> = new Set<CommandName>([
  'renewLeases',
  'requestCancel',
  'bindIdempotencyKey',
  'putBlob',
  'decide',
  'saveFileVersion',
  'saveTodos',
  'beatNode',
  'recordKeyUse',
  'putFileChunk',
  'putFile',
  'check',
])

export function changesNoRun(name: CommandName): boolean {
  return changingNoRun.has(name)
}

/** Commands that add no run, and neither add nor remove a conversation or a name. All others may change any fact, unless `changedFacts` knows better. */
const changingNothing: ReadonlySet<CommandName> = new Set<CommandName>([
  'append',
  'claim',
  'renewLeases',
  'requestCancel',
  'bindIdempotencyKey',
  'putBlob',
  'putFileChunk',
  'putFile',
  'beatNode',
  'recordKeyUse',
  'check',
])

/** The facts that may not be true after the command; undefined if it leaves all of them. */
export function changedFacts<Name extends CommandName>(
  name: Name,
  input: Commands[Name]['takes'],
): ChangedFacts | undefined {
  if (changingNothing.has(name)) return undefined
  if (name === 'accept') return changedByAccept(input as Accept)
  if (name !== 'createConversation') return 'any'
  // Its id is new, so nothing is known about the conversation.
  const { owner, name: given } = input as Commands['createConversation']['takes']
  return given === undefined ? undefined : [nameIsFree(owner, given)]
}

function changedByAccept({ run, conversation }: Accept): string[] | undefined {
  if (run.conversationId === null) return undefined
  const facts = givenNames(conversation).map((name) => nameIsFree(run.owner, name))
  facts.push(isIdle(run.owner, run.conversationId))
  return facts
}

/** The names that the command may give to its conversation. */
function givenNames(conversation: Accept['conversation']): string[] {
  return [conversation?.name, conversation?.alias].filter((given) => given != null)
}

export const nameTopic = (owner: string, name: string): string => JSON.stringify([owner, name])

/** Everything that belongs to a user. */
export const ownerTopic = (owner: string): string => JSON.stringify([owner])

/**
 * What the rows are about that the command changes: its run, the conversation and the owner of the run, and the names that it gives. Queries
 * that are about something else need not wait for it.
 */
export function topicsOf<Name extends CommandName>(
  name: Name,
  input: Commands[Name]['takes'],
  known: KnownRuns,
): string[] {
  if (name === 'accept') {
    const { run, conversation } = input as Accept
    const topics = givenNames(conversation).map((given) => nameTopic(run.owner, given))
    topics.push(run.id, ownerTopic(run.owner))
    if (run.conversationId !== null) topics.push(run.conversationId)
    return topics
  }
  if (name !== 'append') return [everyTopic]
  const { runId, messages = [] } = input as Append
  const run = known.get(runId)
  if (run === undefined) return [everyTopic]
  const { conversationId, owner } = run
  const topics = [runId, ownerTopic(owner)]
  if (conversationId !== null) topics.push(conversationId)
  for (const message of messages) if (message.conversationId !== conversationId) topics.push(message.conversationId)
  return topics
}

/** Stands for all topics. */
export const everyTopic = '*'

/** Any other field of an append refers to rows that may be missing, or that others change too. */
const hotFields: ReadonlySet<string> = new Set([
  'runId',
  'epoch',
  'afterSeq',
  'journal',
  'run',
  'messages',
  'messageStates',
  'usage',
  'touchConversationAt',
])

function appendEffect(input: Append): KnownAppend {
  const { runId, epoch, afterSeq, journal, run } = input
  const lastSeq = journal?.lastSeq ?? afterSeq
  const body = isHot(input) ? journal?.body : undefined
  return { type: 'append', runId, epoch, afterSeq, lastSeq, body, releases: releasesRun(run) }
}

function isHot(input: Append): boolean {
  for (const name in input) if (!hotFields.has(name) && input[name as keyof Append] !== undefined) return false
  return input.messages?.some(({ parts }) => parts !== undefined) !== true
}

function acceptEffect(input: Accept, holds: (fact: string) => boolean): HotAccept | undefined {
  const { run, claim, journal, start, messages, files = [] } = input
  if (claim === null || journal === null || input.idempotency !== null || input.expectBehind !== null) return undefined
  if (input.reuse !== undefined || input.share !== undefined || input.held !== undefined) return undefined
  if (input.joinTurnOf !== undefined || input.blobs !== undefined) return undefined
  if (files.length > 0 || messages.some(({ parts }) => parts !== undefined)) return undefined
  // Runs that it could cancel are open runs of the conversation, and there are none.
  if (!isConversationCertain(input, holds)) return undefined
  return {
    type: 'accept',
    slots: claim.slots,
    body: start === undefined ? journal.body : `${journal.body}\n${start.body}`,
    run: acceptedRow(input, claim),
    addsHistory: messages.some(({ runId }) => runId !== run.id),
  }
}

/** Whether the conversation of the run is known to be as the command expects it, without open runs. */
function isConversationCertain({ run, conversation }: Accept, holds: (fact: string) => boolean): boolean {
  const { owner, conversationId } = run
  if (conversation === null || conversationId === null) return conversation === null && conversationId === null
  const { expect, name, alias } = conversation
  if (alias !== undefined) return false
  if (expect === 'present') return name === null && holds(isIdle(owner, conversationId))
  // The id of a conversation that is not there yet was just made.
  return name === null || holds(nameIsFree(owner, name))
}

function acceptedRow({ run, attempt, journal, start }: Accept, claim: NonNullable<Accept['claim']>): RunRow {
  return {
    id: run.id,
    owner: run.owner,
    family: run.family,
    agentId: run.agentId,
    conversationId: run.conversationId,
    skillId: run.skillId ?? null,
    status: start === undefined ? 'queued' : 'running',
    attempt,
    epoch: 1,
    leaseOwner: claim.node,
    leaseUntil: claim.leaseUntil,
    wakeAt: null,
    lastSeq: start?.lastSeq ?? journal?.lastSeq ?? 0,
    cancel: null,
    createdAt: run.createdAt,
    startedAt: start?.at ?? null,
    endedAt: null,
    error: null,
    engine: start?.engine ?? null,
    usage: null,
    needs: run.needs ?? [],
  }
}

type KnownRun = {
  readonly owner: string
  epoch: number
  lastSeq: number
  readonly conversationId: string | null
  /** The database has all messages before the run, also if it does not have the run yet. */
  readonly isHistoryStored: boolean
}

/** The runs that are claimed and have not ended, as the main thread knows them. */
export class KnownRuns {
  readonly #runs = new Map<string, KnownRun>()
  /** Runs that are no longer known, and may still have a slot. */
  readonly #forgotten = new Set<string>()

  /** Whether the command is certain to succeed. If so, it counts as executed. */
  foresee(effect: RunEffect): boolean {
    if (effect.type === 'accept') {
      const { run, slots, addsHistory } = effect
      if (slots !== undefined && this.#runs.size + this.#forgotten.size >= slots) return false
      const { id, owner, epoch, lastSeq, conversationId } = run
      // The conversation was read before, so nothing about it is in the log but what this command adds.
      this.#runs.set(id, { owner, epoch, lastSeq, conversationId, isHistoryStored: !addsHistory })
      return true
    }
    if (!this.isCertain(effect)) return false
    this.executed(effect)
    return true
  }

  get(runId: string): Readonly<KnownRun> | undefined {
    return this.#runs.get(runId)
  }

  /** Whether the append is certain to succeed. */
  isCertain({ runId, epoch, afterSeq, body }: KnownAppend): boolean {
    const known = this.#runs.get(runId)
    return body !== undefined && known?.epoch === epoch && known.lastSeq === afterSeq
  }

  /** Notes what the database did to the runs. A command that claims runs returns their rows. */
  learn(effect: RunEffect | undefined, result: unknown): void {
    if (effect?.type === 'append') this.executed(effect)
    for (const one of Array.isArray(result) ? (result as unknown[]) : [result]) {
      if (typeof one !== 'object' || one === null) continue
      const row: unknown = 'run' in one ? one.run : one
      if (isRunRow(row)) this.read(row)
    }
  }

  /** The database has executed an append, or is certain to. */
  private executed({ runId, lastSeq, releases }: KnownAppend): void {
    if (releases) {
      this.#runs.delete(runId)
      this.#forgotten.delete(runId)
      return
    }
    const known = this.#runs.get(runId)
    if (known !== undefined) known.lastSeq = lastSeq
  }

  /** The database has returned the row of a run. */
  private read({ id, owner, epoch, lastSeq, leaseOwner, conversationId }: RunRow): void {
    this.#forgotten.delete(id)
    if (leaseOwner === null) this.#runs.delete(id)
    else {
      // Appends that the log has may have followed the command.
      const known = this.#runs.get(id)
      const newest = known?.epoch === epoch ? Math.max(known.lastSeq, lastSeq) : lastSeq
      // The command that returned it was executed after everything before the run.
      this.#runs.set(id, { owner, epoch, lastSeq: newest, conversationId, isHistoryStored: true })
    }
  }

  /** The database did not execute a command of the run: it decides about the run until that is claimed again. */
  forget(effect: RunEffect): void {
    const runId = runIdOf(effect)
    if (this.#runs.delete(runId)) this.#forgotten.add(runId)
  }
}

function isRunRow(value: unknown): value is RunRow {
  return typeof value === 'object' && value !== null && 'leaseOwner' in value && 'epoch' in value
}
