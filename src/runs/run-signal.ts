// Stops the work on remote answers of a run. It is used like an AbortSignal, but every open run has one,
// and with its listener an AbortSignal holds half a kilobyte.

export class RunSignal {
  aborted = false
  reason: unknown
  /** Called by `abort`. A run works on one answer at a time. */
  onAbort: { abort(reason: unknown): void } | undefined

  /** Only the first call counts. */
  abort(reason: unknown): void {
    if (this.aborted) return
    this.aborted = true
    this.reason = reason
    this.onAbort?.abort(reason)
  }

  throwIfAborted(): void {
    if (this.aborted) throw this.reason
  }
}
