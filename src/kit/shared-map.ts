// A map that never changes, whose successors share its entries. `with` gives a map with one entry
// more (or another value) without copying the others, so that folding a run with 20,000 tool calls
// into an immutable state does not cost 20,000 copies of a map of 20,000 calls.
//
// All maps of one history share a log, in which each value has the version that set it. A map
// sees the values up to its own version. Only the newest map of a history can extend the log;
// a second successor of the same map begins with a copy.

type Value<V> = { readonly version: number; readonly value: V }

class Log<K, V> {
  /** The values of each key, oldest first. In the order in which the keys were added. */
  readonly values = new Map<K, Value<V>[]>()
  /** The version of the newest map. */
  version = 0

  set(key: K, value: V): void {
    this.version += 1
    const known = this.values.get(key)
    if (known === undefined) this.values.set(key, [{ version: this.version, value }])
    else known.push({ version: this.version, value })
  }
}

export class SharedMap<K, V> implements ReadonlyMap<K, V> {
  readonly size: number
  readonly #log: Log<K, V>
  readonly #version: number

  private constructor(log: Log<K, V>, size: number) {
    this.#log = log
    this.#version = log.version
    this.size = size
  }

  static of<K, V>(entries: Iterable<readonly [K, V]> = []): SharedMap<K, V> {
    const log = new Log<K, V>()
    for (const [key, value] of entries) log.set(key, value)
    return new SharedMap(log, log.values.size)
  }

  /** A map with this entry; its place is that of the key, or the last one. */
  with(key: K, value: V): SharedMap<K, V> {
    if (this.#version !== this.#log.version) return SharedMap.of(this).with(key, value)
    const size = this.size + (this.#log.values.has(key) ? 0 : 1)
    this.#log.set(key, value)
    return new SharedMap(this.#log, size)
  }

  get(key: K): V | undefined {
    return this.#newest(this.#log.values.get(key) ?? [])?.value
  }

  has(key: K): boolean {
    return this.#newest(this.#log.values.get(key) ?? []) !== undefined
  }

  *entries(): Generator<[K, V], undefined> {
    for (const [key, values] of this.#log.values) {
      const found = this.#newest(values)
      // The keys after it were added later still.
      if (found === undefined) return
      yield [key, found.value]
    }
  }

  *keys(): Generator<K, undefined> {
    for (const [key] of this.entries()) yield key
  }

  *values(): Generator<V, undefined> {
    for (const [, value] of this.entries()) yield value
  }

  [Symbol.iterator](): Generator<[K, V], undefined> {
    return this.entries()
  }

  forEach(visit: (value: V, key: K, map: ReadonlyMap<K, V>) => void): void {
    for (const [key, value] of this.entries()) visit(value, key, this)
  }

  #newest(values: readonly Value<V>[]): Value<V> | undefined {
    return values.findLast(({ version }) => version <= this.#version)
  }
}

/** `map` with one more entry, or another value for its key. */
export function withEntry<K, V>(map: ReadonlyMap<K, V>, key: K, value: V): SharedMap<K, V> {
  return (map instanceof SharedMap ? (map as SharedMap<K, V>) : SharedMap.of(map)).with(key, value)
}
