// The step budget of one check. Every loop over untrusted data must spend steps, before or
// right after each piece of bounded work.

/** Reading characters is cheaper than applying a schema. */
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
