// Styles Markdown while it arrives: headings and `**bold**` are bold, code is coloured. The text itself stays as it is, so
// that it can be copied; only what could be the beginning of a mark is held back until the next piece has come.

import type { Styles } from './styles.ts'

export class MarkdownStream {
  private readonly styles: Styles
  private held = ''
  private atLineStart = true
  private lineIsHeading = false
  private inBold = false
  private inCode = false
  private inFence = false

  constructor(styles: Styles) {
    this.styles = styles
  }

  /** The styled text of everything that is certain. */
  push(piece: string): string {
    let shown = ''
    const text = this.held + piece
    let at = 0
    while (at < text.length) {
      const rest = text.slice(at)
      // A mark of several characters may not be complete yet.
      if (this.atLineStart && /^`{1,2}$/.test(rest)) break
      if (!this.atLineStart && rest === '*') break
      const length = this.markLength(rest)
      if (length > 0) {
        shown += this.paint(rest.slice(0, length))
        this.endMark(rest.slice(0, length))
        at += length
        continue
      }
      const character = rest[0] ?? ''
      shown += this.paint(character)
      this.startOfNext(character)
      at += 1
    }
    this.held = text.slice(at)
    return shown
  }

  /** What was held back; the next text begins a new document. */
  end(): string {
    const shown = this.held === '' ? '' : this.paint(this.held)
    this.held = ''
    this.atLineStart = true
    this.lineIsHeading = this.inBold = this.inCode = this.inFence = false
    return shown
  }

  private markLength(rest: string): number {
    if (this.atLineStart && rest.startsWith('```')) return 3
    if (this.inFence) return 0
    if (!this.inCode && rest.startsWith('**')) return 2
    return rest.startsWith('`') && !this.atLineStart ? 1 : 0
  }

  private endMark(mark: string): void {
    this.atLineStart = false
    if (mark === '```') this.inFence = !this.inFence
    else if (mark === '**') this.inBold = !this.inBold
    else this.inCode = !this.inCode
  }

  private startOfNext(character: string): void {
    if (this.atLineStart && !this.inFence && character === '#') this.lineIsHeading = true
    this.atLineStart = character === '\n'
    if (!this.atLineStart) return
    // A mark that was never closed ends with its line.
    this.lineIsHeading = this.inBold = this.inCode = false
  }

  private paint(text: string): string {
    if (text === '\n') return text
    if (this.inFence || this.inCode) return this.styles.cyan(text)
    return this.inBold || this.lineIsHeading ? this.styles.bold(text) : text
  }
}
