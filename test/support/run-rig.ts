// The run machinery in one process: the real scheduler, loop, writer, bus and store on a database
// of its own, with a clock that the test moves and an engine that the test scripts. Only the
// network is left out.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AgentDefinition } from '../../src/agents/agent-definition.ts'
import { kindOf } from '../../src/app/run-kinds.ts'
import { createProcessBus, type LiveBus } from '../../src/bus/live-bus.ts'
import { createEngineRouter } from '../../src/engines/engine-router.ts'
import type { StepEngine, StepRequest, TurnEngine, Engines } from '../../src/engines/engine.ts'
import type { JsonValue, RunEvent } from '../../src/journal/event.ts'
import { type EventReader, eventPages } from '../../src/journal/event-pages.ts'
import { asUser } from '../../src/kit/caller.ts'
import { FileService } from '../../src/files/file-service.ts'
import { type Ids, ulidIds } from '../../src/kit/ids.ts'
import type { ModelPart } from '../../src/models/model.ts'
import { modelConfigsOf } from '../../src/models/model-configs.ts'
import { readModelTable } from '../../src/models/model-table.ts'
import type { RunDependencies } from '../../src/runs/run-dependencies.ts'
import type { StartResult } from '../../src/runs/run-acceptance.ts'
import { ConfirmationService } from '../../src/runs/confirmation-service.ts'
import { RunService } from '../../src/runs/run-service.ts'
import { Scheduler } from '../../src/runs/scheduler.ts'
import type { StartRequest } from '../../src/runs/start-request.ts'
import type { InteractionRow } from '../../src/stores/interaction-store.ts'
import type { Store } from '../../src/stores/store.ts'
import type { Tool, ToolRegistry } from '../../src/tools/tool.ts'
import { type ManualClock, manualClock } from './manual-clock.ts'
import { onPostgres, openTestStore } from './test-database.ts'

export type Rig = {
  store: Store
  clock: ManualClock
  /** How far the clock by which the store judges leases is ahead of `clock`. */
  leaseClock: { aheadMs: number }
  bus: LiveBus
  dependencies: RunDependencies
  scheduler: Scheduler
  service: RunService
  /** Decisions of a user on a confirmation. */
  confirm(owner: string, id: string, changes: Record<string, JsonValue> | undefined): Promise<InteractionRow>
  reject(owner: string, id: string, reason: string | undefined): Promise<InteractionRow>
  /** Messages of warnings and errors so far. */
  complaints: string[]
  start(request?: Partial<StartRequest>): Promise<StartResult>
  events(runId: string): Promise<RunEvent[]>
  /** Resolves when the run's row fits, without moving time. */
  until(
    runId: string,
    fits: (row: { status: string; endedAt: number | null; lastSeq: number }) => boolean,
  ): Promise<void>
  close(): Promise<void>
}

export type Answer = (request: StepRequest, signal: AbortSignal) => AsyncIterable<ModelPart[]>

export type RigOptions = {
  answer?: Answer
  /** Called when a run is about to be stored that starts at once. */
  prepare?: NonNullable<StepEngine['prepare']>
  tools?: Tool[]
  /** Runs use this engine instead of `answer`, which is its fallback. */
  turnEngine?: TurnEngine
  limits?: Partial<RunDependencies['limits']>
  /** The memory of the agent. */
  memory?: AgentDefinition['card']['memory']
  /** The database. It can be opened again under this path after `close`. */
  file?: string
  /** The database that another process has for its path. */
  databaseUrl?: string | undefined
  clock?: ManualClock
  ids?: Ids
  node?: string
  wrapStore?: (store: Store) => Store
}

