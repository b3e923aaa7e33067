// Follows both runs of a comparison at once and merges their events in the order in which
// they arrive. At most one batch of each run is buffered here, so a slow reader costs at
// most twice as much memory as on one run.

import type { Follower } from '../../bus/follower.ts'
import type { EventBatch } from '../../bus/live-bus.ts'
import type { Arm, TwoArms } from '../../dialects/chunks/two-arms.ts'
import type { ByteSource } from '../stream-reply.ts'

const arms: readonly Arm[] = ['a', 'b']

export class TwoArmSource<State> implements ByteSource {
  private readonly fold: TwoArms<State>
  private readonly followers: Readonly<Record<Arm, Follower>>
  private readonly requested: Record<Arm, boolean> = { a: false, b: false }
  private readonly finished: Record<Arm, boolean> = { a: false, b: false }
  private readonly ready: { arm: Arm; batch: EventBatch | null }[] = []
  private failure: { error: unknown } | undefined
  private wake: (() => void) | undefined

  constructor(fold: TwoArms<State>, followers: Readonly<Record<Arm, Follower>>) {
    this.fold = fold
    this.followers = followers
  }

  async next(): Promise<{ text: string; over: boolean } | null> {
    for (;;) {
      for (const arm of arms) this.request(arm)
      if (this.failure !== undefined) throw this.failure.error
      const next = this.ready.shift()
      if (next !== undefined) {
        if (next.batch !== null) return this.fold.take(next.arm, next.batch.events)
        this.finished[next.arm] = true
        continue
      }
      if (this.finished.a && this.finished.b) return null
      await new Promise<void>((resolve) => {
        this.wake = resolve
      })
    }
  }

  close(): void {
    for (const arm of arms) this.followers[arm].close()
  }

  /**
   * Requests the next batch of an arm, unless one is requested or buffered already. `Promise.race` in a loop would leak:
   * the promise of an arm that stays silent would keep one reaction for every race.
   */
  private request(arm: Arm): void {
    if (this.requested[arm] || this.finished[arm] || this.ready.some((waiting) => waiting.arm === arm)) return
    this.requested[arm] = true
    this.followers[arm].next().then(
      (batch) => {
        this.requested[arm] = false
        this.ready.push({ arm, batch })
        this.wake?.()
      },
      (error: unknown) => {
        this.failure = { error }
        this.wake?.()
      },
    )
  }
}
