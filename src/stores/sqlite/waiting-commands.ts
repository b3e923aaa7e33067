// The commands that wait for their batch, in the order in which they came.

import type { CommandResults } from './command-results.ts'
import { countUpTo, isPlainDelta, type Pending } from './pending-command.ts'

export class WaitingCommands {
  #commands: Pending[] = []
  #hasDurable = false

  add(pending: Pending): void {
    if (pending.durable) this.#hasDurable = true
    this.#commands.push(pending)
  }

  get isEmpty(): boolean {
    return this.#commands.length === 0
  }

  /** One of them needs a sync. */
  get hasDurable(): boolean {
    return this.#hasDurable
  }

  /** There are several, and deltas among them could overtake others. */
  get isMixed(): boolean {
    return this.#commands.length > 1 && this.#commands.some((pending) => !isPlainDelta(pending))
  }

  /** How many of them make a batch of at most so many characters. */
  countUpTo(charsMax: number): number {
    return countUpTo(this.#commands, charsMax)
  }

  /** The first ones, which still wait. */
  first(count: number): Pending[] {
    return this.#commands.slice(0, count)
  }

  /** Takes the first ones, or all. */
  take(count = this.#commands.length): Pending[] {
    const batch = this.#commands
    this.#commands = batch.splice(count)
    this.#hasDurable = this.#commands.some(({ durable }) => durable)
    return batch
  }

  /** Takes the deltas that are certain to succeed. A delta that follows a waiting command of its run is not certain. */
  takeCertainDeltas(results: CommandResults): Pending[] {
    const deltas: Pending[] = []
    const others: Pending[] = []
    for (const pending of this.#commands) {
      if (results.isCertainDelta(pending)) deltas.push(pending)
      else others.push(pending)
    }
    this.#commands = others
    return deltas
  }

  /** These deltas were taken, and could not be written. They stay in front of all others. */
  putBack(deltas: readonly Pending[]): void {
    if (deltas.length > 0) this.#commands = [...deltas, ...this.#commands]
  }
}
