// Several real servers as processes on one PostgreSQL database, with one fake model provider behind
// them. Each node can be killed, stopped, frozen past its lease and woken, and started again.

import { newStoreDatabase } from './postgres.ts'
import { type FakeProvider, startFakeProvider } from './fake-provider.ts'
import { startTestServerProcess, type TestServerProcess } from './test-server.ts'

export type ClusterNode = {
  /** As in POLYLOG_NODE. */
  readonly name: string
  /** The client of the node; after a restart it is another one. */
  readonly server: TestServerProcess
  /** SIGKILL: the node cannot release its runs. */
  kill(): Promise<void>
  /** SIGTERM: the node drains. Resolves with the exit code. */
  stop(): Promise<number | null>
  /** SIGSTOP: the node does nothing, and its connections stay open. */
  freeze(): void
  /** SIGCONT */
  wake(): void
  /** Starts the node again, after `kill` or `stop`. */
  restart(environment?: Record<string, string>): Promise<void>
}

export type Cluster = {
  readonly nodes: readonly ClusterNode[]
  readonly provider: FakeProvider
  readonly databaseUrl: string
  /** Starts one more node. */
  add(environment?: Record<string, string>): Promise<ClusterNode>
  close(): Promise<void>
}

export type ClusterOptions = {
  nodes: number
  environment?: Record<string, string>
  /** Absent: an empty one, which is given back at the end. */
  databaseUrl?: string
}

export async function startCluster({ nodes: count, environment = {}, databaseUrl }: ClusterOptions): Promise<Cluster> {
  const database = databaseUrl === undefined ? await newStoreDatabase() : { url: databaseUrl, drop: async () => {} }
  const provider = await startFakeProvider()
  const nodes: ClusterNode[] = []

  async function add(more: Record<string, string> = {}): Promise<ClusterNode> {
    const name = `node-${nodes.length + 1}`
    const settings = {
      POLYLOG_DATABASE_URL: database.url,
      POLYLOG_NODE: name,
      // Each node of the test needs few connections, and the database has to serve many tests.
      POLYLOG_DATABASE_CONNECTIONS: '6',
      // A keep-alive belongs to a connection, and streams are compared byte for byte.
      POLYLOG_PING_MS: '600000',
      ...environment,
      ...more,
    }
    const node = nodeOf(name, await startTestServerProcess(settings, provider))
    nodes.push(node)
    return node
  }

  const cluster: Cluster = {
    nodes,
    provider,
    databaseUrl: database.url,
    add,
    async close() {
      await Promise.all(nodes.map(({ server }) => server.close()))
      await provider.stop()
      await database.drop()
    },
  }
  try {
    // The first node is alone for a moment, so that the others find its migrations done.
    for (let index = 0; index < count; index += 1) await add()
  } catch (error) {
    await cluster.close()
    throw error
  }
  return cluster
}

function nodeOf(name: string, started: TestServerProcess): ClusterNode {
  let server = started
  return {
    name,
    get server() {
      return server
    },
    kill: () => server.polylog.kill(),
    stop: () => server.polylog.stop(),
    freeze: () => void process.kill(server.polylog.pid, 'SIGSTOP'),
    wake: () => void process.kill(server.polylog.pid, 'SIGCONT'),
    async restart(environment) {
      server = await server.restartProcess(environment)
    },
  }
}
