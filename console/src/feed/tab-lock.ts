// Things that all tabs of a browser share. A browser opens only six connections to a server without HTTP/2, for all tabs
// together, so that streams of many tabs would leave none for anything else. Where a browser has no locks (pages without
// TLS on another host), every tab counts alone.

/** Resolves when this tab has the lock; it holds it until `signal` is aborted. */
export async function holdLock(name: string, signal: AbortSignal): Promise<void> {
  const { locks } = navigator as Partial<Navigator>
  if (locks === undefined) return
  await new Promise<void>((resolve, reject) => {
    locks
      .request(name, { signal }, async () => {
        resolve()
        await aborted(signal)
      })
      .catch(reject)
  })
}

/** The number of a free place out of `count`, which is held until `signal` is aborted; null if all are taken. */
export async function takePlace(name: string, count: number, signal: AbortSignal): Promise<number | null> {
  const { locks } = navigator as Partial<Navigator>
  if (locks === undefined) return 0
  for (let place = 0; place < count; place++) {
    const isTaken = await new Promise<boolean>((resolve) => {
      void locks.request(`${name} ${place}`, { ifAvailable: true }, async (lock) => {
        resolve(lock !== null && !signal.aborted)
        if (lock !== null) await aborted(signal)
      })
    })
    if (isTaken) return place
  }
  return null
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
