// The access that each part of the store has on the main thread: the reading
// connection, and a function that sends commands to the writer thread.

import type { DatabaseSync } from 'node:sqlite'
import type { CommandName, Commands } from './commands.ts'

export type PartAccess = {
  db: DatabaseSync
  /**
   * Runs a query that sees every acknowledged write, or every one about a topic: the id of a run or of a conversation, a name of one
   * (`nameTopic`), or its owner (`ownerTopic`). Errors of the database become AppErrors; a closed store is `store_unavailable`.
   */
  read<T>(query: () => T, about?: string): Promise<T>
  /** Whether a query about the topic would see every acknowledged write now. */
  isReadable(about: string): boolean
  /** A query has found that this is so (see known-facts.ts). Call it in the turn of the query. */
  learn(fact: string): void
  /** Whether the run is open on this thread, and the database has all messages before it, also if it does not have the run yet. */
  isHistoryStored(runId: string): boolean
  /** Like `read`, but does not see what only the log has. */
  readCommitted<T>(query: () => T): Promise<T>
  /** Runs a command in the writer thread. Its changes are synced to disk when the promise resolves, unless `durable` is false. */
  write<Name extends CommandName>(
    name: Name,
    input: Commands[Name]['takes'],
    durable?: boolean,
  ): Promise<Commands[Name]['gives']>
}
