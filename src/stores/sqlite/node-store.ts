// The nodes that use the database: here the one process that holds its lock. Its heartbeat is
// not synced to disk.

import type { DatabaseSync } from 'node:sqlite'
import type { Clock } from '../../kit/clock.ts'
import { deadNodesKeptMs, type ListedNode, type NodeStore } from '../node-store.ts'
import type { Handlers, NodeCommands } from './commands.ts'
import type { Row } from './connection.ts'
import { fromJson } from './json-column.ts'
import type { PartAccess } from './part-access.ts'

function toNode(row: Row): ListedNode {
  return {
    id: row.id as string,
    name: row.name as string,
    version: row.version as string,
    startedAt: row.started_at as number,
    seenAt: row.seen_at as number,
    offers: fromJson<string[]>(row.offers) ?? [],
    draining: row.draining === 1,
    capacity: row.capacity as number,
    running: row.running as number,
    live: row.live === 1,
  }
}

export function nodeLister(db: DatabaseSync): (now: number) => ListedNode[] {
  const list = db.prepare('SELECT *, seen_at + lease_ms > ? AS live FROM nodes ORDER BY name, started_at, id')
  return (now) => list.all(now).map(toNode)
}

export function nodeStore({ db, read, write }: PartAccess, clock: Pick<Clock, 'now'>): NodeStore {
  const list = nodeLister(db)
  return {
    beatNode: async (beat) => void (await write('beatNode', { ...beat, seenAt: clock.now() }, false)),
    listNodes: () => read(() => list(clock.now())),
    removeNode: async (id) => void (await write('removeNode', { id })),
  }
}

export function nodeHandlers(db: DatabaseSync): Handlers<NodeCommands> {
  const beat = db.prepare(
    `INSERT OR REPLACE INTO nodes (id, name, version, started_at, seen_at, lease_ms, offers, draining, capacity, running)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  const expire = db.prepare('DELETE FROM nodes WHERE seen_at < ?')
  const remove = db.prepare('DELETE FROM nodes WHERE id = ?')
  return {
    beatNode(node) {
      beat.run(
        node.id,
        node.name,
        node.version,
        node.startedAt,
        node.seenAt,
        node.leaseMs,
        JSON.stringify(node.offers),
        node.draining ? 1 : 0,
        node.capacity,
        node.running,
      )
      expire.run(node.seenAt - deadNodesKeptMs)
      return null
    },
    removeNode({ id }) {
      remove.run(id)
      return null
    },
  }
}
