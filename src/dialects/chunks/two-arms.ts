// Merges the frames of two runs into one stream. Each frame is tagged with its arm, and its
// address gives the reader's position in both arms (`a:12,b:7`). Pure: the order in which
// events are passed in only decides how the arms interleave; each arm sends exactly the
// frames that it would send alone.
//
// The last frames of both arms are held back until both runs have ended, and are then sent
// together (a first), because only then is it known whether a vote is possible.

import { AppError } from '../../errors/app-error.ts'
import type { RunEvent } from '../../journal/event.ts'
import {
  addressOf,
  addressSpelling,
  beginning,
  type Cursor,
  type CursorSpelling,
  cursorText,
  hasFrame,
  parseCursor,
} from '../cursor.ts'
import { type Dialect, endsStream, type Frame } from '../dialect.ts'

export type Arm = 'a' | 'b'

export type ArmCursors = Readonly<Record<Arm, Cursor>>

export const armsBeginning: ArmCursors = { a: beginning, b: beginning }

/** Parses `a:12,b:7.2`, or `0` for the beginning; throws `unknown_cursor` for anything else. */
export function parseArmCursors(text: string): ArmCursors {
  if (text.trim() === '0') return armsBeginning
  const match = /^a:([\d.]+),b:([\d.]+)$/.exec(text.trim())
  if (match === null) {
    throw new AppError(
      'unknown_cursor',
      `The cursor ${JSON.stringify(text.slice(0, 60))} cannot be read: send the id of the last frame you got (a:12,b:7), or 0.`,
    )
  }
  return { a: parseCursor(match[1] as string), b: parseCursor(match[2] as string) }
}

/** The later cursor of each arm. */
export function furthestArms(left: ArmCursors, right: ArmCursors): ArmCursors {
  const { furthest } = addressSpelling
  return { a: furthest(left.a, right.a), b: furthest(left.b, right.b) }
}

export const armSpelling: CursorSpelling<ArmCursors> = {
  beginning: armsBeginning,
  parse: parseArmCursors,
  furthest: furthestArms,
}

/** The last frame of an arm, held back until the other arm has ended. */
type LastFrame = { readonly address: string; readonly frame: Frame; readonly seen: boolean; readonly done: boolean }

export type TwoArmsOptions<State> = {
  dialect: Dialect<State>
  runs: Readonly<Record<Arm, string>>
  comparisonId: string
  /** The reader has seen everything up to here. */
  cursor: ArmCursors
}

export class TwoArms<State> {
  private readonly options: TwoArmsOptions<State>
  private readonly states: Record<Arm, State>
  /** The address of the last frame that was sent, for each arm. */
  private readonly at: Record<Arm, string>
  private readonly held: Partial<Record<Arm, LastFrame>> = {}

  constructor(options: TwoArmsOptions<State>) {
    const { dialect, runs, cursor } = options
    this.options = options
    this.states = { a: dialect.open({ runId: runs.a }), b: dialect.open({ runId: runs.b }) }
    this.at = { a: cursorText(cursor.a), b: cursorText(cursor.b) }
  }

  /** Takes the next events of one arm, in order. `over` is true when both arms have sent everything. */
  take(arm: Arm, events: readonly RunEvent[]): { text: string; over: boolean } {
    const { dialect, cursor } = this.options
    let text = ''
    for (const event of events) {
      const projection = dialect.step(this.states[arm], event)
      this.states[arm] = projection.state
      const last = endsStream(dialect, event)
      const count = projection.frames.length
      for (const [index, frame] of projection.frames.entries()) {
        const seen = hasFrame(cursor[arm], event.seq, index)
        const address = addressOf(event.seq, index, count)
        if (last && index === count - 1)
          this.held[arm] = {
            address,
            frame,
            seen,
            done: event.type === 'run.ended' && event.data.status === 'succeeded',
          }
        else if (!seen) text += this.encode(arm, address, frame)
      }
    }
    const { a, b } = this.held
    if (a === undefined || b === undefined) return { text, over: false }
    return { text: text + this.encodeLastFrames(a, b), over: true }
  }

  private encode(arm: Arm, address: string, frame: Frame, more: Record<string, unknown> = {}): string {
    this.at[arm] = address
    const data = { ...(frame.data as Record<string, unknown>), arm, ...more }
    return this.options.dialect.encode({ name: frame.name, data }, `a:${this.at.a},b:${this.at.b}`)
  }

  private encodeLastFrames(a: LastFrame, b: LastFrame): string {
    const vote = a.done && b.done
    const more = {
      comparison_id: this.options.comparisonId,
      vote_requested: vote,
      ...(vote ? {} : { vote_note: 'One of the answers did not come to its end, so no vote is asked.' }),
    }
    return (
      (a.seen ? '' : this.encode('a', a.address, a.frame, more)) +
      (b.seen ? '' : this.encode('b', b.address, b.frame, more))
    )
  }
}
