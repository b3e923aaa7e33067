// What keeps a store small and tidy. One node at a time does it for all nodes: it holds a duty,
// which is a lease with a name.

/** What `tidyJournal` did. All are 0 on a store without partitions. */
export type JournalTidied = {
  /** Partitions for coming runs. */
  partitionsMade: number
  /** Partitions without any run. */
  partitionsDropped: number
  /** Rows of removed runs, deleted one by one. */
  rowsRemoved: number
}

export interface UpkeepStore {
  /** Takes the duty, or extends it if `node` has it, for `forMs` from now by the clock of the store. False if another node has it. */
  takeDuty(duty: string, node: string, forMs: number): Promise<boolean>
  /**
   * Makes room for the journals of coming runs, and frees that of runs that `expireRuns` removed with this `endedBefore`. Bounded
   * work, which appends never wait for: what is left is done by the next call.
   */
  tidyJournal(endedBefore: number | null): Promise<JournalTidied>
  /** When the run ended that ended first of those that are kept. Null if there is none. */
  oldestEnd(): Promise<number | null>
}
