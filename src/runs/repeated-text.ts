// After a crash the interrupted step is asked again. If the model repeats the text that
// readers already have, the repeated part is not emitted again. If the new text differs, the
// old text is superseded by it. Pure.

export type TextDecision = {
  /** The new text differs: the shown message must be superseded, and `fresh` begins a new one. */
  diverged: boolean
  /** Text to emit now. */
  fresh: string
}

const nothingYet: TextDecision = { diverged: false, fresh: '' }

export class RepeatedTextFilter {
  private readonly shown: string
  private received = ''
  private settled: boolean

  constructor(shown: string) {
    this.shown = shown
    this.settled = shown === ''
  }

  feed(text: string): TextDecision {
    if (this.settled) return { diverged: false, fresh: text }
    this.received += text
    if (this.received.startsWith(this.shown)) {
      this.settled = true
      return { diverged: false, fresh: this.received.slice(this.shown.length) }
    }
    if (this.shown.startsWith(this.received)) return nothingYet
    this.settled = true
    return { diverged: true, fresh: this.received }
  }

  /** To be called when the answer is complete. An answer that is shorter than the shown text differs from it. */
  end(): TextDecision {
    if (this.settled) return nothingYet
    this.settled = true
    return { diverged: true, fresh: this.received }
  }
}
