// What a person types. In a terminal every key arrives at once: while a line is asked for, keys edit it; otherwise a handler
// gets them, and keys that it does not use are kept for the next line, so that a person can type ahead. Without a terminal,
// lines of a pipe are the messages, and there are no keys.

import { createInterface, type Interface } from 'node:readline'
import { PassThrough, type Readable } from 'node:stream'
import type { TerminalStream } from './output.ts'

export type KeyInput = Readable & { isTTY?: boolean; setRawMode?(isRaw: boolean): unknown; unref?(): unknown }

export const ctrlC = '\u0003'
export const ctrlD = '\u0004'

/** More typed ahead than this is dropped. */
const aheadCharsMax = 10_000

/** True if the key was used. */
export type KeyHandler = (key: string) => boolean

export class Keyboard {
  readonly isTerminal: boolean
  private readonly input: KeyInput
  private readonly output: TerminalStream
  private readonly lineInput = new PassThrough()
  private readonly history: string[] = []
  private pipe: AsyncIterator<string> | undefined
  private line: Interface | undefined
  private handler: KeyHandler | undefined
  private ahead = ''

  constructor(input: KeyInput, output: TerminalStream) {
    this.input = input
    this.output = output
    this.isTerminal = input.isTTY === true && output.isTTY === true
    if (!this.isTerminal) return
    input.setRawMode?.(true)
    input.setEncoding('utf8')
    input.on('data', (keys: string) => this.typed(keys))
    input.on('end', () => this.typed(ctrlD))
  }

  close(): void {
    this.line?.close()
    if (this.isTerminal) this.input.setRawMode?.(false)
    this.input.pause()
    this.input.unref?.()
  }

  /** While it is set, it gets the keys. */
  handleKeys(handler: KeyHandler | undefined): void {
    this.handler = handler
  }

  /** A line of text; null if the person leaves (Ctrl-C or Ctrl-D), or if the pipe has ended, or after an abort. */
  async readLine(prompt: string, options: { prefill?: string; signal?: AbortSignal } = {}): Promise<string | null> {
    if (!this.isTerminal) return await this.readPipe()
    const line = createInterface({
      input: this.lineInput,
      output: this.output,
      terminal: true,
      history: [...this.history],
      prompt,
    })
    this.line = line
    try {
      return await new Promise<string | null>((resolve) => {
        line.once('line', resolve)
        line.once('close', () => resolve(null))
        line.once('SIGINT', () => resolve(null))
        options.signal?.addEventListener('abort', () => resolve(null))
        line.prompt()
        const typed = (options.prefill ?? '') + this.ahead
        this.ahead = ''
        if (typed !== '') this.lineInput.write(typed)
      }).then((text) => {
        if (text !== null && text.trim() !== '') this.history.unshift(text)
        return text
      })
    } finally {
      this.line = undefined
      line.close()
    }
  }

  private async readPipe(): Promise<string | null> {
    this.pipe ??= createInterface({ input: this.input })[Symbol.asyncIterator]()
    const next = await this.pipe.next()
    return next.done === true ? null : next.value
  }

  private typed(keys: string): void {
    if (this.handler === undefined && this.line !== undefined) {
      this.lineInput.write(keys)
      return
    }
    // A paste arrives in one piece.
    for (const key of keys) {
      if (this.handler?.(key) === true) continue
      if (this.ahead.length < aheadCharsMax && key !== ctrlC && key !== ctrlD) this.ahead += key
    }
  }
}
