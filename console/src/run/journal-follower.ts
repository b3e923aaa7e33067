// Reads the journal of one run, live, and hands its rows to a sink: a few milliseconds of work in each animation frame, so
// that a long run never blocks the page.

import type { PolylogError } from '@polylog/client'
import type { Api } from '../api/api.ts'
import { problemOf } from '../api/use-loaded.ts'
import { createStore, type Store } from '../app/store.ts'
import type { JournalRow } from './journal-row.ts'
import { journalRows, sips, takeStreamPlace } from './run-connection.ts'
import type { Connection } from './run-follower.ts'

export type FollowedJournal = {
  /** How many rows the sink has. */
  count: number
  connection: Exclude<Connection, 'cut' | 'caught-up'>
  error: PolylogError | null
}

/** The work of one animation frame. */
const sliceMs = 6
/** A hidden page gets no animation frames. */
const hiddenMs = 250

export class JournalFollower {
  readonly journal: Store<FollowedJournal>
  private readonly api: Api
  private readonly runId: string
  private readonly formats: string
  private readonly sink: (row: JournalRow) => void
  private waiting: JournalRow[] = []
  private taken = 0
  private isScheduled = false
  private isRead = false

  constructor(api: Api, runId: string, formats: readonly string[], sink: (row: JournalRow) => void) {
    this.api = api
    this.runId = runId
    this.formats = formats.join(',')
    this.sink = sink
    this.journal = createStore<FollowedJournal>({ count: 0, connection: 'connecting', error: null })
  }

  /** Reads until the run ends or the returned function is called; the next call goes on after the last row. */
  follow(): () => void {
    const controller = new AbortController()
    void this.read(controller)
    return () => controller.abort()
  }

  private async read(controller: AbortController): Promise<void> {
    const { signal } = controller
    const state = this.journal.get()
    if (this.isRead && this.waiting.length === 0 && state.connection === 'ended') return
    const { api, runId, formats } = this
    const after = this.waiting.at(-1)?.seq ?? this.lastSeq
    const onConnection = ({ state: next }: { state: 'open' | 'waiting' }) => {
      if (!signal.aborted) this.change({ connection: next === 'open' ? 'live' : 'reconnecting' })
    }
    try {
      const rows = (await takeStreamPlace(signal))
        ? journalRows(api, runId, { after: String(after), formats, signal, onConnection })
        : sips(api, runId, { after, formats, signal, onRest: () => this.change({ connection: 'live' }) })
      let rested = performance.now()
      for await (const row of rows) {
        if (signal.aborted) return
        this.waiting.push(row)
        this.schedule()
        if (row.type === 'run.ended') break
        // One packet of the network may hold thousands of rows.
        if (performance.now() - rested > sliceMs && !document.hidden) {
          await new Promise((resolve) => setTimeout(resolve))
          rested = performance.now()
        }
      }
      if (signal.aborted) return
      this.isRead = true
      this.schedule()
    } catch (error) {
      if (signal.aborted) return
      this.change({ connection: 'failed', error: problemOf(error) })
    } finally {
      // Gives the place to another stream.
      controller.abort()
    }
  }

  private lastSeq = 0

  private schedule(): void {
    if (this.isScheduled) return
    this.isScheduled = true
    const work = () => {
      this.isScheduled = false
      this.work()
    }
    if (document.hidden) setTimeout(work, hiddenMs)
    else requestAnimationFrame(work)
  }

  private work(): void {
    const until = performance.now() + sliceMs
    let index = 0
    while (index < this.waiting.length && (document.hidden || performance.now() < until)) {
      const row = this.waiting[index] as JournalRow
      index += 1
      // A row that comes twice, after two readers of one follower, counts once.
      if (row.seq <= this.lastSeq) continue
      this.lastSeq = row.seq
      this.taken += 1
      this.sink(row)
    }
    this.waiting = this.waiting.slice(index)
    const isDone = this.isRead && this.waiting.length === 0
    this.change({ count: this.taken, ...(isDone ? { connection: 'ended', error: null } : {}) })
    if (this.waiting.length > 0) this.schedule()
  }

  private change(changes: Partial<FollowedJournal>): void {
    this.journal.set((old) => ({ ...old, ...changes }))
  }
}
