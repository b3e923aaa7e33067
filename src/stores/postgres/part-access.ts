// The access that each part of the store has: queries, and transactions that write.

import type { Db } from './connection.ts'

export type PartAccess = {
  /** Runs any work. Errors of the database become AppErrors; a closed store is `store_unavailable`, and closing waits for the work. */
  guarded<T>(work: () => Promise<T>): Promise<T>
  /** Runs queries outside of a transaction. */
  read<T>(query: (db: Db) => Promise<T>): Promise<T>
  /** Runs `work` in a transaction; its changes are on disk when the promise resolves. */
  write<T>(work: (db: Db) => Promise<T>): Promise<T>
}
