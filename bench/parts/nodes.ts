// One to three nodes on PostgreSQL beside one server on SQLite: how many deltas a second, what one costs
// the nodes and the database, how long readers at another node wait for it, and how long a run of a dead
// node stands still. Nothing is pinned to a core here, because several servers are measured at once.

import { TakeoverWatch } from '../../test/chaos/takeover-watch.ts'
import { query } from '../../test/support/postgres.ts'
import { type PostgresServer, startPostgresServer } from '../../test/support/postgres-server.ts'
import { figure, median, table } from '../figures.ts'
import { type Child, cpuOf, cpuOfDescendants, load, type LoadResult } from '../processes.ts'
import { type Bench, chatBody, polylogLoad, urlOf } from '../servers.ts'

const nodeCounts = [1, 2, 3]
const loads = [
  { what: 'full speed, 48 streams', streams: 48, model: 'bench-1000-0', deltas: 1000 },
  { what: '150 streams × 20/s', streams: 150, model: 'bench-200-50', deltas: 200 },
]
const runsOfDeadNode = 20

export async function nodes(bench: Bench): Promise<void> {
  const rows: string[][] = []
  for (const { what, streams, model, deltas } of loads) {
    const alone = [await bench.polylog(undefined, {}, 'free')]
    rows.push([what, 'SQLite', ...cells(await measure(bench, alone, undefined, streams, model, deltas))])
    await bench.stopServers()
    for (const count of nodeCounts) {
      await withCluster(bench, count, async (cluster, database) => {
        rows.push([
          what,
          `PostgreSQL, ${count === 1 ? '1 node' : `${count} nodes`}`,
          ...cells(await measure(bench, cluster, database, streams, model, deltas)),
        ])
      })
    }
  }
  console.log(
    table(
      ['load', 'database', 'deltas/s', 'CPU µs a delta, nodes', 'CPU µs a delta, PostgreSQL', 'WAL bytes a delta'],
      rows,
    ),
    '\n',
  )
  await withCluster(bench, 2, wakeUp)
  await withCluster(bench, 3, storage)
  await withCluster(bench, 3, takeover)
}

/** With a real disk under the database: every commit of a barrier waits for it. */
async function withCluster(
  bench: Bench,
  count: number,
  work: (cluster: Child[], database: PostgresServer) => Promise<void>,
): Promise<void> {
  const database = await startPostgresServer(undefined, { fsync: 'on', full_page_writes: 'on' })
  try {
    const cluster: Child[] = []
    for (let node = 1; node <= count; node++) {
      const settings = { POLYLOG_DATABASE_URL: database.url, POLYLOG_NODE: `node-${node}` }
      cluster.push(await bench.polylog(undefined, settings, 'free'))
    }
    await work(cluster, database)
  } finally {
    await bench.stopServers()
    database.stop()
  }
}

type Measured = { perSecond: number; nodeCpu: number; databaseCpu: number; walBytes: number }

function cells({ perSecond, nodeCpu, databaseCpu, walBytes }: Measured): string[] {
  return [figure(perSecond), figure(nodeCpu), figure(databaseCpu), figure(walBytes)]
}

/** The streams are divided among the nodes. One round warms up. */
async function measure(
  bench: Bench,
  cluster: readonly Child[],
  database: PostgresServer | undefined,
  streams: number,
  model: string,
  deltasOfStream: number,
): Promise<Measured> {
  const measured: Measured[] = []
  for (let round = 0; round <= bench.rounds; round++) {
    const walBefore = await walPosition(database)
    const nodesBefore = cpuOfAll(cluster)
    const databaseBefore = database === undefined ? Number.NaN : cpuOfDescendants(database.pid)
    const results = await Promise.all(
      cluster.map((node) => load(polylogLoad(node, { streams: Math.ceil(streams / cluster.length), model }))),
    )
    const deltas = sum(results, ({ deltas: count }) => count)
    const failed = sum(results, (result) => result.failed)
    if (failed > 0 || deltas < streams * deltasOfStream)
      throw new Error(`${failed} of ${streams} streams failed at ${cluster.length} nodes, round ${round}`)
    if (round === 0) continue
    measured.push({
      perSecond: deltas / Math.max(...results.map(({ seconds }) => seconds)),
      nodeCpu: ((cpuOfAll(cluster) - nodesBefore) / deltas) * 1e6,
      databaseCpu:
        database === undefined ? Number.NaN : ((cpuOfDescendants(database.pid) - databaseBefore) / deltas) * 1e6,
      walBytes: ((await walPosition(database)) - walBefore) / deltas,
    })
  }
  const of = (key: keyof Measured) => median(measured.map((each) => each[key]))
  return {
    perSecond: of('perSecond'),
    nodeCpu: of('nodeCpu'),
    databaseCpu: of('databaseCpu'),
    walBytes: of('walBytes'),
  }
}

