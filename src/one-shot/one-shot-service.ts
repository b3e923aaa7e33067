// One-shot runs: checks a request, collects what the agent reads, and answers with a stored
// snapshot, a run that is under way, or a new run. Every run is an ordinary run with a
// journal; a client that leaves does not stop it.
//
//   request ─▶ idempotency key known? ─▶ that run
//           ─▶ collect, hash ─▶ snapshot? ─▶ the snapshot (cached)
//                           └─▶ equal run open? ─▶ that run
//                                             └─▶ a new run ─▶ its end writes the snapshot

import type { AgentOperation, AgentReads } from '../agents/agent-definition.ts'
import { modelsOfAgent } from '../agents/agent-model.ts'
import type { Catalogue } from '../agents/catalogue.ts'
import { AppError } from '../errors/app-error.ts'
import type { OneShotSpec, RunSpec } from '../journal/event.ts'
import { readRunState } from '../journal/event-pages.ts'
import type { Caller } from '../kit/caller.ts'
import type { Clock } from '../kit/clock.ts'
import { defined } from '../kit/defined.ts'
import type { Ids } from '../kit/ids.ts'
import { sortedJson } from '../kit/sorted-json.ts'
import type { Models } from '../models/model.ts'
import { chosenProviderTools } from '../runs/chosen-provider-tools.ts'
import { findConversation } from '../runs/conversation-names.ts'
import { fingerprint } from '../runs/run-acceptance.ts'
import type { RunService } from '../runs/run-service.ts'
import type { ConversationStore } from '../stores/conversation-store.ts'
import type { RunRow, RunStore } from '../stores/run-store.ts'
import type { SnapshotKey, SnapshotRow, SnapshotStore } from '../stores/snapshot-store.ts'
import { checkedInput, invalidInput, operationNamed, sourceHashOf } from './one-shot-input.ts'
import { type OneShotOutcome, outcomeOf, runEndError, scopeNameOf } from './one-shot-outcome.ts'
import { promptOf } from './one-shot-prompt.ts'
import { dataOf, resultOf } from './one-shot-result.ts'
import type { Collected, DataSource, JsonObject } from './sources/source.ts'

export type OneShotDependencies = {
  store: RunStore & SnapshotStore & ConversationStore
  runs: RunService
  catalogue: Catalogue
  models: Models
  sources: Readonly<Record<AgentReads, DataSource>>
  clock: Clock
  ids: Ids
  engineName: string
}

export type OneShotRequest = {
  agentId: string
  operation: string | null
  input: JsonObject
  /** False: no snapshot is read and none is written. */
  useCache: boolean
  /** True: no snapshot is read; the result becomes a new one. */
  forceRefresh: boolean
}

export type OneShotIdempotency = { key: string; route: string; body: unknown } | null

/** How a request is answered. `cached`: with the result of an earlier request. `started`: this request started the run. */
export type OneShotStart = {
  /** Undefined if a snapshot answers the request and the run that produced it has been removed. */
  run: RunRow | undefined
  snapshot: SnapshotRow | undefined
  cached: boolean
  started: boolean
}

const family = 'one-shot'

/** The language of a result if the request names none. */
const defaultLanguage = 'zh'

/** The agent whose result becomes the title and the summary of the conversation. */
const titleAgentId = 'title_summary'

const startTriesMax = 8

type Plan = {
  owner: string
  agentId: string
  operation: AgentOperation
  input: JsonObject
  language: string
  model: string
  fallbackModels: string[] | undefined
  key: SnapshotKey
  scopeExists: boolean
  collected: Collected
}

export class OneShotService {
  private readonly dependencies: OneShotDependencies

  constructor(dependencies: OneShotDependencies) {
    this.dependencies = dependencies
  }

  /**
   * Resolves with the result when the run has ended. If `signal` is aborted before, the run goes on and this throws
   * `shutting_down`.
   */
  async run(
    caller: Caller,
    request: OneShotRequest,
    idempotency: OneShotIdempotency,
    signal?: AbortSignal,
  ): Promise<OneShotOutcome> {
    return await this.outcome(await this.start(caller, request, idempotency), signal)
  }

  /** Throws if the agent does not exist or has no such operation. */
  checkOperation(agentId: string, operation: string | null): void {
    operationNamed(this.dependencies.catalogue.get(agentId), operation)
  }

