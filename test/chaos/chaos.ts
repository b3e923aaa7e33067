// Three nodes behind a round-robin proxy under a mixed load, while nodes are killed, frozen, stopped, and
// the database is restarted. When it is over, every run is checked as in the torture test: one end, a
// journal without a gap, every client's bytes equal to the journal, no unsafe call made twice,
// every decision applied at most once.

import assert from 'node:assert/strict'
import { randomFrom } from '../support/random.ts'
import { type LoadOptions, type LoadResult, MixedLoad } from '../torture/mixed-load.ts'
import { startOutsideWorld } from '../torture/outside-world.ts'
import { ChaosCluster } from './chaos-cluster.ts'
import { chaosPlan, describeFault } from './plan.ts'

export type ChaosOptions = LoadOptions & {
  seed: number
  /** POLYLOG_LEASE_MS of the nodes. */
  leaseMs: number
  /** Trouble comes after at most so many frames. */
  framesMax: number
  /** Whether more trouble is to come, asked before each. New runs are started until the last one. */
  goesOn(troubles: number): boolean
  report?: (line: string) => void
  /** Gets the logs of all nodes if something is wrong. */
  failed?: (logs: string) => void
}

export type ChaosResult = LoadResult & {
  frames: number
  faults: Record<string, number>
  connectionsOfNodes: readonly number[]
  takeovers: Record<string, { runs: number; p50Ms: number; maxMs: number }>
}

const nodes = 3

export async function chaos(options: ChaosOptions): Promise<ChaosResult> {
  const random = randomFrom(options.seed)
  const plan = chaosPlan(random.fork(), nodes, options.framesMax)
  const world = await startOutsideWorld()
  const cluster = await ChaosCluster.start(nodes, options.leaseMs, world)
  const faults: Record<string, number> = {}
  const load = new MixedLoad(cluster, world, random, options)
  try {
    await load.during(async () => {
      for (let troubles = 0; options.goesOn(troubles); troubles += 1) {
        const trouble = plan.next().value
        await cluster.progress.more(trouble.afterFrames)
        options.report?.(
          `${load.finished.length} runs finished; ${trouble.faults.map(describeFault).join('; together with: ')}`,
        )
        for (const fault of trouble.faults) {
          const name = fault.kind === 'database' ? `database ${fault.mode}` : fault.kind
          faults[name] = (faults[name] ?? 0) + 1
        }
        await Promise.all(trouble.faults.map((fault) => cluster.apply(fault)))
      }
    })
    const result = await load.check()
    assert.ok(
      cluster.proxy.counts.every((count) => count > 0),
      'every node was used',
    )
    return {
      ...result,
      frames: cluster.progress.total,
      faults,
      connectionsOfNodes: cluster.proxy.counts,
      takeovers: cluster.takeovers.summary(),
    }
  } catch (error) {
    options.failed?.(cluster.logs())
    throw error
  } finally {
    await cluster.dispose()
    await world.dispose()
  }
}
