// The nodes that use the database. Each writes its row at every heartbeat, so that the others know
// what it can run and whether it lives.

export type NodeRow = {
  /** Unique for each start of a process. It is the owner of leases. */
  id: string
  /** For people: the host, or what the operator chose. Two nodes may have the same. */
  name: string
  version: string
  startedAt: number
  /** The last heartbeat, by the clock of the store. */
  seenAt: number
  /** What the node can run beyond what every node can. */
  offers: string[]
  /** The node is stopping: it hands its runs over and takes no others. */
  draining: boolean
  /** How many runs the node executes at most. */
  capacity: number
  /** How many it executes. */
  running: number
}

/** A heartbeat. The node counts as live for `leaseMs` after it. */
export type NodeBeat = Omit<NodeRow, 'seenAt'> & { leaseMs: number }

export type ListedNode = NodeRow & { live: boolean }

/** Nodes that ended without removing their row are listed for this long. */
export const deadNodesKeptMs = 24 * 60 * 60_000

export interface NodeStore {
  /** Inserts or replaces the row of the node, and removes the rows of nodes that have been dead for a day. */
  beatNode(beat: NodeBeat): Promise<void>
  /** By name, then by start. Whether a node lives is judged by the clock of the store. */
  listNodes(): Promise<ListedNode[]>
  removeNode(id: string): Promise<void>
}
