// What the main thread knows about conversations: that a name is free, and that a conversation has no open run. Both are
// looked up before a run is accepted, and what was found stays true until a command that may change it is queued.

/** No conversation of the owner has this name. */
export const nameIsFree = (owner: string, name: string): string => JSON.stringify(['free', owner, name])

/** The conversation is there, belongs to the owner, and has no open run. */
export const isIdle = (owner: string, conversationId: string): string => JSON.stringify(['idle', owner, conversationId])

/** The facts that may not be true after a command. `any`: it has not been looked which ones. */
export type ChangedFacts = readonly string[] | 'any'

/** A fact is used right after it was looked up, so only few are of use. */
const factsMax = 1000

export class KnownFacts {
  readonly #facts = new Set<string>()
  /** How many commands may change the fact and are not executed. */
  readonly #pending = new Map<string, number>()

  /** The database says that this is so. */
  lookedUp(fact: string): void {
    if (this.#pending.has(fact) || this.#pending.has('any')) return
    if (this.#facts.size >= factsMax) this.#facts.clear()
    this.#facts.add(fact)
  }

  /** Whether it is so after every command that was queued until now. False if that is not known. */
  holds(fact: string): boolean {
    return this.#facts.has(fact)
  }

  queued(changed: ChangedFacts): void {
    if (changed === 'any') this.#facts.clear()
    for (const fact of listOf(changed)) {
      this.#facts.delete(fact)
      this.#pending.set(fact, (this.#pending.get(fact) ?? 0) + 1)
    }
  }

  /** The database has executed the command, or never will. */
  settled(changed: ChangedFacts): void {
    for (const fact of listOf(changed)) {
      const left = (this.#pending.get(fact) ?? 0) - 1
      if (left > 0) this.#pending.set(fact, left)
      else this.#pending.delete(fact)
    }
  }
}

const listOf = (changed: ChangedFacts): readonly string[] => (changed === 'any' ? [changed] : changed)
