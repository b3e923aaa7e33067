// Waiting for what has to happen. The limit is a time that no machine needs, however busy it is:
// it only makes a test fail instead of hang.

import { setTimeout as wait } from 'node:timers/promises'

const limitMs = 90_000

/** Polls until `ask` returns something else than undefined or false, and throws if that never happens. */
export async function until<T>(
  what: string,
  ask: () => Promise<T | undefined | false> | T | undefined | false,
): Promise<T> {
  const startedAt = performance.now()
  for (;;) {
    const found = await ask()
    if (found !== undefined && found !== false) return found
    if (performance.now() - startedAt > limitMs) throw new Error(`waited in vain for ${what}`)
    await wait(10)
  }
}
