// Tracks which properties and items of one value were evaluated by some part of a schema.
// Only `unevaluatedProperties` and `unevaluatedItems` need it.

export class Evaluated {
  readonly #properties = new Set<string>()
  readonly #items = new Set<number>()
  #firstItems = 0

  property(name: string): void {
    this.#properties.add(name)
  }

  hasProperty(name: string): boolean {
    return this.#properties.has(name)
  }

  /** Marks the first `count` items as evaluated. */
  items(count: number): void {
    this.#firstItems = Math.max(this.#firstItems, count)
  }

  item(index: number): void {
    this.#items.add(index)
  }

  hasItem(index: number): boolean {
    return index < this.#firstItems || this.#items.has(index)
  }

  /** Returns how many names and indexes were copied. */
  merge(other: Evaluated): number {
    for (const name of other.#properties) this.#properties.add(name)
    for (const index of other.#items) this.#items.add(index)
    this.items(other.#firstItems)
    return other.#properties.size + other.#items.size
  }
}
