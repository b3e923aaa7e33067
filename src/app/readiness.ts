// Whether this server can take work, for load balancers: it is not stopping, its file is not damaged, and the database
// takes writes. The answer to the last question is shared by all probes of a second, because the route is open to
// everybody and each check is a commit.

import { AppError } from '../errors/app-error.ts'
import type { Clock } from '../kit/clock.ts'

const sharedForMs = 1_000
/** Below the usual patience of a load balancer, so that it gets an answer with a reason. */
const answerMs = 2_000

export type ReadinessDependencies = {
  store: { check(): Promise<void> }
  scheduler: { readonly isDamaged: boolean }
  clock: Clock
}

export class Readiness {
  private readonly dependencies: ReadinessDependencies
  private isDraining = false
  private last: { at: number; result: Promise<void> } | undefined

  constructor(dependencies: ReadinessDependencies) {
    this.dependencies = dependencies
  }

  /** From now on the server is not ready. */
  drain(): void {
    this.isDraining = true
  }

  /** Throws the reason if the server is not ready. */
  async check(): Promise<void> {
    const { scheduler, clock } = this.dependencies
    this.refuseIfDraining()
    if (scheduler.isDamaged) {
      throw new AppError('store_damaged', 'The database file is damaged. Restore it from a backup.')
    }
    const now = clock.monotonic()
    if (this.last === undefined || now - this.last.at >= sharedForMs) {
      this.last = { at: now, result: this.checkStore() }
    }
    await this.last.result
    // The stop may have begun meanwhile.
    this.refuseIfDraining()
  }

  private refuseIfDraining(): void {
    if (this.isDraining) throw new AppError('shutting_down', 'This server is stopping. Send requests to another one.')
  }

  private async checkStore(): Promise<void> {
    const { store, clock } = this.dependencies
    await new Promise<void>((resolve, reject) => {
      const timer = clock.after(answerMs, () =>
        reject(new AppError('store_unavailable', `The database has not answered within ${answerMs / 1000} s.`)),
      )
      store
        .check()
        .then(resolve, reject)
        .finally(() => timer.cancel())
    })
  }
}
