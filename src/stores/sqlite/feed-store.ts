// The feed of a user. Triggers write its rows (see the migration); this file reads and expires
// them. There is one writer, so the numbers are in the order of the commits, and every entry
// is settled. A number serves as the commit of its position.

import type { DatabaseSync } from 'node:sqlite'
import type { FeedEntry, FeedKind, FeedPage, FeedPosition, FeedRequest, FeedStore } from '../feed-store.ts'
import type { FeedCommands, Handlers } from './commands.ts'
import { comparisonReader } from './comparison-store.ts'
import { conversationReader } from './conversation-store.ts'
import { interactionReader } from './interaction-store.ts'
import type { JournalTails } from './journal-tails.ts'
import type { PartAccess } from './part-access.ts'
import { runReader } from './run-rows.ts'

const newestNumber = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'feed'), 0) AS newest"

function positionOf(number: number): FeedPosition {
  return { commit: number, number: 0 }
}

export function feedStore({ db, read, write }: PartAccess, tails: JournalTails): FeedStore {
  const conversations = conversationReader(db)
  const runs = runReader(db)
  const interactions = interactionReader(db)
  const comparisons = comparisonReader(db)
  const newest = db.prepare(newestNumber)
  const state = db.prepare('SELECT value FROM store_state WHERE name = ?')
  const entriesAfter = db.prepare(
    'SELECT number, kind, subject FROM feed WHERE owner = ? AND number > ? ORDER BY number LIMIT ?',
  )

  function entryOf(kind: FeedKind, id: string, number: number): FeedEntry {
    const common = { id, position: positionOf(number), settled: true }
    switch (kind) {
      case 'conversation':
        return { ...common, kind, row: conversations.read(id) ?? null }
      case 'run': {
        const run = runs.read(id)
        return {
          ...common,
          kind,
          row: run === undefined ? null : { ...run, lastSeq: Math.max(run.lastSeq, tails.lastSeq(id)) },
        }
      }
      case 'interaction':
        return { ...common, kind, row: interactions.readForFeed(id) ?? null }
      case 'comparison':
        return { ...common, kind, row: comparisons.read(id) ?? null }
    }
  }

  function page(owner: string, { after, limit }: FeedRequest): FeedPage | null {
    // Read first: a change that is committed meanwhile comes after it.
    const head = newest.get()?.newest as number
    const floor = state.get('feed_floor')?.value as number
    if (after.commit < floor || after.commit > head) return null
    // One more, to learn whether more follow.
    const rows = entriesAfter.all(owner, after.commit, limit + 1)
    const more = rows.length > limit
    const entries = rows
      .slice(0, limit)
      .map((row) => entryOf(row.kind as FeedKind, row.subject as string, row.number as number))
    const last = entries.at(-1)?.position.commit ?? after.commit
    return { entries, more, next: positionOf(more ? last : Math.max(last, head)) }
  }

  return {
    feedState: () =>
      read(() => ({
        epoch: String(state.get('feed_epoch')?.value),
        head: positionOf(newest.get()?.newest as number),
      })),
    readFeed: (owner, request) => read(() => page(owner, request)),
    expireFeed: (keep, limit) => write('expireFeed', { keep, limit }),
  }
}

export function feedHandlers(db: DatabaseSync): Handlers<FeedCommands> {
  const newest = db.prepare(newestNumber)
  const oldest = db.prepare('SELECT number FROM feed WHERE number <= ? ORDER BY number LIMIT ?')
  const remove = db.prepare('DELETE FROM feed WHERE number <= ?')
  const raiseFloor = db.prepare("UPDATE store_state SET value = max(value, ?) WHERE name = 'feed_floor'")
  return {
    expireFeed({ keep, limit }) {
      const rows = oldest.all((newest.get()?.newest as number) - keep, limit)
      const last = rows.at(-1)?.number
      if (last === undefined) return 0
      remove.run(last)
      raiseFloor.run(last)
      return rows.length
    },
  }
}
