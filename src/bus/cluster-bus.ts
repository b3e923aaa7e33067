// The bus between nodes that share a database. It carries hints: "the journal of this run has
// grown", "a command for this run was stored". A lost or repeated hint costs time, never
// correctness, because receivers read the database.

export interface ClusterBus {
  /** The run's journal has reached `seq`. Call it after the commit. Coalesced: one message every few milliseconds for all runs. */
  announce(runId: string, seq: number): void
  /** A command for the run was stored (cancel request, decision, reply, tool result), or, with null, some run may have become claimable. */
  signal(runId: string | null): void
  /** Something in the feed of this user has changed. Call it after the commit. */
  changed(owner: string): void
  /** Adds a listener. Hints that this node sent are not heard. */
  listen(listener: ClusterListener): void
  /** Sends what is waiting, then closes the connection. */
  close(): Promise<void>
}

export interface ClusterListener {
  /** `at`: when the sender was told, by its clock. */
  announced(runId: string, seq: number, at: number): void
  signalled(runId: string | null): void
  changed?(owner: string): void
  /** The connection was lost for a while: hints may be missing. Check everything that is followed or owned. */
  missed(): void
}

/** Measures the bus. */
export interface BusMeter {
  hintsSent(count: number): void
  hintsReceived(count: number): void
  reconnected(): void
  /** Events of another node were handed to the followers on this node, this long after their commit. */
  delivered(lagSeconds: number): void
}

export interface BusLog {
  info(details: object, message: string): void
  warn(details: object, message: string): void
}
