// Three real servers on one database of their own, behind a round-robin proxy, and what can happen to
// them: killed, frozen past their leases and woken, stopped, and their database restarted.

import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { newDataFolder } from '../support/polylog.ts'
import { type PolylogProcess, startPolylogProcess } from '../support/polylog-process.ts'
import { type PostgresServer, startPostgresServer } from '../support/postgres-server.ts'
import { FrameCount } from '../torture/frame-count.ts'
import type { OutsideWorld } from '../torture/outside-world.ts'
import type { TorturedServer } from '../torture/torture-client.ts'
import type { Fault } from './plan.ts'
import { type RoundRobinProxy, startRoundRobinProxy } from './round-robin-proxy.ts'
import { TakeoverWatch } from './takeover-watch.ts'

export class ChaosCluster implements TorturedServer {
  readonly progress = new FrameCount()
  readonly takeovers: TakeoverWatch
  readonly baseUrl: string
  readonly proxy: RoundRobinProxy
  private readonly database: PostgresServer
  private readonly leaseMs: number
  private readonly nodes: PolylogProcess[] = []
  /** The outputs of processes that have ended. */
  private readonly oldLogs: string[] = []
  private readonly watches = new Set<Promise<void>>()
  private disposed = false

  private constructor(database: PostgresServer, leaseMs: number, proxy: RoundRobinProxy) {
    this.database = database
    this.leaseMs = leaseMs
    this.proxy = proxy
    this.baseUrl = proxy.baseUrl
    this.takeovers = new TakeoverWatch(database.url)
    process.once('exit', this.killAll)
  }

  /** No node outlives this process. */
  private readonly killAll = () => {
    for (const { pid } of this.nodes) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // It has ended.
      }
    }
  }

  static async start(size: number, leaseMs: number, world: OutsideWorld): Promise<ChaosCluster> {
    const database = await startPostgresServer()
    const cluster = new ChaosCluster(database, leaseMs, await startRoundRobinProxy(size))
    const settings = {
      ...world.settings,
      POLYLOG_DATABASE_URL: database.url,
      POLYLOG_DATABASE_CONNECTIONS: '8',
      POLYLOG_LEASE_MS: String(leaseMs),
      POLYLOG_WORKSPACE: join(world.folder, 'workspace'),
      POLYLOG_WORKSPACE_SHARED: 'on',
    }
    try {
      // All at once: each of them may be the one that makes the tables.
      const started = await Promise.all(
        Array.from({ length: size }, (_, node) =>
          startPolylogProcess({ ...settings, POLYLOG_NODE: nameOf(node) }, newDataFolder()),
        ),
      )
      for (const [node, server] of started.entries()) cluster.use(node, server)
    } catch (error) {
      await cluster.dispose()
      throw error
    }
    return cluster
  }

  isUp(): Promise<void> {
    return Promise.resolve()
  }

  sawFrames(count: number): void {
    this.progress.add(count)
  }

  /** Resolves when the fault is over: the node or the database works again. */
  async apply(fault: Fault): Promise<void> {
    switch (fault.kind) {
      case 'database':
        await this.database.restart(fault.mode, fault.downMs)
        // Nodes store again what a crash lost; see the plan.
        if (fault.mode === 'immediate') await wait(this.leaseMs)
        return
      case 'kill':
        return await this.interrupt(fault.kind, fault.node, async (server) => {
          await server.kill()
          await this.startAgain(fault.node, fault.downMs)
        })
      case 'drain':
        return await this.interrupt(fault.kind, fault.node, async (server) => {
          const code = await server.stop()
          if (code !== 0) throw new Error(`${nameOf(fault.node)} stopped with ${code}:\n${server.log().slice(-4000)}`)
          await this.startAgain(fault.node, fault.downMs)
        })
      case 'freeze':
        return await this.interrupt(fault.kind, fault.node, async (server) => {
          process.kill(server.pid, 'SIGSTOP')
          if (fault.noticed) {
            this.proxy.route(fault.node, null)
            this.proxy.cut(fault.node)
          }
          await wait(fault.leases * this.leaseMs)
          process.kill(server.pid, 'SIGCONT')
          this.use(fault.node, server)
        })
    }
  }

  logs(): string {
    return [...this.oldLogs, ...this.nodes.map((node) => node.log())].join('\n')
  }

  async dispose(): Promise<void> {
    this.disposed = true
    await Promise.all(this.watches)
    await this.proxy.close()
    process.off('exit', this.killAll)
    await Promise.all(this.nodes.map((node) => node.dispose()))
    this.database.stop()
  }

  /** Stops a node with `stop`, and measures how long it takes until other nodes have its runs. */
  private async interrupt(
    kind: 'kill' | 'freeze' | 'drain',
    node: number,
    stop: (server: PolylogProcess) => Promise<void>,
  ): Promise<void> {
    const held = await this.takeovers.heldBy(nameOf(node))
    const watch = this.takeovers.watch(kind, held, performance.now(), () => this.disposed)
    this.watches.add(watch)
    void watch.finally(() => this.watches.delete(watch))
    await stop(this.nodes[node] as PolylogProcess)
  }

  private async startAgain(node: number, downMs: number): Promise<void> {
    const ended = this.nodes[node] as PolylogProcess
    this.oldLogs.push(ended.log())
    await wait(downMs)
    this.use(node, await ended.restartProcess())
  }

  private use(node: number, server: PolylogProcess): void {
    this.nodes[node] = server
    this.proxy.route(node, Number(new URL(server.baseUrl).port))
  }
}

function nameOf(node: number): string {
  return `node-${node + 1}`
}