  /** The run is on disk when this resolves, if one is needed. */
  async start(caller: Caller, request: OneShotRequest, idempotency: OneShotIdempotency): Promise<OneShotStart> {
    const known = await this.knownRequest(caller.userId, idempotency)
    if (known !== undefined) return known
    const plan = await this.plan(caller, request)
    const stored = plan.operation.cache !== null && request.useCache
    const mayHit = stored && !request.forceRefresh
    for (let attempt = 1; ; attempt++) {
      const hit = mayHit ? await this.hit(plan, idempotency) : undefined
      if (hit !== undefined) return hit
      try {
        return await this.accept(plan, { stored, mayHit }, idempotency)
      } catch (error) {
        // An equal run ended after we looked for its snapshot: look again.
        if (!(error instanceof AppError) || error.code !== 'accept_stale' || attempt >= startTriesMax) throw error
      }
    }
  }

  /** Waits for the end of the run, if there is one to wait for. Throws the error of a run that did not succeed. */
  async outcome({ run, snapshot, cached }: OneShotStart, signal?: AbortSignal): Promise<OneShotOutcome> {
    if (snapshot !== undefined) return outcomeOf(snapshot, cached)
    if (run === undefined) throw new AppError('internal_error', 'A one-shot request has neither a run nor a snapshot.')
    const ended = await this.dependencies.runs.settled(run, defined({ signal }))
    if (ended.status === 'succeeded') return await this.result(ended, cached)
    throw runEndError(ended)
  }

  /** The answer to a request that was sent before with the same idempotency key. */
  private async knownRequest(owner: string, idempotency: OneShotIdempotency): Promise<OneShotStart | undefined> {
    if (idempotency === null) return undefined
    const { store, runs } = this.dependencies
    const wanted = { key: idempotency.key, route: idempotency.route, fingerprint: fingerprint(idempotency.body) }
    const run = await runs.findStarted(owner, wanted)
    if (run === undefined) return undefined
    const found = await store.findIdempotent(owner, wanted.route, wanted.key)
    return { run, snapshot: undefined, cached: found?.reused === true, started: false }
  }

  private async plan(caller: Caller, request: OneShotRequest): Promise<Plan> {
    const { catalogue, models, sources, clock } = this.dependencies
    const { agentId } = request
    const definition = catalogue.get(agentId)
    const operation = operationNamed(definition, request.operation)
    const owner = caller.userId
    // The user is the caller, whatever the input claims.
    const given =
      caller.named || Object.hasOwn(request.input, 'userId') ? { ...request.input, userId: owner } : request.input
    const input = checkedInput(operation.inputSchema, given)
    const language = languageOf(input, operation)
    const scope = await this.scopeOf(owner, operation, input)
    const collected = await sources[operation.reads].collect(caller, input, clock.now(), language, operation.id)
    const { model, fallbackModels } = modelsOfAgent(definition.card, models)
    const key: SnapshotKey = {
      owner,
      agentId,
      operation: operation.id,
      scopeType: operation.scope,
      scopeId: scope.id,
      sourceHash: sourceHashOf(agentId, operation, input, language, collected.hashed),
      promptVersion: operation.promptVersion,
      model,
    }
    return {
      owner,
      agentId,
      operation,
      input,
      language,
      model,
      fallbackModels,
      key,
      scopeExists: scope.exists,
      collected,
    }
  }

  /** A conversation need not exist, because the messages may be in the input; then its name is the id of the scope. */
  private async scopeOf(
    owner: string,
    { scope }: AgentOperation,
    input: JsonObject,
  ): Promise<{ id: string | null; exists: boolean }> {
    switch (scope) {
      case 'conversation': {
        const name = scopeField(input, 'conversationId')
        const row = await findConversation(this.dependencies.store, owner, name)
        return { id: row?.id ?? name, exists: row !== undefined }
      }
      case 'contact':
        return { id: scopeField(input, 'contactId'), exists: true }
      case 'user':
        return { id: owner, exists: false }
      case 'global':
        return { id: null, exists: false }
    }
  }

  private async hit({ key, owner }: Plan, idempotency: OneShotIdempotency): Promise<OneShotStart | undefined> {
    const { store, clock } = this.dependencies
    const snapshot = await store.findSnapshot(key, clock.now())
    if (snapshot === undefined) return undefined
    if (idempotency !== null) {
      const { route, key: name, body } = idempotency
      const request = { owner, route, key: name, fingerprint: fingerprint(body), runId: snapshot.runId }
      await store.bindIdempotencyKey(request)
    }
    return { run: await store.readRun(snapshot.runId), snapshot, cached: true, started: false }
  }

