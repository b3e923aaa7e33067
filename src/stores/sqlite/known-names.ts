// Which names of conversations are free, as far as the main thread knows. Names that clients choose are looked up before
// a conversation is created under them, and what was found stays true until a command that may use the name is queued.

export const nameTopic = (owner: string, name: string): string => JSON.stringify([owner, name])

/** The names that a command may give to conversations. `any`: it has not been looked which ones. */
export type NamesGiven = readonly string[] | 'any'

/** A name is used right after it was looked up, so only few are of use. */
const freeMax = 1000

export class KnownNames {
  readonly #free = new Set<string>()
  /** How many commands may give the name and are not executed. */
  readonly #pending = new Map<string, number>()

  /** The database has no conversation under this name. */
  lookedUp(name: string): void {
    if (this.#pending.has(name) || this.#pending.has('any')) return
    if (this.#free.size >= freeMax) this.#free.clear()
    this.#free.add(name)
  }

  /** Whether every command that was queued until now leaves the name free. */
  isFree(name: string): boolean {
    return this.#free.has(name)
  }

  queued(names: NamesGiven): void {
    if (names === 'any') this.#free.clear()
    for (const name of listOf(names)) {
      this.#free.delete(name)
      this.#pending.set(name, (this.#pending.get(name) ?? 0) + 1)
    }
  }

  /** The database has executed the command, or never will. */
  settled(names: NamesGiven): void {
    for (const name of listOf(names)) {
      const left = (this.#pending.get(name) ?? 0) - 1
      if (left > 0) this.#pending.set(name, left)
      else this.#pending.delete(name)
    }
  }
}

const listOf = (names: NamesGiven): readonly string[] => (names === 'any' ? [names] : names)
