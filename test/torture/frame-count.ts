// Counts the frames that all clients got, and waits for more of them: faults are due after a number
// of frames, not after a time, so that a slow machine gets as many as a fast one.

import { setTimeout as wait } from 'node:timers/promises'

/** If the clients see nothing for so long, the next fault comes all the same: they may all be waiting for a person. */
const quietMs = 1500

export class FrameCount {
  total = 0
  private wake: (() => void) | undefined

  add(count: number): void {
    this.total += count
    this.wake?.()
  }

  /** Resolves after so many further frames, or when no frame comes for a while. */
  async more(count: number): Promise<void> {
    const goal = this.total + count
    while (this.total < goal) {
      const before = this.total
      await Promise.race([new Promise<void>((resolve) => (this.wake = resolve)), wait(quietMs)])
      if (this.total === before) return
    }
  }
}
