// The nodes that use the database. The heartbeat of a node need not be on disk: the next one comes soon.

import { deadNodesKeptMs, type ListedNode, type NodeStore } from '../node-store.ts'
import { rowReader } from './columns.ts'
import type { Db } from './connection.ts'
import type { PartAccess } from './part-access.ts'

const toNode = rowReader<ListedNode>({
  id: 'value',
  name: 'value',
  version: 'value',
  startedAt: 'value',
  seenAt: 'value',
  offers: 'json',
  draining: 'flag',
  capacity: 'value',
  running: 'value',
  live: 'flag',
})

export async function listNodes(db: Db): Promise<ListedNode[]> {
  const rows = await db.all(
    `SELECT *, CASE WHEN seen_at + lease_ms > polylog_now() THEN 1 ELSE 0 END AS live
     FROM nodes ORDER BY name, started_at, id`,
  )
  return rows.map(toNode)
}

export function nodeStore(
  { guarded, read, write }: PartAccess,
  transact: (durable: boolean, work: (db: Db) => Promise<void>) => Promise<void>,
): NodeStore {
  return {
    beatNode: (beat) =>
      guarded(() =>
        transact(false, async (db) => {
          await db.run(
            `INSERT INTO nodes (id, name, version, started_at, seen_at, lease_ms, offers, draining, capacity, running)
             VALUES (?, ?, ?, ?, polylog_now(), ?, ?, ?, ?, ?)
             ON CONFLICT (id) DO UPDATE SET name = excluded.name, version = excluded.version, started_at = excluded.started_at,
               seen_at = excluded.seen_at, lease_ms = excluded.lease_ms, offers = excluded.offers,
               draining = excluded.draining, capacity = excluded.capacity, running = excluded.running`,
            beat.id,
            beat.name,
            beat.version,
            beat.startedAt,
            beat.leaseMs,
            JSON.stringify(beat.offers),
            beat.draining ? 1 : 0,
            beat.capacity,
            beat.running,
          )
          await db.run('DELETE FROM nodes WHERE seen_at < polylog_now() - ?', deadNodesKeptMs)
        }),
      ),
    listNodes: () => read(listNodes),
    removeNode: (id) => write(async (db) => void (await db.run('DELETE FROM nodes WHERE id = ?', id))),
  }
}
