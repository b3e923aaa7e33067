// Decides from heartbeats whether the main thread is blocked. It counts the watchdog's own
// ticks instead of time: if the machine sleeps or the process is stopped, ticks and
// heartbeats stop together, so this is not mistaken for a freeze. Pure.

export type BlockEvent =
  | { is: 'fine' }
  /** The main thread has just been found blocked. */
  | { is: 'blocked' }
  | { is: 'still blocked' }
  /** A block is over. */
  | { is: 'over'; ms: number }
  /** The block exceeded `freezeMaxMs`: the process must be killed. */
  | { is: 'frozen'; ms: number }

export type BlockLimits = { tickMs: number; blockedMs: number; /** 0: never. */ freezeMaxMs: number }

export class BlockWatch {
  private readonly limits: BlockLimits
  private beat: number | undefined
  private missed = 0

  constructor(limits: BlockLimits) {
    this.limits = limits
  }

  /** One tick; `beat` is the number of heartbeats of the main thread so far. */
  tick(beat: number): BlockEvent {
    const { tickMs, blockedMs, freezeMaxMs } = this.limits
    const ms = this.missed * tickMs
    if (beat !== this.beat) {
      this.beat = beat
      this.missed = 0
      return ms >= blockedMs ? { is: 'over', ms } : { is: 'fine' }
    }
    this.missed += 1
    const now = this.missed * tickMs
    if (freezeMaxMs > 0 && now >= freezeMaxMs) return { is: 'frozen', ms: now }
    if (now < blockedMs) return { is: 'fine' }
    return { is: ms < blockedMs ? 'blocked' : 'still blocked' }
  }
}