  private async accept(
    plan: Plan,
    { stored, mayHit }: { stored: boolean; mayHit: boolean },
    idempotency: OneShotIdempotency,
  ): Promise<OneShotStart> {
    const { runs, clock } = this.dependencies
    const { system, user } = promptOf(plan.operation, { ...plan, data: plan.collected.data })
    const { run, outcome } = await runs.startStandalone({
      owner: plan.owner,
      family,
      input: user,
      spec: this.specOf(plan, system, stored),
      held: null,
      createdAt: clock.now(),
      idempotency,
      // A result that is not stored is not shared either: its caller asked for one of its own.
      ...(stored ? { share: { key: shareKeyOf(plan.key), ...(mayHit ? { unlessSnapshot: plan.key } : {}) } } : {}),
    })
    return { run, snapshot: undefined, cached: false, started: outcome === 'accepted' }
  }

  private specOf(plan: Plan, systemPrompt: string, stored: boolean): RunSpec {
    const { agentId, operation, key, collected, scopeExists, language, model, fallbackModels } = plan
    const ttlMs = operation.cache?.ttlMs ?? null
    const describes = agentId === titleAgentId && key.scopeType === 'conversation' && scopeExists
    const oneShot: OneShotSpec = {
      operation: operation.id,
      promptVersion: operation.promptVersion,
      language,
      scope: { type: key.scopeType, id: key.scopeId, mustExist: scopeExists },
      sourceHash: key.sourceHash,
      snapshot: stored ? { id: this.dependencies.ids(), ttlMs } : null,
      citationsRequired: operation.citations === 'required',
      ...defined({
        outputSchema: (operation.outputSchema ?? undefined) as OneShotSpec['outputSchema'],
        citable: operation.reads === 'input' ? undefined : collected.citable,
        fields: collected.fields,
        computedAnswer: collected.computedAnswer,
        describes: describes ? (key.scopeId ?? undefined) : undefined,
      }),
    }
    const { card } = this.dependencies.catalogue.get(agentId)
    const providerTools = chosenProviderTools(undefined, {
      offered: card.providerTools,
      card,
      chain: [model, ...(fallbackModels ?? [])],
      models: this.dependencies.models,
    })
    return {
      agentId,
      engine: this.dependencies.engineName,
      model,
      systemPrompt,
      consent: 'refuse',
      oneShot,
      ...defined({ fallbackModels, providerOptions: card.providerOptions, providerTools }),
    }
  }

  private async result(run: RunRow, cached: boolean): Promise<OneShotOutcome> {
    const { store } = this.dependencies
    const snapshot = await store.findSnapshotOfRun(run.id)
    if (snapshot !== undefined) return outcomeOf(snapshot, cached)
    // Not stored, or removed since: the journal has the answer.
    const { accepted, ended } = await readRunState(store, run.id)
    const oneShot = accepted?.spec.oneShot
    if (oneShot === undefined || ended?.output === undefined)
      throw new AppError('run_not_found', 'The result of this run is no longer kept. Run the agent again.')
    const facts = {
      agentId: run.agentId,
      operation: oneShot.operation,
      sourceHash: oneShot.sourceHash,
      generatedAt: run.endedAt ?? run.createdAt,
      cached,
    }
    const scopeName = scopeNameOf(oneShot.scope.type, oneShot.scope.id)
    const data = dataOf(resultOf(oneShot, ended.output), { ...facts, id: run.id, scopeName })
    return {
      runId: run.id,
      agentId: facts.agentId,
      operation: facts.operation,
      cached,
      snapshotId: null,
      generatedAt: facts.generatedAt,
      data,
    }
  }
}

function scopeField(input: JsonObject, name: string): string {
  const value = input[name]
  if (typeof value !== 'string' || value.trim() === '') throw invalidInput(`input.${name}`, 'is missing')
  return value
}

function languageOf(input: JsonObject, { defaults }: AgentOperation): string {
  const wanted = [input['language'], defaults['language']].find((value) => typeof value === 'string' && value !== '')
  return typeof wanted === 'string' ? wanted : defaultLanguage
}

function shareKeyOf(key: SnapshotKey): string {
  return fingerprint(sortedJson(key))
}
