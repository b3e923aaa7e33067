// Reads the feed of a user: what has changed after a cursor, and then live. A reader is a
// cursor and nothing else, so a slow one costs no memory, and it goes on after a restart or on
// another node.

import type { Clock, Timer } from '../kit/clock.ts'
import { type FeedEntry, type FeedPage, type FeedPosition, type FeedStore, unsettledMax } from '../stores/feed-store.ts'
import type { InteractionRow, InteractionStore } from '../stores/interaction-store.ts'
import type { RunRow } from '../stores/run-store.ts'
import { feedCursor, feedMark, parseFeedCursor } from './feed-cursor.ts'
import type { FeedHints } from './feed-hints.ts'

export type FeedDependencies = {
  store: FeedStore & Pick<InteractionStore, 'listInteractions'>
  hints: FeedHints
  clock: Clock
  /** How often a reader looks by itself, in case that a hint was lost. */
  pollMs: number
}

/** `expired`: the entries after the cursor were removed. `unknown`: the cursor is not of this feed. */
export type FeedReset = 'expired' | 'unknown'

/** `cursor` is null if a reader must not resume after this entry. */
export type FeedChange = FeedEntry & { cursor: string | null }

const pageLimit = 50
const waitingForMax = 20

/** The least time between two reads of a reader, so that a burst of changes is read at once. */
const gatherMs = 20

export class FeedService {
  private readonly dependencies: FeedDependencies

  constructor(dependencies: FeedDependencies) {
    this.dependencies = dependencies
  }

  /** Begins after `cursor`, or now if there is none. Throws `unknown_cursor` if it is no cursor at all. */
  async open(owner: string, cursor: string | undefined): Promise<FeedReader> {
    const { epoch, head } = await this.dependencies.store.feedState()
    const mark = feedMark(epoch, owner)
    const after = cursor === undefined ? head : parseFeedCursor(cursor, mark)
    return new FeedReader(this.dependencies, owner, mark, after ?? head, {
      resumed: cursor !== undefined && after !== null,
      reset: after === null ? 'unknown' : null,
    })
  }

  /** The questions that a run waits for, newest first; the first ones if there are many. */
  async waitingFor({ id, owner, status }: RunRow): Promise<InteractionRow[]> {
    if (status !== 'waiting_user') return []
    const { rows } = await this.dependencies.store.listInteractions({
      owner,
      runId: id,
      status: ['pending'],
      limit: waitingForMax,
    })
    return rows
  }
}

export class FeedReader {
  /** True if the reader goes on after the cursor that was given. */
  readonly resumed: boolean
  private readonly dependencies: FeedDependencies
  private readonly owner: string
  private readonly mark: string
  private readonly unsubscribe: () => void
  private after: FeedPosition
  private reset: FeedReset | null
  /** The unsettled entries that were handed out: number → commit. */
  private readonly sent = new Map<number, number>()
  private wakeUp: (() => void) | undefined
  private hinted = false
  private closed = false
  private readAt = -Infinity

  constructor(
    dependencies: FeedDependencies,
    owner: string,
    mark: string,
    after: FeedPosition,
    { resumed, reset }: { resumed: boolean; reset: FeedReset | null },
  ) {
    this.dependencies = dependencies
    this.owner = owner
    this.mark = mark
    this.after = after
    this.resumed = resumed
    this.reset = reset
    this.unsubscribe = dependencies.hints.subscribe(owner, () => {
      this.hinted = true
      this.wakeUp?.()
    })
  }

  /** The cursor that leads on from here. */
  get cursor(): string {
    return feedCursor(this.mark, this.after)
  }

  /**
   * The next changes; waits until there are some unless `wait` is false. A reset says that changes may be missing: the reader
   * goes on from `cursor`, and its user has to read the lists again. Null after `close`. Never call it concurrently.
   */
  async next({ wait = true } = {}): Promise<{ changes: FeedChange[] } | { reset: FeedReset } | null> {
    for (;;) {
      if (this.closed) return null
      if (this.reset !== null) {
        const { reset } = this
        this.reset = null
        return { reset }
      }
      this.hinted = false
      this.readAt = this.dependencies.clock.monotonic()
      const page = await this.dependencies.store.readFeed(this.owner, {
        after: this.after,
        limit: pageLimit,
        sent: new Set(this.sent.keys()),
      })
      if (page === null) {
        this.after = (await this.dependencies.store.feedState()).head
        this.sent.clear()
        this.reset = 'expired'
        continue
      }
      const changes = this.take(page)
      if (changes.length > 0) return { changes }
      if (page.more) continue
      if (!wait) return null
      await this.waitForHint()
    }
  }

  close(): void {
    this.closed = true
    this.unsubscribe()
    this.wakeUp?.()
  }

  private take({ entries, next }: FeedPage): FeedChange[] {
    for (const { settled, position } of entries) if (!settled) this.sent.set(position.number, position.commit)
    for (const [number, commit] of this.sent) if (commit <= next.commit) this.sent.delete(number)
    if (this.sent.size > unsettledMax * 2) this.sent.clear()
    this.after = next
    return entries.map((entry) => ({
      ...entry,
      cursor: entry.settled ? feedCursor(this.mark, entry.position) : null,
    }))
  }

  private async waitForHint(): Promise<void> {
    const { clock, pollMs } = this.dependencies
    let timer: Timer | undefined
    if (!this.hinted) {
      await new Promise<void>((resolve) => {
        this.wakeUp = resolve
        timer = clock.after(pollMs, resolve)
        if (this.closed) resolve()
      })
    }
    const tooEarlyMs = this.readAt + gatherMs - clock.monotonic()
    if (tooEarlyMs > 0 && !this.closed) {
      await new Promise<void>((resolve) => {
        this.wakeUp = () => {
          if (this.closed) resolve()
        }
        timer?.cancel()
        timer = clock.after(tooEarlyMs, resolve)
      })
    }
    timer?.cancel()
    this.wakeUp = undefined
  }
}
