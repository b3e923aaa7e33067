// The feed of a user: which of the user's conversations, runs, interactions and comparisons
// have changed, in an order that a reader can resume. It holds no contents. An entry says that
// a thing changed; a page comes with the rows as they are when it is read. Each thing has at
// most one entry, its last change, so the feed grows with the number of things and not with
// the number of changes. The database writes the entries in the transactions of the changes.

import type { ComparisonRow } from './comparison-store.ts'
import type { ConversationRow } from './conversation-store.ts'
import type { InteractionRow } from './interaction-store.ts'
import type { RunRow } from './run-store.ts'

/** The rows of each kind of thing. */
export type FeedRows = {
  conversation: ConversationRow
  run: RunRow
  /** Cut for the feed: `input` is null if it is long, a long `prompt` is cut, and `response`, `result` and `error` are null. */
  interaction: InteractionRow
  /** Only those that ask for a vote. */
  comparison: ComparisonRow
}

export type FeedKind = keyof FeedRows

/** Where an entry stands in the feed: compared by `commit`, then by `number`. The number belongs to one change only. */
export type FeedPosition = { commit: number; number: number }

/** `row` is null if the thing does not exist any more. */
export type FeedEntry = {
  [Kind in FeedKind]: {
    kind: Kind
    id: string
    row: FeedRows[Kind] | null
    position: FeedPosition
    /** False: an earlier position may still get an entry, because another transaction is open. Do not resume after this one. */
    settled: boolean
  }
}[FeedKind]

export type FeedPage = {
  /** In the order of their positions; the settled ones come first. */
  entries: FeedEntry[]
  /** The caller has all entries up to here; read on after it. */
  next: FeedPosition
  /** True if more settled entries follow. */
  more: boolean
}

export type FeedRequest = {
  after: FeedPosition
  limit: number
  /** The numbers of the unsettled entries that the caller got before; they are left out. */
  sent?: ReadonlySet<number>
}

/** How many unsettled entries a page may have besides the settled ones. Further ones come when they have settled. */
export const unsettledMax = 500

/** An input with more characters is left out of the feed. */
export const feedInputCharsMax = 16_384
export const feedPromptCharsMax = 4096

export interface FeedStore {
  /** `epoch` identifies this database: positions of another one mean nothing here. Changes that are committed later come after `head`. */
  feedState(): Promise<{ epoch: string; head: FeedPosition }>
  /** Null if entries after `after` were removed, or if this database has not reached it. */
  readFeed(owner: string, request: FeedRequest): Promise<FeedPage | null>
  /** Removes at most `limit` entries that are older than the last `keep` changes of all users. Returns how many. */
  expireFeed(keep: number, limit: number): Promise<number>
}
