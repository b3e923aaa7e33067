// Builds the server from the configuration. The only file that knows every concrete class.

import { readFileSync } from 'node:fs'
import { readCatalogue } from '../agents/catalogue.ts'
import type { AgentsFound } from '../agents/read-agents.ts'
import { watchAgents } from '../agents/watch-agents.ts'
import type { BusMeter, ClusterBus } from '../bus/cluster-bus.ts'
import { createProcessBus, type LiveBus } from '../bus/live-bus.ts'
import { RemoteReader } from '../bus/remote-reader.ts'
import { restoredRun } from '../bus/restored-run.ts'
import { ComparisonService } from '../comparisons/comparison-service.ts'
import { ArchiveService } from '../contacts/archive-service.ts'
import { BriefService } from '../contacts/brief-service.ts'
import { ContactFiles } from '../contacts/contact-files.ts'
import { ContactService } from '../contacts/contact-service.ts'
import { ConversationService } from '../conversations/conversation-service.ts'
import { FeedHints } from '../feed/feed-hints.ts'
import { FeedService } from '../feed/feed-service.ts'
import { withFeedHints } from '../feed/hinting-store.ts'
import { FeedbackService } from '../feedback/feedback-service.ts'
import { AllowedHosts } from '../files/allowed-hosts.ts'
import { FileService } from '../files/file-service.ts'
import { JobService } from '../jobs/job-service.ts'
import { OneShotService } from '../one-shot/one-shot-service.ts'
import { SnapshotService } from '../one-shot/snapshot-service.ts'
import { contactBriefSource } from '../one-shot/sources/contact-brief.ts'
import { contactSource } from '../one-shot/sources/contact.ts'
import { conversationSource } from '../one-shot/sources/conversation.ts'
import { inputSource } from '../one-shot/sources/input-source.ts'
import { networkSource } from '../one-shot/sources/network.ts'
import { createBrowserGuard } from '../http/browser-guard.ts'
import { createAuthenticator } from '../http/caller.ts'
import { createMetrics } from '../http/metrics.ts'
import { LoadSeries } from '../http/operations/load-series.ts'
import { buildServer } from '../http/server.ts'
import { SharedRates } from './shared-rates.ts'
import { Streams } from '../http/stream-reply.ts'
import { type Clock, systemClock } from '../kit/clock.ts'
import { ulidIds } from '../kit/ids.ts'
import type { RunDependencies } from '../runs/run-dependencies.ts'
import { ClientToolService } from '../runs/client-tool-service.ts'
import { ConfirmationService } from '../runs/confirmation-service.ts'
import { InteractionList } from '../runs/interaction-list.ts'
import { QueuedRuns } from '../runs/queued-runs.ts'
import { RunOverview } from '../runs/run-overview.ts'
import { RunService } from '../runs/run-service.ts'
import { Scheduler } from '../runs/scheduler.ts'
import { RunTransfer } from '../runs/run-transfer.ts'
import { UsageService } from '../runs/usage-service.ts'
import { startRetention } from '../runs/retention.ts'
import { readSkills } from '../skills/skill-registry.ts'
import type { Store } from '../stores/store.ts'
import { createWorkspaces } from '../tools/workspace/workspaces.ts'
import { sessionDirectories } from '../tools/tool.ts'
import type { Config } from './config.ts'
import type { RunHooks } from './define-config.ts'
import { type App, createLifecycle } from './lifecycle.ts'
import { listenError } from './listen-error.ts'
import type { Log } from './log.ts'
import { openBus } from './open-bus.ts'
import { commitMeterOf, withCommitMeter } from './metered-store.ts'
import { nodePlacement } from './node-placement.ts'
import { openEngines } from './open-engines.ts'
import { openModels } from './open-models.ts'
import { openStore } from './open-store.ts'
import { openTracer } from './open-telemetry.ts'
import { openTools } from './open-tools.ts'
import { RunHookCaller } from './run-hooks.ts'
import { Readiness } from './readiness.ts'
import { remoteAgentProblem } from './remote-agents.ts'
import { kindOf } from './run-kinds.ts'
import { refuseWithoutLogins, StoredKeys } from './stored-keys.ts'
import { startWatchdog } from './watchdog.ts'

export type ComposedApp = App & { readonly defaultModel: string }

