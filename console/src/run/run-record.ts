// Everything that is known of one run: its events, and its state after any of them. The fold is that of the live view. It
// leaves a checkpoint every few hundred events, so a step anywhere costs the same, however long the run is.

import { severityOf } from './event-groups.ts'
import { framesOf, type JournalRow } from './journal-row.ts'
import { emptyView, reduceView, type RunView } from './run-view.ts'
import { Waterfall } from './waterfall.ts'

const rowsPerCheckpoint = 256

export class RunRecord {
  readonly rows: JournalRow[] = []
  /** The time of each row. A clock that was set back does not turn the order round. */
  readonly times: number[] = []
  /** The indices of the rows in which something went wrong. */
  readonly errors: number[] = []
  readonly waterfall = new Waterfall()
  /** The view before row 0, row 256, row 512… */
  private readonly checkpoints: RunView[] = [emptyView]
  private head: RunView = emptyView
  /** The event that each block of the conversation began with. */
  private readonly blockSeqs = new Map<string, number>()
  /** The view that was asked for last: the next one is usually a little later. */
  private recent = { count: 0, view: emptyView }

  add(row: JournalRow): void {
    this.rows.push(row)
    const time = Math.max(this.times.at(-1) ?? row.atMs, row.atMs)
    this.times.push(time)
    if (severityOf(row) === 'error') this.errors.push(this.rows.length - 1)
    this.waterfall.add(row, time)
    const before = this.head
    this.head = reduced(before, row)
    const block = this.head.state.blocks.at(-1)
    if (block !== undefined && this.head.state.blocks.length > before.state.blocks.length) {
      this.blockSeqs.set(`${block.type} ${block.id}`, row.seq)
    }
    if (this.rows.length % rowsPerCheckpoint === 0) this.checkpoints.push(this.head)
  }

  /** The view after the first `count` rows. */
  viewAfter(count: number): RunView {
    if (count >= this.rows.length) return this.head
    const checkpoint = Math.floor(count / rowsPerCheckpoint)
    let from = checkpoint * rowsPerCheckpoint
    let view = this.checkpoints[checkpoint] ?? emptyView
    if (this.recent.count <= count && this.recent.count > from) ({ count: from, view } = this.recent)
    for (let index = from; index < count; index++) view = reduced(view, this.rows[index] as JournalRow)
    this.recent = { count, view }
    return view
  }

  /** The number of the event that a block of the conversation began with. */
  seqOfBlock({ type, id }: { type: string; id: string }): number | undefined {
    return this.blockSeqs.get(`${type} ${id}`)
  }

  /** The index of the last row up to this number of the journal; -1 if there is none. */
  indexOfSeq(seq: number): number {
    return lastUpTo(this.rows.length, (index) => (this.rows[index] as JournalRow).seq <= seq)
  }

  /** The index of the last row up to this time; -1 if there is none. */
  indexOfTime(time: number): number {
    return lastUpTo(this.times.length, (index) => (this.times[index] as number) <= time)
  }

  /** The index of the next error after this row, or of the first one. */
  nextError(after: number): number | undefined {
    return this.errors.find((index) => index > after) ?? this.errors[0]
  }
}

function reduced(view: RunView, row: JournalRow): RunView {
  for (const frame of framesOf(row)) view = reduceView(view, frame)
  return view
}

/** The last index for which `fits`, if it fits for all before that one. */
function lastUpTo(length: number, fits: (index: number) => boolean): number {
  let low = 0
  let high = length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (fits(middle)) low = middle + 1
    else high = middle
  }
  return low - 1
}
