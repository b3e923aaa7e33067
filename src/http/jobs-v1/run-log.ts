// What a terminal would have shown of a run, as a fold of its journal. Only ever
// appended to, so that a range of bytes stays what it was.
//
//   stdout: what the model said, and what tools gave back
//   stderr: what went wrong
//   pty: both, as they happened

import type { RunEvent } from '../../journal/event.ts'

export const logStreams = ['stdout', 'stderr', 'pty'] as const
export type LogStream = (typeof logStreams)[number]

export type RunLog = { prompt: string | undefined } & Record<LogStream, string>

export class RunLogFold {
  prompt: string | undefined
  private readonly parts: Record<LogStream, string[]> = { stdout: [], stderr: [], pty: [] }
  /** The message whose text is being written, which may not have ended its line. */
  private speaking: string | undefined
  private endsLine = true

  add(event: RunEvent): void {
    switch (event.type) {
      case 'run.accepted':
      case 'run.prepared':
        this.prompt = event.data.input
        return
      case 'text.delta':
        if (this.speaking !== event.data.messageId) this.endLine()
        this.speaking = event.data.messageId
        this.write('stdout', event.data.text)
        return
      case 'message.done':
        this.endLine()
        return
      case 'tool.done':
        this.endLine()
        if (event.data.output !== undefined) this.writeLine('stdout', textOf(event.data.output))
        if (event.data.error !== undefined)
          this.writeLine('stderr', `${event.data.error.code}: ${event.data.error.message}`)
        return
      case 'diagnostic':
        this.writeLine('stderr', `${event.data.code}: ${event.data.message}`)
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

  text(): RunLog {
    const { stdout, stderr, pty } = this.parts
    return { prompt: this.prompt, stdout: stdout.join(''), stderr: stderr.join(''), pty: pty.join('') }
  }

  private write(stream: 'stdout' | 'stderr', text: string): void {
    if (text === '') return
    this.parts[stream].push(text)
    this.parts.pty.push(text)
    if (stream === 'stdout') this.endsLine = text.endsWith('\n')
  }

  private writeLine(stream: 'stdout' | 'stderr', text: string): void {
    this.write(stream, text.endsWith('\n') ? text : `${text}\n`)
  }

  private endLine(): void {
    if (!this.endsLine) this.write('stdout', '\n')
    this.speaking = undefined
  }
}

function textOf(output: unknown): string {
  return typeof output === 'string' ? output : JSON.stringify(output)
}

export type LogRange = { byte_from: number; byte_to: number; chunk: string }

/** Bytes of `text`, within its bounds and never half of a character: the range grows to whole ones, and says so. */
export function logRange(text: string, from: number, to: number): LogRange {
  const bytes = Buffer.from(text, 'utf8')
  const start = wholeCharacter(bytes, Math.min(from, bytes.length), -1)
  const end = to <= from ? start : wholeCharacter(bytes, Math.min(to, bytes.length), 1)
  return { byte_from: start, byte_to: Math.max(start, end), chunk: bytes.toString('utf8', start, Math.max(start, end)) }
}

function wholeCharacter(bytes: Buffer, at: number, direction: 1 | -1): number {
  let place = at
  while (place > 0 && place < bytes.length && ((bytes[place] ?? 0) & 0xc0) === 0x80) place += direction
  return place
}
