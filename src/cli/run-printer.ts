// Prints a run for people, frame by frame, as it happens: its text as it comes, and one line for each change of a tool call.

import type { NativeFrameData } from '../../client/src/native.ts'
import type { RunFrame } from '../../client/src/run.ts'
import { MarkdownStream } from './markdown-stream.ts'
import { type Output, printable, printableLine } from './output.ts'
import type { Styles } from './styles.ts'
import { durationText } from './times.ts'

const inputCharsMax = 200
const resultCharsMax = 160

export class RunPrinter {
  private readonly output: Output
  private readonly styles: Styles
  private readonly markdown: MarkdownStream
  private readonly startedTools = new Map<string, number>()
  /** The message or the reasoning whose text is being printed. */
  private open: { id: string; kind: 'text' | 'reasoning' } | undefined
  private startedAt: number | undefined

  constructor(output: Output, styles: Styles) {
    this.output = output
    this.styles = styles
    this.markdown = new MarkdownStream(styles)
  }

  /** `showInput`: false if the person has just typed it. */
  frame(frame: RunFrame, { showInput = true } = {}): void {
    const { styles, output } = this
    switch (frame.event) {
      case 'agent.start':
        this.startedAt = frame.data.createdAtMs
        if (showInput && frame.data.input !== '') output.line(styles.bold(`> ${printable(frame.data.input)}`))
        return
      case 'agent.delta':
        return this.text('text', frame.data.id, frame.data.delta)
      case 'agent.reasoning':
        return this.text('reasoning', frame.data.id, frame.data.delta)
      case 'agent.message':
        return this.message(frame.data)
      case 'agent.source': {
        const { url, title } = frame.data
        return this.line(styles.dim(`  source: ${printableLine([title, url].filter(Boolean).join(' '))}`))
      }
      case 'tool.state':
        return this.tool(frame.data)
      case 'input.required':
        return this.line(styles.yellow(`? ${printable(frame.data.prompt)}`))
      case 'input.resolved':
        return this.line(styles.dim(`  ${frame.data.resolution} by ${printableLine(frame.data.by)}`))
      case 'context.patch':
        return
      case 'error':
        return this.line(styles.red(`✖ ${printableLine(frame.data.message)} (${printableLine(frame.data.code)})`))
      case 'agent.end':
        return this.end(frame.data)
      default:
        // A frame of a newer server.
        return
    }
  }

  /** Prints a line of its own, after the text that is being printed. */
  line(text: string): void {
    this.closeText()
    this.output.line(text)
  }

  closeText(): void {
    if (this.open === undefined) return
    this.output.write(`${this.markdown.end()}\n`)
    this.open = undefined
  }

  private text(kind: 'text' | 'reasoning', id: string, piece: string): void {
    if (this.open?.id !== id) {
      this.closeText()
      this.open = { id, kind }
    }
    const shown = printable(piece)
    this.output.write(kind === 'text' ? this.markdown.push(shown) : this.styles.dim(shown))
  }

  private message({ id, role, content, metadata }: NativeFrameData['agent.message']): void {
    const isPrinted = this.open?.id === id
    // A reader that came later gets a message that is complete without its pieces.
    if (!isPrinted && role === 'assistant' && content !== '' && metadata.state === undefined)
      this.text('text', id, content)
    this.closeText()
    if (metadata.state === 'superseded')
      this.line(this.styles.dim('  (the server was restarted; the model answers again)'))
  }

  private tool(data: NativeFrameData['tool.state']): void {
    const { styles } = this
    const { toolId, status, atMs } = data
    const name = printableLine(data.name)
    const input = data.input === undefined ? '' : ` ${cutLine(JSON.stringify(data.input), inputCharsMax)}`
    if (status === 'running' && !this.startedTools.has(toolId)) this.startedTools.set(toolId, atMs)
    // The time of a person is not that of the tool.
    if (status === 'awaiting_input') this.startedTools.delete(toolId)
    const took = durationText(atMs - (this.startedTools.get(toolId) ?? atMs))
    const note = data.message === undefined ? '' : `: ${cutLine(data.message, resultCharsMax)}`
    if (status === 'queued') this.line(styles.dim(`⚙ ${name}${input}`))
    else if (status === 'running') {
      // That it was called has been said; only news are worth a line.
      if (note !== '') this.line(styles.dim(`⚙ ${name}${note}`))
    } else if (status === 'awaiting_input') this.line(styles.yellow(`? ${name} waits for a decision${note}`))
    else if (status === 'succeeded') this.line(styles.green(`✔ ${name} (${took})`) + styles.dim(note))
    else {
      const why = data.error === undefined ? note : `: ${cutLine(data.error.message, resultCharsMax)}`
      this.line(styles.red(`✖ ${name} ${status} (${took})${why}`))
    }
  }

  private end({ status, finishedAtMs, usage, reason }: NativeFrameData['agent.end']): void {
    const facts = [
      ...(this.startedAt === undefined ? [] : [durationText(finishedAtMs - this.startedAt)]),
      ...(usage === undefined ? [] : [`${usage.inputTokens ?? 0} + ${usage.outputTokens ?? 0} tokens`]),
      ...(reason === undefined ? [] : [printableLine(reason)]),
    ]
    const sentence = `— ${status}${facts.length === 0 ? '' : `: ${facts.join(', ')}`}`
    this.line(status === 'failed' ? this.styles.red(sentence) : this.styles.dim(sentence))
  }
}

/** On one line, with its full length if it is cut. */
export function cutLine(text: string, charsMax: number): string {
  const line = printableLine(text)
  return line.length <= charsMax ? line : `${line.slice(0, charsMax)}… (${line.length} characters)`
}
