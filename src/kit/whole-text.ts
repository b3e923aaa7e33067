// Text that arrives in pieces whose ends may lie inside of a character: some model servers and remote agents cut their text
// between the two halves of a surrogate pair. A half is no valid text by itself: most languages other than JavaScript
// replace it or refuse it.

export class WholeText {
  /** The first half of a character whose second half is awaited. */
  #half = ''

  /** The text so far that is complete. Halves whose other half never came are replaced. */
  feed(piece: string): string {
    const text = this.#half + piece
    this.#half = ''
    if (text.isWellFormed()) return text
    const last = text.charCodeAt(text.length - 1)
    if (last < 0xd800 || last > 0xdbff) return text.toWellFormed()
    this.#half = text.slice(-1)
    return text.slice(0, -1).toWellFormed()
  }

  /** To be called after the last piece. */
  end(): string {
    const rest = this.#half.toWellFormed()
    this.#half = ''
    return rest
  }
}
