// The interface of every store, composed of parts. Each part has its interface and its
// row types in a file of its own, and a contract suite in test/contracts that runs
// against every implementation.
//
// The store keeps rows and compares; it decides nothing. Every write that depends
// on what was read says what it expects (`epoch`, `afterSeq`, `expect…`), and is
// refused as a whole if that is no longer so; then the caller reads again. This
// optimistic concurrency control is the only one, and it works the same on one file and
// on a database that many nodes share.
//
// Every method that writes is atomic, and its changes are committed when the promise
// resolves. They are also synced to disk, unless the method has a `durable` option and it
// is false. Errors are AppErrors; any other error of the database becomes
// `store_unavailable`, or `store_damaged` if the file is corrupt.

import type { ArchiveStore } from './archive-store.ts'
import type { ComparisonStore } from './comparison-store.ts'
import type { ContactActivityStore } from './contact-activity-store.ts'
import type { ContactStore } from './contact-store.ts'
import type { ConversationStore } from './conversation-store.ts'
import type { FeedbackStore } from './feedback-store.ts'
import type { FeedStore } from './feed-store.ts'
import type { FileStore } from './file-store.ts'
import type { InteractionStore } from './interaction-store.ts'
import type { KeyStore } from './key-store.ts'
import type { MessageStore } from './message-store.ts'
import type { NodeStore } from './node-store.ts'
import type { NoteStore } from './note-store.ts'
import type { RateStore } from './rate-store.ts'
import type { RunStore } from './run-store.ts'
import type { SnapshotStore } from './snapshot-store.ts'
import type { UpkeepStore } from './upkeep-store.ts'
import type { UsageStore } from './usage-store.ts'
import type { WorkspaceStore } from './workspace-store.ts'

export interface Store
  extends
    RunStore,
    ConversationStore,
    MessageStore,
    InteractionStore,
    FeedbackStore,
    ComparisonStore,
    WorkspaceStore,
    NoteStore,
    NodeStore,
    KeyStore,
    FileStore,
    SnapshotStore,
    UsageStore,
    ContactStore,
    ContactActivityStore,
    ArchiveStore,
    FeedStore,
    UpkeepStore,
    StoreLifetime {
  /** Absent if only one process can use the store: it counts by itself. */
  readonly sharedRates?: RateStore
  /** Absent if the store is a file. */
  readonly connections?: () => ConnectionCounts
}

/** Connections to the database: in use and idle, and how many requests wait for one. */
export type ConnectionCounts = { used: number; idle: number; waiting: number }

/** The store as a whole: whether it works, and its end. */
export interface StoreLifetime {
  /** A cheap test write. Throws `store_unavailable` if the database is missing or not writable. */
  check(): Promise<void>
  /** Writes everything that was asked for before; then every call is refused with `store_unavailable`. */
  close(): Promise<void>
}
