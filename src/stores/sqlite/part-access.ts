// The access that each part of the store has on the main thread: the reading
// connection, and a function that sends commands to the writer thread.

import type { DatabaseSync } from 'node:sqlite'
import type { CommandName, Commands } from './commands.ts'

export type PartAccess = {
  db: DatabaseSync
  /**
   * Runs a query that sees every acknowledged write. Errors of the database become AppErrors; a closed store is
   * `store_unavailable`.
   */
  read<T>(query: () => T): Promise<T>
  /** Like `read`, but does not see what only the log has. */
  readCommitted<T>(query: () => T): Promise<T>
  /** Runs a command in the writer thread. Its changes are synced to disk when the promise resolves, unless `durable` is false. */
  write<Name extends CommandName>(
    name: Name,
    input: Commands[Name]['takes'],
    durable?: boolean,
  ): Promise<Commands[Name]['gives']>
}
