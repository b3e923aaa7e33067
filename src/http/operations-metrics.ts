// The metrics that tell an operator whether work gets done: commits, runs that are stuck, nodes, readers that fall
// behind, and whether this node is ready. What is asked of the database is asked at each scrape; if the database fails,
// these time series are absent and the others are still served.

import { Gauge, type Registry } from 'prom-client'
import { type OpenRun, type StuckReason, stuckReasons } from '../runs/run-overview.ts'
import type { ListedNode } from '../stores/node-store.ts'
import type { ConnectionCounts } from '../stores/store.ts'
import { QuickHistogram } from './quick-histogram.ts'

/** A commit to a local disk takes milliseconds; one of seconds is a database in trouble. */
const commitBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30]
/** As many as the page for operators has. More say no more. */
const runsMax = 200
const streamsMax = 200

export type OperationsSources = {
  openRuns(limit: number): Promise<readonly Pick<OpenRun, 'stuck'>[]>
  nodes(): Promise<readonly Pick<ListedNode, 'live' | 'draining'>[]>
  streams(): readonly { runId: string | null; seq: number | null; bufferedBytes: number }[]
  lastSeqs(runIds: readonly string[]): Promise<ReadonlyMap<string, number>>
  ready(): Promise<void>
  /** Absent if the database has no connections to count. */
  connections?: (() => ConnectionCounts) | undefined
}

export type OperationsMetrics = {
  commitStarted(): void
  commitDone(ms: number): void
  reportWith(sources: OperationsSources): void
}

export function createOperationsMetrics(registry: Registry): OperationsMetrics {
  let sources: OperationsSources | undefined
  const commits = new QuickHistogram({
    name: 'polylog_commit_seconds',
    help: 'Time from asking for a commit to the journal until it was done, with the wait for other commits.',
    buckets: commitBuckets,
    registry,
  })
  let commitsUnderWay = 0
  const underWay = new Gauge({
    name: 'polylog_commits_under_way',
    help: 'Commits to the journal that were asked for and are not done.',
    collect() {
      this.set(commitsUnderWay)
    },
    registers: [],
  })
  registry.registerMetric(underWay)

  /** A gauge that is computed at each scrape, and has no values if that fails. */
  function scraped<Label extends string>(
    about: { name: string; help: string; labelNames?: readonly Label[] },
    values: (from: OperationsSources) => Promise<readonly [Partial<Record<Label, string>>, number][]>,
  ): void {
    const gauge = new Gauge<Label>({
      ...about,
      labelNames: about.labelNames ?? [],
      async collect() {
        this.reset()
        const found = sources === undefined ? [] : await values(sources).catch(() => [])
        // A gauge without labels would say 0 after the reset.
        if (found.length === 0) this.remove({} as never)
        for (const [labels, value] of found) this.set(labels, value)
      },
      registers: [],
    })
    registry.registerMetric(gauge)
  }

  scraped(
    {
      name: 'polylog_runs_stuck',
      help: `Unfinished runs that should have gone on, by reason, over all nodes; of the ${runsMax} oldest.`,
      labelNames: ['reason'],
    },
    async (from) => {
      const open = await from.openRuns(runsMax)
      const count = (reason: StuckReason) => open.filter(({ stuck }) => stuck === reason).length
      return stuckReasons.map((reason) => [{ reason }, count(reason)])
    },
  )
  scraped(
    { name: 'polylog_nodes', help: 'Nodes that use the database: live, draining or dead.', labelNames: ['state'] },
    async (from) => {
      const nodes = await from.nodes()
      const counts = { live: 0, draining: 0, dead: 0 }
      for (const { live, draining } of nodes) counts[live ? (draining ? 'draining' : 'live') : 'dead'] += 1
      return Object.entries(counts).map(([state, count]) => [{ state }, count])
    },
  )
  scraped(
    {
      name: 'polylog_stream_lag_events',
      help: `The most journal events that an open stream of this node is behind its run; of the ${streamsMax} slowest.`,
    },
    async (from) => {
      const open = from.streams().slice(0, streamsMax)
      const last = await from.lastSeqs(open.flatMap(({ runId }) => (runId === null ? [] : [runId])))
      const lags = open.map(({ runId, seq }) =>
        runId === null || seq === null ? 0 : Math.max(0, (last.get(runId) ?? seq) - seq),
      )
      return [[{}, Math.max(0, ...lags)]]
    },
  )
  scraped(
    { name: 'polylog_stream_buffered_bytes', help: 'Bytes that the readers of open streams have not taken yet.' },
    async (from) => [[{}, from.streams().reduce((sum, { bufferedBytes }) => sum + bufferedBytes, 0)]],
  )
  scraped({ name: 'polylog_ready', help: '1 if this node can take work, as GET /v1/ready says.' }, async (from) => [
    [
      {},
      await from.ready().then(
        () => 1,
        () => 0,
      ),
    ],
  ])
  scraped(
    {
      name: 'polylog_database_connections',
      help: 'Connections of this node to PostgreSQL, and requests that wait for one.',
      labelNames: ['state'],
    },
    async (from) => Object.entries(from.connections?.() ?? {}).map(([state, count]) => [{ state }, count]),
  )

  return {
    commitStarted() {
      commitsUnderWay += 1
    },
    commitDone(ms) {
      commitsUnderWay -= 1
      commits.observe(ms / 1000)
    },
    reportWith(given) {
      sources = given
    },
  }
}