export async function openRig(options: RigOptions = {}): Promise<Rig> {
  const folder = options.file === undefined ? mkdtempSync(join(tmpdir(), 'polylog-rig-')) : undefined
  const clock = options.clock ?? manualClock()
  const leaseClock = { aheadMs: 0 }
  const { store: real, settled } = await openTestStore(options.file ?? join(folder as string, 'polylog.db'), {
    time: {
      // PostgreSQL judges leases and deadlines by its own clock, which does not move when the clock of this node is set.
      now: () => (onPostgres ? clock.monotonic() + leaseClock.aheadMs : clock.now()),
      monotonic: () => clock.monotonic() + leaseClock.aheadMs,
    },
    keep: options.file !== undefined,
    databaseUrl: options.databaseUrl,
  })
  clock.waitFor(settled)
  const store = options.wrapStore?.(real) ?? real
  const bus = createProcessBus(clock)
  const complaints: string[] = []
  const complain = (_details: object, message: string) => void complaints.push(message)
  const { answer: step = () => says('Hello.'), prepare = () => {} } = options
  const engine: StepEngine = { kind: 'step', name: 'scripted', step, prepare }
  const own = { ...agent, card: { ...agent.card, memory: options.memory ?? agent.card.memory } }
  const dependencies: RunDependencies = {
    store,
    bus,
    clock,
    ids: options.ids ?? countingIds(),
    models: {
      defaultModel: 'scripted/one',
      resolve: (name) => name ?? 'scripted/one',
      open: () => never(),
      listed: () => [],
      providerTools: () => [],
      list: () => [],
    },
    configs: modelConfigsOf([]),
    modelTable: await readModelTable(null),
    engines: enginesOf(engine, options.turnEngine),
    tools: registryOf(options.tools ?? []),
    files: new FileService({
      store,
      clock,
      ids: ulidIds(() => clock.now()),
      limits: { fileBytes: 1024 * 1024, ownerBytes: 8 * 1024 * 1024 },
    }),
    catalogue: { get: () => own, lastWorking: () => own, list: () => [] },
    kindOf,
    limits: {
      stepsMax: 10,
      runMaxMs: 600_000,
      stallMs: 60_000,
      concurrency: 4,
      nodeConcurrency: options.limits?.concurrency ?? 4,
      unplaceableMs: 60_000,
      // Only tests about leases want them to end: without a started scheduler nothing renews them.
      leaseMs: 86_400_000,
      queueMax: 100,
      confirmationTtlMs: 3_600_000,
      toolsAtOnce: 16,
      ...options.limits,
    },
    log: { info: () => {}, warn: complain, error: complain },
  }
  const scheduler = new Scheduler(dependencies, options.node ?? 'node-1')
  const service = new RunService(dependencies, scheduler)
  const confirmations = new ConfirmationService(dependencies, scheduler)
  let closed = false
  return {
    store,
    clock,
    leaseClock,
    bus,
    dependencies,
    scheduler,
    service,
    confirm: (owner, id, changes) => confirmations.confirm(asUser(owner), id, changes),
    reject: (owner, id, reason) => confirmations.reject(asUser(owner), id, reason),
    complaints,
    start: (request = {}) =>
      service.start({
        owner: 'ada',
        family: 'agent',
        input: 'Hello?',
        earlier: [],
        whenBusy: 'queue',
        idempotency: null,
        ...request,
      }),
    events: (runId) => allEvents(real, runId),
    async until(runId, fits) {
      for (let tries = 0; tries < 20_000; tries += 1) {
        const row = await real.readRun(runId)
        // A row can be read a moment before its commit is acknowledged, the events only afterwards: wait for both.
        if (row !== undefined && fits(row) && (await real.readEvents(runId, row.lastSeq - 1, 1)).events.length > 0)
          return
        await new Promise((resolve) => setTimeout(resolve, 1))
      }
      throw new Error(`the run ${runId} never got there: ${JSON.stringify(await real.readRun(runId))}`)
    },
    async close() {
      if (closed) return
      closed = true
      await scheduler.drain()
      await real.close()
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
    },
  }
}

export async function allEvents(reader: EventReader, runId: string): Promise<RunEvent[]> {
  const events: RunEvent[] = []
  for await (const page of eventPages(reader, runId)) events.push(...page.events)
  return events
}

export async function* says(...texts: string[]): AsyncGenerator<ModelPart[]> {
  for (const text of texts) yield [{ type: 'text', text }]
  yield [{ type: 'finish', reason: 'stop' }]
}

export async function* calls(
  ...wanted: { callId: string; name: string; input?: object; text?: string }[]
): AsyncGenerator<ModelPart[]> {
  for (const { text } of wanted) if (text !== undefined) yield [{ type: 'text', text }]
  yield wanted.map(({ callId, name, input = {} }) => ({
    type: 'tool-call',
    callId,
    name,
    input: input as never,
    rawInput: JSON.stringify(input),
  }))
  yield [{ type: 'finish', reason: 'tool-calls' }]
}

/** Says nothing until it is aborted. */
export async function* silence(signal: AbortSignal): AsyncGenerator<ModelPart[]> {
  yield []
  await new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason as Error)
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
  })
}

export function toolOf(parts: Partial<Tool> & Pick<Tool, 'name' | 'run'>): Tool {
  return {
    description: '',
    effect: 'read',
    confirm: 'never',
    inputSchema: { type: 'object' },
    timeoutMs: 60_000,
    outputCharsMax: 1000,
    describe: () => `Use ${parts.name}`,
    ...parts,
  }
}

function registryOf(tools: Tool[]): ToolRegistry {
  return {
    available: () => tools,
    get: (name) => tools.find((tool) => tool.name === name),
    find: (name, source) =>
      tools.find((tool) => tool.name === name && (source === undefined || tool.source === source)),
    awaitSource: () => Promise.resolve(),
    list: () => [],
    check: () => null,
    close: () => Promise.resolve(),
  }
}

const agent: AgentDefinition = {
  card: {
    id: 'chat_conversation',
    version: '1',
    prompt: { systemTemplate: '' },
    memory: { strategy: 'sliding_window', maxTokens: 10_000 },
    tools: { mode: 'denylist', allowedTools: [] },
  },
  systemTemplate: 'Be kind.',
  userTemplate: '',
  defaults: {},
  operations: [],
}

export function countingIds(prefix = 'id'): Ids {
  let count = 0
  return () => `${prefix}-${String(++count).padStart(6, '0')}`
}

function never(): never {
  throw new Error('models are not asked here')
}

export function enginesOf(local: StepEngine, turn?: TurnEngine): Engines {
  return createEngineRouter({
    local,
    others: turn === undefined ? [] : [turn],
    defaultName: (turn ?? local).name,
    fallback: 'local',
    engineOfAgent: () => undefined,
  })
}
