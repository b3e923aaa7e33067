// The part of a long list that one reply shows, when the list is a fold and not rows: it
// takes the items in order, keeps those after a place, and stops keeping when it has
// enough of them or enough text.

/** Characters of text in a reply; as much as in a page of rows. A window holds one item at least. */
export const windowCharsMax = 4 * 1024 * 1024

export type WindowBounds = { after: number; limit: number; charsMax?: number }

export class PageWindow<Item> {
  readonly items: Item[] = []
  /** Items follow that were not kept. */
  more = false
  chars = 0
  private readonly bounds: Required<WindowBounds>
  private seen = 0

  constructor({ after, limit, charsMax = windowCharsMax }: WindowBounds) {
    this.bounds = { after, limit, charsMax }
  }

  /** The number of the last item that was kept: the next page is after it. */
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

/** About how long a value is as JSON: its texts, and a little for every other value. */
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
