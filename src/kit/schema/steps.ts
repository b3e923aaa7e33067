// The budget of one check. Whoever loops over something that a stranger chose spends
// from it, before or right after a piece of work that is itself bounded.

/** Going over characters is cheaper than applying a schema. */
export const charsPerStep = 64

export class OutOfSteps extends Error {}

export class Steps {
  spent = 0
  readonly #budget: number

  constructor(budget: number) {
    this.#budget = budget
  }

  spend(steps: number): void {
    if (this.spent + steps > this.#budget) throw new OutOfSteps()
    this.spent += steps
  }
}
