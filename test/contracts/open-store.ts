// How the contract suites open a store. A suite names the part that it is about, and
// the parts that it needs to set the scene; a whole store fits every suite.

import type { Store } from '../../src/stores/store.ts'

/** The clock of the store, which stands still unless a test sets it. */
export type StoreTime = {
  /** The wall clock that deadlines are judged by, and the clock of leases unless `setLeases` was called. */
  set(now: number): Promise<void>
  /** Sets only the clock of leases. Absent if the store judges both by one clock. */
  setLeases?(now: number): Promise<void>
}

export type OpenedStore<Part = Store> = {
  store: Part
  time: StoreTime
  /** Closes the store and opens what it left behind; `store` is not used after that. */
  reopen(): Promise<Part>
  /** Replaces the stored line of one event by `line` while the store is closed; then as `reopen`. */
  corrupt?(runId: string, seq: number, line: string): Promise<Part>
  cleanup(): Promise<void>
}

export type OpenStore<Part = Store> = () => Promise<OpenedStore<Part>>
