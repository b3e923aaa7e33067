// Which properties and items of one value some part of a schema has looked at. Only
// `unevaluatedProperties` and `unevaluatedItems` ask for it.

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

  /** The first `count` items. */
  items(count: number): void {
    this.#firstItems = Math.max(this.#firstItems, count)
  }

  item(index: number): void {
    this.#items.add(index)
  }

  hasItem(index: number): boolean {
    return index < this.#firstItems || this.#items.has(index)
  }

  /** Returns how many names and places were copied. */
  merge(other: Evaluated): number {
    for (const name of other.#properties) this.#properties.add(name)
    for (const index of other.#items) this.#items.add(index)
    this.items(other.#firstItems)
    return other.#properties.size + other.#items.size
  }
}
