// Snapshots: the stored results of one-shot runs. A snapshot never changes; a refresh adds
// a new one. It is written by the same append as the end of its run (`RunWrite.snapshot`),
// so a run that has ended successfully has its snapshot, also after a crash.

import type { JsonValue } from '../journal/event.ts'
import type { RowPage } from './row-page.ts'

export const snapshotScopes = ['conversation', 'contact', 'user', 'global'] as const

export type SnapshotScope = (typeof snapshotScopes)[number]

/** What a snapshot is about. Snapshots of the same subject can be compared with each other. */
export type SnapshotSubject = {
  owner: string
  agentId: string
  operation: string | null
  scopeType: SnapshotScope
  scopeId: string | null
}

/** A snapshot answers a request only if all of this is equal. */
export type SnapshotKey = SnapshotSubject & {
  sourceHash: string
  promptVersion: string
  model: string
}

export type SnapshotRow = SnapshotKey & {
  id: string
  /** The run that produced it. The run may have been removed since. */
  runId: string
  output: JsonValue
  createdAt: number
  /** From this time on it answers no request. Null if it never expires. */
  expiresAt: number | null
}

/** With `scopeMustExist` the snapshot is not stored if the conversation or the contact of its scope has been deleted. */
export type NewSnapshot = SnapshotRow & { scopeMustExist: boolean }

/**
 * How many snapshots of one subject are kept; older ones are removed when a new one is written. A user or the whole server
 * as the scope stands for many different inputs, hence more of them.
 */
export const snapshotsKept: Readonly<Record<SnapshotScope, number>> = {
  conversation: 20,
  contact: 20,
  user: 200,
  global: 200,
}

export type SnapshotFilter = {
  owner: string
  agentId?: string
  operation?: string | null
  scopeType?: SnapshotScope
  scopeIds?: string[]
  /** Only snapshots that were written before this one. */
  before?: string
  limit: number
}

export interface SnapshotStore {
  readSnapshot(id: string): Promise<SnapshotRow | undefined>
  /** The newest one with this key that has not expired at `now`. */
  findSnapshot(key: SnapshotKey, now: number): Promise<SnapshotRow | undefined>
  findSnapshotOfRun(runId: string): Promise<SnapshotRow | undefined>
  /** The newest one of the same subject that was written before this one. */
  snapshotBefore(id: string): Promise<SnapshotRow | undefined>
  /** Newest first, in the order of the writes. */
  listSnapshots(filter: SnapshotFilter): Promise<RowPage<SnapshotRow>>
  /** Removes snapshots that expired before `expiredBefore`. Returns how many. */
  expireSnapshots(expiredBefore: number, limit: number): Promise<number>
}
