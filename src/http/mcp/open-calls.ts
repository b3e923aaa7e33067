// The tool calls of MCP clients that are under way, so that a client can cancel one of them with a second request.
// An entry lives as long as its call. There is no other memory of a client's session.

export class OpenCalls {
  readonly #open = new Map<string, AbortController>()

  /** Call `close` when the call has ended. */
  add(key: string): { signal: AbortSignal; close(): void } {
    const controller = new AbortController()
    this.#open.set(key, controller)
    return {
      signal: controller.signal,
      close: () => {
        if (this.#open.get(key) === controller) this.#open.delete(key)
      },
    }
  }

  cancel(key: string): void {
    this.#open.get(key)?.abort()
  }

  get size(): number {
    return this.#open.size
  }
}