export const version = (
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
).version

/** A reader of the feed looks this often by itself, for changes that other nodes made and for hints that were lost. */
const feedPollMs = 5000

export type ComposeOptions = {
  /** The variables for `${NAME}` in the configuration of MCP servers, and for the headers of remote agents. */
  environment: Record<string, string | undefined>
  /** Tools in code, not yet checked. */
  tools?: readonly unknown[]
  hooks?: RunHooks
  /** A person sees the start screen, which says which model answers. */
  hasStartScreen?: boolean
  /** The process does nothing else, so a watchdog may watch it and end it when it freezes. */
  ownsProcess?: boolean
  clock?: Clock
}

export async function compose(config: Config, log: Log, options: ComposeOptions): Promise<ComposedApp> {
  /** The parts to close if a later part cannot be created. */
  const opened: Closable[] = []
  try {
    return await composeParts(config, log, options, opened)
  } catch (error) {
    for (const part of opened.toReversed())
      await part.close().catch((failure: unknown) => log.error({ err: failure }, 'a part could not be closed'))
    throw error
  }
}

type Closable = { close(): Promise<void> }

async function composeParts(
  config: Config,
  log: Log,
  {
    environment,
    tools: codeTools = [],
    hooks = {},
    ownsProcess = false,
    hasStartScreen = false,
    clock = systemClock,
  }: ComposeOptions,
  opened: Closable[],
): Promise<ComposedApp> {
  const ids = ulidIds(() => clock.now())
  const catalogue = await readCatalogue(config.agentsDirs, (card) => remoteAgentProblem(card, environment))
  warnOfAgents(catalogue.found, log)
  const agentsWatch = config.agentsReload
    ? watchAgents({
        catalogue,
        clock,
        onReload(found) {
          log.info({ agents: found.listings.length }, 'the agent definitions were read again')
          warnOfAgents(found, log)
        },
        onError: (error) => log.warn({ err: error }, 'changes of agent definitions may not be noticed'),
      })
    : undefined
  opened.push({ close: async () => agentsWatch?.close() })
  const { models, configs, modelTable } = await openModels(config, { environment, ids, clock })
  if (models.defaultModel === 'demo/demo' && !hasStartScreen) {
    log.warn(
      'The built-in demo model answers. Set OPENAI_API_KEY (or another provider’s key), or POLYLOG_MODEL=provider/model, for a real one.',
    )
  }
  const skills = await readSkills(config.skillsDir)
  for (const { id, error } of skills.list())
    if (error !== null) log.warn({ skill: id, reason: error }, 'a skill cannot be used')
  const feedHints = new FeedHints()
  const load = new LoadSeries()
  const metrics = createMetrics(systemClock)
  opened.push({ close: async () => metrics.close() })
  const commitMeter = commitMeterOf(load, metrics.operations)
  const store = withFeedHints(withCommitMeter(await openStore(config, log, clock), commitMeter, clock), (owner) =>
    feedHints.changed(owner),
  )
  opened.push(store)
  const watchdog = ownsProcess
    ? startWatchdog({
        folder: config.dataDir,
        life: ids(),
        log,
        freezeMaxMs: config.freezeMaxMs,
        onBlock: (activity, ms) =>
          metrics.loopBlocked(activity === null ? 'unknown' : 'run' in activity ? 'run' : activity.route, ms / 1000),
      })
    : undefined
  opened.push({ close: async () => await watchdog?.stop() })
  const workspaces = createWorkspaces(config.workspaceDir)
  const files = new FileService({
    store,
    clock,
    ids,
    fetchFrom: new AllowedHosts(config.fetchHosts),
    limits: { fileBytes: config.limits.uploadBytes, ownerBytes: config.limits.ownerFileBytes },
  })
  const tools = await openTools(config, { store, skills, log, clock, ids, workspaces, environment, codeTools })
  opened.push(tools)
  metrics.countOpenRunsWith(() => store.countRuns())
  const node = ids()
  const cluster = await openBus(config, { node, clock, log, meter: metrics.bus })
  if (cluster !== undefined) {
    opened.push(cluster)
    feedHints.connect(cluster)
  }
  const bus = openLiveBus(cluster, store, clock, metrics.bus)
  const engines = await openEngines(config, {
    catalogue,
    models,
    environment,
    clock,
    ids,
    version,
    onRetry: (model) => metrics.work.modelRetried(model),
  })
  metrics.reportEnginesWith(engines.states)
  const hookCaller = new RunHookCaller(hooks, { store, clock, log })
  const telemetry = config.telemetry === null ? undefined : await openTracer(config.telemetry, version)
  if (telemetry !== undefined) opened.push(telemetry)
  const placement = nodePlacement(config, {
    catalogue,
    tools,
    skills,
    engines: engines.otherNames,
  })
  const dependencies: RunDependencies = {
    store,
    bus,
    ...(cluster === undefined ? {} : { cluster }),
    databaseMayCrash: config.databaseUrl !== null,
    clock,
    ids,
    models,
    configs,
    modelTable,
    engines: engines.router,
    tools,
    files,
    catalogue,
    kindOf,
    limits: config.limits,
    log,
    countEvents: (count) => metrics.eventsStored(count),
    commitMeter,
    meter: metrics.work,
    leaseMeter: metrics.leases,
    ...(placement === undefined ? {} : { placement }),
    ...(telemetry === undefined ? {} : { tracer: telemetry.tracer }),
    ...(watchdog === undefined ? {} : { deaths: watchdog.deaths }),
    async runEnded({ runId, family, engine: engineName, status }) {
      metrics.runEnded({ family, engine: engineName, status })
      await comparisons.runEnded(family, runId)
      hookCaller.runEnded(runId)
    },
  }
  const scheduler = new Scheduler(dependencies, node, { name: config.nodeName, version })
  const readiness = new Readiness({ store, scheduler, clock })
  const runs = new RunService(dependencies, scheduler)
  const confirmations = new ConfirmationService(dependencies, scheduler)
  const clientTools = new ClientToolService(dependencies, scheduler)
  const conversations = new ConversationService({
    store,
    runs,
    clock,
    ids,
    beforeDelete: (id) => workspaces.remove(`${sessionDirectories}/${id}`),
  })
  const contacts = new ContactService({ store, conversations, clock, ids })
  const feedback = new FeedbackService({ store, conversations, clock })
  const jobs = new JobService({
    store,
    runs,
    skills,
    clock,
    models,
    catalogue,
    engineName: engines.localName,
    uploadTtlMs: config.limits.uploadTtlMs,
  })
  const oneShot = new OneShotService({
    store,
    runs,
    catalogue,
    models,
    sources: {
      input: inputSource,
      conversation: conversationSource(store),
      contact: contactSource(store),
      contact_brief: contactBriefSource(store),
      network: networkSource(store),
    },
    clock,
    ids,
    engineName: engines.localName,
  })
  const snapshots = new SnapshotService(store)
  const comparisons = new ComparisonService({ store, runs, configs, clock, ids, random: Math.random, log })
  const feed = new FeedService({ store, hints: feedHints, clock, pollMs: feedPollMs })
  const streams = new Streams({
    store,
    bus,
    clock,
    metrics,
    isUndecided: (runId) => comparisons.isUndecided(runId),
    keepAliveIntervals: config,
  })
  opened.push({ close: async () => load.stop() })
  load.start({ clock, streams: () => streams.size, runs: () => store.countRuns() })
  const runOverview = new RunOverview(store, clock, node)
  metrics.operations.reportWith({
    openRuns: (limit) => runOverview.openRuns(limit),
    nodes: () => runOverview.nodes(),
    streams: () => streams.list(),
    lastSeqs: (runIds) => runOverview.lastSeqs(runIds),
    ready: () => readiness.check(),
    connections: store.connections,
  })
  const { retentionMs, fileTtlMs } = config.limits
  const storedKeys = new StoredKeys({
    store,
    clock,
    onError: (error) => log.warn({ err: error }, 'the last use of API keys could not be recorded'),
  })
  await refuseWithoutLogins(config, store)
  const sharedRates = openSharedRates(store, config, log, clock)
  if (sharedRates !== undefined) opened.push({ close: async () => sharedRates.close() })
  const retention = startRetention({
    store,
    clock,
    log,
    node: ids(),
    retentionMs,
    fileTtlMs,
    removed: (kind, count) => metrics.retention.removed(kind, count),
  })
  metrics.retention.reportOldestEndWith(() => store.oldestEnd())
  const server = await buildServer({
    services: {
      journal: {
        readEvents: store.readEvents,
        restored: (run, seq) => restoredRun({ store, clock, leaseMs: config.limits.leaseMs }, run, seq),
      },
      health: store,
      readiness,
      runs,
      operations: runOverview,
      load,
      interactions: new InteractionList(store),
      queuedRuns: new QueuedRuns(dependencies, runs),
      confirmations,
      clientTools,
      conversations,
      contacts,
      contactFiles: new ContactFiles({ store, clock, ids }),
      archives: new ArchiveService({ store, conversations, agents: oneShot, clock, ids }),
      briefs: new BriefService({ store, contacts, agents: oneShot }),
      feed,
      feedback,
      files,
      jobs,
      oneShot,
      snapshots,
      skills,
      comparisons,
      streams,
      tools,
      workspaces,
      models,
      configs,
      modelTable,
      usage: new UsageService(store, clock),
      transfer: new RunTransfer({
        store,
        isUndecided: (runId) => comparisons.isUndecided(runId),
        limits: { documentChars: config.limits.uploadBytes, ownerFileBytes: config.limits.ownerFileBytes },
      }),
      catalogue,
      metrics,
      engineStates: engines.states,
      clock,
      ids,
      settings: {
        authMode: config.auth.mode,
        admins: config.admins,
        onDisconnect: config.onDisconnect,
        uploadBytes: config.limits.uploadBytes,
        clientTimeoutMs: config.clientTimeoutMs,
        workspaceDir: config.workspaceDir,
        sharedDirs: config.sharedDirs,
      },
    },
    authenticator: await createAuthenticator(config.auth, { clock, storedKeys }),
    log,
    version,
    jsonBodyBytes: config.limits.jsonBodyBytes,
    sockets: config.sockets,
    rateLimitPerMinute: config.rateLimitPerMinute,
    ...(sharedRates === undefined ? {} : { sharedRates }),
    corsOrigins: config.corsOrigins,
    console: config.console,
    trustProxy: config.trustProxy,
    browserGuard: createBrowserGuard({
      listenHost: config.host,
      allowedHosts: config.allowedHosts,
      corsOrigins: config.corsOrigins,
    }),
  })

  return {
    defaultModel: models.defaultModel,
    ...createLifecycle({
      clock,
      log,
      readiness,
      stopDelayMs: config.stopDelayMs,
      listen: async () => {
        try {
          return await server.listen({ host: config.host, port: config.port })
        } catch (error) {
          throw listenError(error, config)
        }
      },
      scheduler,
      settle: () => comparisons.settleAll(),
      runs,
      retention: {
        stop() {
          retention.stop()
          load.stop()
          metrics.close()
          sharedRates?.close()
          agentsWatch?.close()
        },
      },
      hooks: hookCaller,
      streams,
      server: { close: () => server.close(), closeAllConnections: () => server.server.closeAllConnections() },
      tools,
      store: {
        async close() {
          await storedKeys.close()
          await cluster?.close()
          await store.close()
          await telemetry?.close()
          await watchdog?.stop()
        },
      },
    }),
  }
}

/** Undefined if no rate is limited, or if no other node can use the store. */
function openSharedRates(
  { sharedRates: rates }: Store,
  { rateLimitPerMinute }: Config,
  log: Log,
  clock: Clock,
): SharedRates | undefined {
  if (rates === undefined || rateLimitPerMinute === 0) return undefined
  const onError = (error: unknown) =>
    log.warn({ err: error }, 'requests cannot be counted over all nodes; each node counts its own for now')
  return new SharedRates({ store: rates, clock, onError })
}

/** Followers on this node get the events of runs that other nodes drive, if there are other nodes. */
function openLiveBus(cluster: ClusterBus | undefined, store: Store, clock: Clock, meter: BusMeter): LiveBus {
  const bus = createProcessBus(clock)
  if (cluster === undefined) return bus
  const reader = new RemoteReader({ bus, cluster, store, clock, meter })
  cluster.listen(reader)
  return reader
}

function warnOfAgents({ listings, warnings }: AgentsFound, log: Log): void {
  for (const sentence of warnings) log.warn(sentence)
  for (const { id, error } of listings)
    if (error !== null) log.warn({ agent: id, reason: error }, 'an agent cannot be used')
}
