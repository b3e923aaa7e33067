// What commands print. Results go to stdout, so that they can be piped; notes and progress go to stderr. Text of models,
// tools and users cannot move the cursor or change the terminal: control characters are shown as `\x1b`.

import type { Writable } from 'node:stream'

export type TerminalStream = Writable & { isTTY?: boolean; columns?: number }

/** Redrawing more often than this only costs time. */
const progressEveryMs = 100
const barWidth = 24

// eslint-disable-next-line no-control-regex -- these are the characters to find
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g

/** Text of others, safe to print. Line feeds and tabs stay. */
export function printable(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(controls, (character) => {
    const code = character.charCodeAt(0)
    return code > 0xff ? `\\u${code.toString(16)}` : `\\x${code.toString(16).padStart(2, '0')}`
  })
}

/** The same on one line. */
export function printableLine(text: string): string {
  return printable(text).replace(/\s*\n\s*/g, ' ')
}

export class Output {
  readonly stdout: TerminalStream
  readonly stderr: TerminalStream
  /** Whether text without a line feed is the last on stdout. */
  private isInLine = false

  constructor(stdout: TerminalStream, stderr: TerminalStream) {
    this.stdout = stdout
    this.stderr = stderr
    // The reader of a pipe may leave early, as `head` does.
    for (const stream of [stdout, stderr]) {
      stream.on('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'EPIPE') process.exit(0)
        throw error
      })
    }
  }

  get isTerminal(): boolean {
    return this.stdout.isTTY === true
  }

  write(text: string): void {
    if (text !== '') this.isInLine = !text.endsWith('\n')
    this.stdout.write(text)
  }

  line(text = ''): void {
    this.write(`${text}\n`)
  }

  /** One value on one line. */
  json(value: unknown): void {
    this.stdout.write(`${JSON.stringify(value)}\n`)
  }

  note(text: string): void {
    // In a terminal both are on one screen, and a note does not belong into the text of an answer.
    const isOneScreen = this.stdout.isTTY === true && this.stderr.isTTY === true
    this.stderr.write(`${this.isInLine && isOneScreen ? '\n' : ''}${text}\n`)
    if (isOneScreen) this.isInLine = false
  }

  /** Waits until what was written has left the process's buffer, so that a slow reader holds up the writer. */
  async drained(): Promise<void> {
    if (!this.stdout.writableNeedDrain) return
    await new Promise<void>((resolve) => this.stdout.once('drain', () => resolve()))
  }

  /** Columns as wide as their widest cell. */
  table(head: readonly string[], rows: readonly (readonly string[])[]): void {
    const cells = [head, ...rows].map((row) => row.map((cell) => printableLine(cell)))
    const widths = head.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)))
    for (const row of cells) {
      this.line(
        row.map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0))).join('  '),
      )
    }
  }

  /** A bar on stderr, if that is a terminal. `total` is null if it is not known. */
  progress(label: string, now: () => number): Progress {
    return new Progress(this.stderr, label, now)
  }
}

class Progress {
  private readonly stream: TerminalStream
  private readonly label: string
  private readonly now: () => number
  private drawnAt = 0
  private isDrawn = false

  constructor(stream: TerminalStream, label: string, now: () => number) {
    this.stream = stream
    this.label = label
    this.now = now
  }

  update(done: number, total: number | null, unit = ''): void {
    const now = this.now()
    if (this.stream.isTTY !== true || (this.isDrawn && now - this.drawnAt < progressEveryMs)) return
    this.drawnAt = now
    this.isDrawn = true
    const part = total === null || total === 0 ? null : Math.min(1, done / total)
    const bar =
      part === null
        ? ''
        : ` ${'█'.repeat(Math.round(part * barWidth)).padEnd(barWidth, '░')} ${Math.floor(part * 100)} %`
    this.stream.write(`\r\u001b[K${this.label}${bar} ${done.toLocaleString('en')}${unit}`)
  }

  end(): void {
    if (this.isDrawn) this.stream.write('\r\u001b[K')
  }
}
