// Measures takeovers beside the servers: which runs a node held when it stopped working, and how long it
// took until another node had claimed each of them.

import { setTimeout as wait } from 'node:timers/promises'
import { query } from '../support/postgres.ts'

type Held = { id: string; epoch: number }

const pollMs = 20

export class TakeoverWatch {
  /** In milliseconds, by what stopped the node. */
  readonly times: Record<'kill' | 'freeze' | 'drain', number[]> = { kill: [], freeze: [], drain: [] }
  private readonly url: string

  constructor(url: string) {
    this.url = url
  }

  /** The runs that this node executes now. */
  async heldBy(node: string): Promise<Held[]> {
    return await this.rows<Held>(
      `SELECT runs.id, runs.epoch FROM runs JOIN nodes ON nodes.id = runs.lease_owner
       WHERE nodes.name = $1 AND runs.ended_at IS NULL`,
      node,
    )
  }

  /** Watches until each run was claimed by another node or has ended, or `isOver`. */
  async watch(
    kind: keyof TakeoverWatch['times'],
    held: readonly Held[],
    stoppedAt: number,
    isOver: () => boolean,
  ): Promise<void> {
    const open = new Map(held.map(({ id, epoch }) => [id, epoch]))
    while (open.size > 0 && !isOver()) {
      const ids = JSON.stringify([...open.keys()])
      const found = await this.rows<Held & { ended: boolean; owner: string | null }>(
        `SELECT id, epoch, ended_at IS NOT NULL AS ended, lease_owner AS owner FROM runs
         WHERE id IN (SELECT jsonb_array_elements_text($1::jsonb))`,
        ids,
      )
      for (const { id, epoch, ended, owner } of found) {
        const before = open.get(id)
        if (before === undefined || (epoch === before && !ended && owner !== null)) continue
        if (epoch > before) this.times[kind].push(performance.now() - stoppedAt)
        if (epoch > before || ended) open.delete(id)
      }
      await wait(pollMs)
    }
  }

  summary(): Record<string, { runs: number; p50Ms: number; maxMs: number }> {
    return Object.fromEntries(
      Object.entries(this.times).map(([kind, times]) => {
        const sorted = times.toSorted((a, b) => a - b)
        const at = (share: number) => Math.round(sorted[Math.floor((sorted.length - 1) * share)] ?? 0)
        return [kind, { runs: sorted.length, p50Ms: at(0.5), maxMs: at(1) }]
      }),
    )
  }

  /** Empty while the database is away. */
  private async rows<T>(sql: string, ...values: string[]): Promise<T[]> {
    try {
      return (await query(this.url, sql, ...values)) as T[]
    } catch {
      return []
    }
  }
}
