// One page of a list that a fold produces, so that the store cannot page it. The window
// takes all items in order, skips the first `after` items, and keeps the next ones up to a
// number of items and of characters.

/** The most characters in one reply, as for a page of rows. A window always holds at least one item. */
export const windowCharsMax = 4 * 1024 * 1024

export type WindowBounds = { after: number; limit: number; charsMax?: number }

export class PageWindow<Item> {
  readonly items: Item[] = []
  /** True if items after the window were dropped. */
  more = false
  chars = 0
  private readonly bounds: Required<WindowBounds>
  private seen = 0

  constructor({ after, limit, charsMax = windowCharsMax }: WindowBounds) {
    this.bounds = { after, limit, charsMax }
  }

  /** The number of the last item in the window; send it as `after` for the next page. */
  get last(): number {
    return this.bounds.after + this.items.length
  }

  add(item: Item): void {
    this.seen += 1
    if (this.seen <= this.bounds.after || this.more) return
    const chars = roughChars(item)
    const { limit, charsMax } = this.bounds
    if (this.items.length >= limit || (this.items.length > 0 && this.chars + chars > charsMax)) {
      this.more = true
      return
    }
    this.chars += chars
    this.items.push(item)
  }
}

/** Estimates the length of a value as JSON: the length of its strings, and a few characters for every other value. */
export function roughChars(value: unknown): number {
  const rest: unknown[] = [value]
  let chars = 0
  while (rest.length > 0) {
    const next = rest.pop()
    if (typeof next === 'string') chars += next.length + 3
    else if (typeof next !== 'object' || next === null) chars += 6
    else if (Array.isArray(next)) for (const entry of next) rest.push(entry)
    else
      for (const [key, entry] of Object.entries(next)) {
        chars += key.length + 3
        rest.push(entry)
      }
  }
  return chars
}
