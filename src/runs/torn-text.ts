// After a crash the interrupted step is asked again. What the model then repeats
// word for word of the text already shown is not shown again; where it says
// something else, the shown text is superseded. Pure: text in, decision out.

export type Torn = {
  /** The model said something else: close the shown message, `fresh` starts a new one. */
  diverged: boolean
  /** Text to show now. */
  fresh: string
}

const nothingYet: Torn = { diverged: false, fresh: '' }

export class TornText {
  private readonly shown: string
  private received = ''
  private settled: boolean

  constructor(shown: string) {
    this.shown = shown
    this.settled = shown === ''
  }

  feed(text: string): Torn {
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

  /** The answer is complete. A shorter one than was shown is a different one. */
  end(): Torn {
    if (this.settled) return nothingYet
    this.settled = true
    return { diverged: true, fresh: this.received }
  }
}