/** One run of 50 deltas a second, read at its own node and at another one. */
async function wakeUp([owner, other]: Child[]): Promise<void> {
  if (owner === undefined || other === undefined) return
  const started = await fetch(urlOf(owner, '/v1/agent/chat'), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: chatBody('stamped-500-20'),
  })
  void started.body?.cancel()
  const path = `/v1/agent/runs/${started.headers.get('x-run-id')}/stream`
  const read = (node: Child) =>
    load({ url: urlOf(node, path), method: 'GET', streams: 1, marker: 'event: agent.delta', stamped: true })
  const [here, there] = await Promise.all([read(owner), read(other)])
  const latency = ({ latencyP50, latencyP99 }: LoadResult) =>
    `p50 ${figure(latencyP50)} ms, p99 ${figure(latencyP99)} ms`
  console.log(`from the provider to a reader at the node of the run: ${latency(here)}`)
  console.log(`from the provider to a reader at another node: ${latency(there)}\n`)
}

/** What the journal of a long answer needs on disk. */
async function storage(cluster: Child[], database: PostgresServer): Promise<void> {
  const deltas = 1000
  const results = await Promise.all(
    cluster.map((node) => load(polylogLoad(node, { streams: 20, model: `bench-${deltas}-20` }))),
  )
  const count = sum(results, (result) => result.deltas)
  const [row] = await query(
    database.url,
    `SELECT sum(pg_total_relation_size(inhrelid)) AS bytes, (SELECT count(*) FROM journal) AS rows
     FROM pg_inherits WHERE inhparent = 'journal'::regclass`,
  )
  console.log(
    `journal of runs with 50 deltas a second: ${figure(Number(row?.['bytes']) / count)} bytes a delta with its index, ` +
      `${figure(count / Number(row?.['rows']))} deltas in a row\n`,
  )
}

async function takeover(cluster: Child[], database: PostgresServer): Promise<void> {
  const [killed, drained] = cluster
  if (killed === undefined || drained === undefined) return
  const watch = new TakeoverWatch(database.url)
  for (const [kind, node, name] of [
    ['kill', killed, 'node-1'],
    ['drain', drained, 'node-2'],
  ] as const) {
    const readers = await Promise.all(Array.from({ length: runsOfDeadNode }, () => stalledRun(node)))
    const held = await watch.heldBy(name)
    const stoppedAt = performance.now()
    node.process.kill(kind === 'kill' ? 'SIGKILL' : 'SIGTERM')
    await watch.watch(kind, held, stoppedAt, () => false)
    for (const reader of readers) reader.abort()
  }
  const { kill, drain } = watch.summary()
  console.log(`takeover of ${kill?.runs} runs of a killed node: p50 ${kill?.p50Ms} ms, last ${kill?.maxMs} ms`)
  console.log(`takeover of ${drain?.runs} runs of a node that stops: p50 ${drain?.p50Ms} ms, last ${drain?.maxMs} ms\n`)
}

/** A run whose provider says nothing. */
async function stalledRun(node: Child): Promise<AbortController> {
  const reader = new AbortController()
  const response = await fetch(urlOf(node, '/v1/agent/chat'), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: chatBody('bench-stall'),
    signal: reader.signal,
  })
  response.text().catch(() => {})
  return reader
}

async function walPosition(database: PostgresServer | undefined): Promise<number> {
  if (database === undefined) return Number.NaN
  const [row] = await query(database.url, `SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn AS bytes`)
  return Number(row?.['bytes'])
}

function cpuOfAll(cluster: readonly Child[]): number {
  return sum(cluster, ({ pid }) => cpuOf(pid).all)
}

function sum<T>(values: readonly T[], of: (value: T) => number): number {
  return values.reduce((total, value) => total + of(value), 0)
}
