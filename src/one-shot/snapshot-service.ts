// The snapshots of a user: reading one, listing them, and comparing two of the same subject.
// A snapshot of another user is reported as not found.

import { AppError } from '../errors/app-error.ts'
import { type Caller, owns } from '../kit/caller.ts'
import { defined } from '../kit/defined.ts'
import { findConversation } from '../runs/conversation-names.ts'
import type { ConversationStore } from '../stores/conversation-store.ts'
import type { RowPage } from '../stores/row-page.ts'
import type { SnapshotRow, SnapshotStore } from '../stores/snapshot-store.ts'
import { diffResults, type SnapshotDiff } from './snapshot-diff.ts'

export type SnapshotQuery = {
  agentId?: string | undefined
  operation?: string | undefined
  /** The id of a contact or user, or the name or id of a conversation. */
  scopeId?: string | undefined
  /** The id of the last snapshot on the previous page. */
  before?: string | undefined
  limit: number
}

export type SnapshotComparison = SnapshotDiff & { before: SnapshotRow; after: SnapshotRow }

export class SnapshotService {
  private readonly store: SnapshotStore & Pick<ConversationStore, 'findConversationByName' | 'readConversation'>

  constructor(store: SnapshotStore & Pick<ConversationStore, 'findConversationByName' | 'readConversation'>) {
    this.store = store
  }

  /** Throws `snapshot_not_found`. */
  async get(caller: Caller, id: string): Promise<SnapshotRow> {
    const row = await this.store.readSnapshot(id)
    if (row === undefined || !owns(caller, row)) {
      throw new AppError('snapshot_not_found', `There is no snapshot ${JSON.stringify(id)}.`)
    }
    return row
  }

  /** Newest first. */
  async list(owner: string, { limit, scopeId, ...filter }: SnapshotQuery): Promise<RowPage<SnapshotRow>> {
    const scopeIds = scopeId === undefined ? undefined : await this.scopeIds(owner, scopeId)
    return await this.store.listSnapshots({ owner, limit, ...defined({ ...filter, scopeIds }) })
  }

  /** `against` is the earlier one; without it, the newest one of the same subject before this one. */
  async compare(caller: Caller, id: string, against: string | undefined): Promise<SnapshotComparison> {
    const after = await this.get(caller, id)
    const before = against === undefined ? await this.store.snapshotBefore(id) : await this.get(caller, against)
    if (before === undefined) {
      throw new AppError(
        'snapshots_not_comparable',
        'There is no earlier snapshot of the same thing. Run the agent again with forceRefresh, then compare the new snapshot.',
      )
    }
    if (!sameSubject(before, after)) {
      throw new AppError(
        'snapshots_not_comparable',
        'The two snapshots are not of the same agent, operation and scope. Compare two of the same thing.',
      )
    }
    return { before, after, ...diffResults(before.output, after.output) }
  }

  /** A conversation has an id and names; snapshots that were made before it existed have its name. */
  private async scopeIds(owner: string, scopeId: string): Promise<string[]> {
    const conversation = await findConversation(this.store, owner, scopeId)
    return [...new Set([scopeId, ...(conversation === undefined ? [] : [conversation.id])])]
  }
}

function sameSubject(one: SnapshotRow, other: SnapshotRow): boolean {
  return (
    one.owner === other.owner &&
    one.agentId === other.agentId &&
    one.operation === other.operation &&
    one.scopeType === other.scopeType &&
    one.scopeId === other.scopeId
  )
}
