// Follows both runs of a comparison at once. Whichever has something is told next;
// of each at most one batch waits here, so a slow reader costs no more than twice
// what it costs on one run.

import type { Follower } from '../../bus/follower.ts'
import type { EventBatch } from '../../bus/live-bus.ts'
import type { Arm, TwoArms } from '../../dialects/chunks/two-arms.ts'
import type { ByteSource } from '../stream-reply.ts'

const arms: readonly Arm[] = ['a', 'b']

export class TwoArmSource<State> implements ByteSource {
  private readonly fold: TwoArms<State>
  private readonly followers: Readonly<Record<Arm, Follower>>
  private readonly asked: Record<Arm, boolean> = { a: false, b: false }
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
      for (const arm of arms) this.ask(arm)
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

  /** Not a race of two promises: the one that loses every race would remember each of them. */
  private ask(arm: Arm): void {
    if (this.asked[arm] || this.finished[arm] || this.ready.some((waiting) => waiting.arm === arm)) return
    this.asked[arm] = true
    this.followers[arm].next().then(
      (batch) => {
        this.asked[arm] = false
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
