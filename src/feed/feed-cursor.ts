// The text of a position in a user's feed. It carries a mark of the database and of the user,
// so that a cursor of another database or of another user is recognised instead of being read
// as a position that means something else here.

import { createHash } from 'node:crypto'
import { AppError } from '../errors/app-error.ts'
import type { FeedPosition } from '../stores/feed-store.ts'

/** Identifies the feed of one user in one database. */
export function feedMark(epoch: string, owner: string): string {
  return createHash('sha256').update(`${epoch}\n${owner}`).digest('hex').slice(0, 12)
}

/** The largest number stands for "after everything of this commit"; it is left out. */
export function feedCursor(mark: string, { commit, number }: FeedPosition): string {
  return `${mark}-${commit.toString(36)}${number === Number.MAX_SAFE_INTEGER ? '' : `-${number.toString(36)}`}`
}

/** Throws `unknown_cursor` if the text is no cursor of any feed. Null if it is one of another feed. */
export function parseFeedCursor(text: string, mark: string): FeedPosition | null {
  const match = /^([0-9a-f]{12})-([0-9a-z]{1,10})(?:-([0-9a-z]{1,10}))?$/.exec(text.trim())
  if (match === null) {
    throw new AppError(
      'unknown_cursor',
      `The cursor ${JSON.stringify(text.slice(0, 60))} cannot be read: send the id of the last frame of this feed, or none.`,
    )
  }
  if (match[1] !== mark) return null
  const commit = Number.parseInt(match[2] as string, 36)
  const number = match[3] === undefined ? Number.MAX_SAFE_INTEGER : Number.parseInt(match[3], 36)
  return { commit, number }
}
