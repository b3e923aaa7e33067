// Bounds the output of a command: the beginning and the end are kept, and the middle of a
// long output is replaced by a count. Meanwhile new lines are reported as progress, a few
// times a second and up to a limit.

import type { Clock, Timer } from '../../kit/clock.ts'

const headCharsMax = 200_000
const tailCharsMax = 200_000

export class ShellOutput {
  private readonly decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
  private head = ''
  private tail = ''
  private left = 0

  /** The number of characters in memory. It stays bounded, however much the command writes. */
  get heldChars(): number {
    return this.head.length + this.tail.length
  }

  /** Returns the new text. */
  add(from: 'stdout' | 'stderr', bytes: Uint8Array): string {
    const text = this.decoders[from].decode(bytes, { stream: true })
    const room = headCharsMax - this.head.length
    if (room > 0) this.head += text.slice(0, room)
    this.tail += text.slice(Math.max(room, 0))
    // Cut only at twice the limit, so that many small chunks do not copy the tail each time.
    if (this.tail.length > 2 * tailCharsMax) this.cut()
    return text
  }

  text(): string {
    if (this.tail.length > tailCharsMax) this.cut()
    return this.left === 0
      ? this.head + this.tail
      : `${this.head}\n[… ${this.left} characters left out …]\n${this.tail}`
  }

  private cut(): void {
    const over = this.tail.length - tailCharsMax
    this.left += over
    this.tail = this.tail.slice(over)
  }
}

const progressEveryMs = 200
const progressCharsMax = 4000
const progressCharsInAll = 200_000

/** Collects text and reports it at intervals, in whole lines until the output ends. */
export class LineProgress {
  private readonly clock: Clock
  private readonly report: (message: string) => void
  private waiting = ''
  private said = 0
  private timer: Timer | null = null

  constructor(clock: Clock, report: (message: string) => void) {
    this.clock = clock
    this.report = report
  }

  add(text: string): void {
    if (this.said > progressCharsInAll) return
    // If output comes faster than it is reported, only the newest is shown.
    this.waiting = (this.waiting + text).slice(-progressCharsMax)
    this.timer ??= this.clock.after(progressEveryMs, () => {
      this.timer = null
      this.flush(false)
    })
  }

  end(): void {
    this.timer?.cancel()
    this.timer = null
    this.flush(true)
  }

  private flush(last: boolean): void {
    const end = last ? this.waiting.length : this.waiting.lastIndexOf('\n') + 1
    const lines = (end === 0 ? this.waiting : this.waiting.slice(0, end)).trimEnd()
    this.waiting = end === 0 ? '' : this.waiting.slice(end)
    if (lines === '') return
    this.said += lines.length
    this.report(this.said > progressCharsInAll ? 'There is more output; the end of it is in the result.' : lines)
  }
}
