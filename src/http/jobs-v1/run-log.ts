// Folds the journal of a run into a log as a terminal would show it. The log only grows
// at its end, so a byte range always has the same content. The fold keeps only the bytes
// that the request asked for.
//
//   stdout: the text of the model, and the results of tools
//   stderr: errors
//   pty: both, in the order in which they were written

import type { RunEvent } from '../../journal/event.ts'

export const logStreams = ['stdout', 'stderr', 'pty'] as const
export type LogStream = (typeof logStreams)[number]

export class RunLogFold {
  prompt: string | undefined
  private readonly texts: Record<LogStream, TextWindow>
  /** The message whose text is being written; its last line may still be open. */
  private currentMessageId: string | undefined
  private endsLine = true

  /** Keeps the bytes from `from` up to, not including, `to`. */
  constructor(from: number, to: number) {
    const text = () => new TextWindow(from, to)
    this.texts = { stdout: text(), stderr: text(), pty: text() }
  }

  add(event: RunEvent): void {
    switch (event.type) {
      case 'run.accepted':
      case 'run.prepared':
        this.prompt = event.data.input
        return
      case 'text.delta':
        if (this.currentMessageId !== event.data.messageId) this.endLine()
        this.currentMessageId = event.data.messageId
        this.write('stdout', event.data.text)
        return
      case 'message.done':
        this.endLine()
        return
      case 'tool.done':
        this.endLine()
        if (event.data.output !== undefined) this.writeLine('stdout', outputText(event.data.output))
        if (event.data.error !== undefined)
          this.writeLine('stderr', `${event.data.error.code}: ${event.data.error.message}`)
        return
      case 'diagnostic':
        this.writeLine('stderr', `${event.data.code}: ${event.data.message}`)
        return
      case 'context.cut':
        this.writeLine('stderr', `context_cut: ${event.data.messages} older messages are no longer given to the model`)
        return
      case 'context.summarised':
        this.writeLine('stderr', `context_summarised: a summary replaces ${event.data.messages} older messages`)
        return
      case 'output.rejected':
        this.writeLine('stderr', `output_invalid: ${event.data.errors.join('; ')}`)
        return
      case 'run.ended':
        this.endLine()
        if (event.data.error !== undefined)
          this.writeLine('stderr', `${event.data.error.code}: ${event.data.error.message}`)
        if (event.data.status === 'canceled') this.writeLine('stderr', 'The run was canceled.')
        return
      default:
    }
  }

  /** The size of the whole stream, not only of the bytes that were kept. */
  bytes(stream: LogStream): number {
    return this.texts[stream].bytes
  }

  range(stream: LogStream): LogRange {
    return { stream, ...this.texts[stream].range() }
  }

  private write(stream: 'stdout' | 'stderr', text: string): void {
    if (text === '') return
    this.texts[stream].add(text)
    this.texts.pty.add(text)
    if (stream === 'stdout') this.endsLine = text.endsWith('\n')
  }

  private writeLine(stream: 'stdout' | 'stderr', text: string): void {
    this.write(stream, text.endsWith('\n') ? text : `${text}\n`)
  }

  private endLine(): void {
    if (!this.endsLine) this.write('stdout', '\n')
    this.currentMessageId = undefined
  }
}

function outputText(output: unknown): string {
  return typeof output === 'string' ? output : JSON.stringify(output)
}

export type LogRange = { stream: LogStream; byte_from: number; byte_to: number; chunk: string }

/** The size of the longest UTF-8 character: a range may have to grow by this much to hold whole characters. */
const characterBytes = 4

/** Counts the bytes of a growing text and keeps one range of it. */
class TextWindow {
  bytes = 0
  private readonly from: number
  private readonly to: number
  private readonly kept: string[] = []
  private keptFrom = 0

  constructor(from: number, to: number) {
    this.from = from
    this.to = to
  }

  add(text: string): void {
    const start = this.bytes
    this.bytes += Buffer.byteLength(text)
    if (this.bytes <= this.from - characterBytes || start >= this.to + characterBytes) return
    if (this.kept.length === 0) this.keptFrom = start
    this.kept.push(text)
  }

  /** The range, clamped to the text and widened to whole characters; the result has the adjusted bounds. */
  range(): Omit<LogRange, 'stream'> {
    const kept = Buffer.from(this.kept.join(''), 'utf8')
    if (kept.length === 0) this.keptFrom = this.bytes
    const local = (place: number) => Math.min(Math.max(place - this.keptFrom, 0), kept.length)
    const start = wholeCharacter(kept, local(this.from), -1)
    const end = this.to <= this.from ? start : Math.max(start, wholeCharacter(kept, local(this.to), 1))
    return {
      byte_from: this.keptFrom + start,
      byte_to: this.keptFrom + end,
      chunk: kept.toString('utf8', start, end),
    }
  }
}

function wholeCharacter(bytes: Buffer, at: number, direction: 1 | -1): number {
  let place = at
  while (place > 0 && place < bytes.length && ((bytes[place] ?? 0) & 0xc0) === 0x80) place += direction
  return place
}
