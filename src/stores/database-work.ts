// What a database says about the work of its servers, read without a server: for `polylog doctor`.

import type { ListedNode } from './node-store.ts'
import type { RunRow } from './run-store.ts'

export type DatabaseWork = {
  /** The clock of the database. */
  now: number
  nodes: ListedNode[]
  /** How many API keys are stored, revoked ones too. */
  apiKeys: number
  /** The oldest unfinished runs. */
  openRuns: RunRow[]
}

/** More are not needed to tell that something is wrong. */
export const inspectedRunsMax = 1_000
