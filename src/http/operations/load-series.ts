// How busy this node was in the last minutes: a sample every few seconds, in memory. It is for
// people who look at a page; monitoring reads /metrics.

import type { RunStatus } from '../../journal/event.ts'
import type { Clock, Timer } from '../../kit/clock.ts'

export type LoadSample = {
  at: number
  /** How many commits ended since the sample before, and how long they took on average and at most. */
  commits: number
  commitMs: number
  commitMsMax: number
  /** The most commits that were under way at once since the sample before. */
  commitQueue: number
  streams: number
  /** Of all nodes; null if the database did not answer. */
  runs: Partial<Record<RunStatus, number>> | null
}

export const sampleEveryMs = 5000
/** A quarter of an hour. */
const samplesMax = 180

export type LoadSources = {
  clock: Clock
  streams(): number
  runs(): Promise<Partial<Record<RunStatus, number>>>
}

export class LoadSeries {
  readonly samples: LoadSample[] = []
  private underWay = 0
  private commits = 0
  private totalMs = 0
  private maxMs = 0
  private queueMax = 0
  private timer: Timer | undefined

  commitStarted(): void {
    this.underWay += 1
    this.queueMax = Math.max(this.queueMax, this.underWay)
  }

  commitDone(ms: number): void {
    this.underWay -= 1
    this.commits += 1
    this.totalMs += ms
    this.maxMs = Math.max(this.maxMs, ms)
  }

  start(sources: LoadSources): void {
    this.timer = sources.clock.after(sampleEveryMs, () => {
      void this.sample(sources).finally(() => {
        if (this.timer !== undefined) this.start(sources)
      })
    })
  }

  stop(): void {
    this.timer?.cancel()
    this.timer = undefined
  }

  async sample({ clock, streams, runs }: LoadSources): Promise<void> {
    const { commits, totalMs, maxMs, queueMax } = this
    this.commits = 0
    this.totalMs = 0
    this.maxMs = 0
    this.queueMax = this.underWay
    this.samples.push({
      at: clock.now(),
      commits,
      commitMs: commits === 0 ? 0 : totalMs / commits,
      commitMsMax: maxMs,
      commitQueue: queueMax,
      streams: streams(),
      runs: await runs().catch(() => null),
    })
    if (this.samples.length > samplesMax) this.samples.shift()
  }
}
