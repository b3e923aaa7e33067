// Counts the turns of the event loop that long work leaves to others.

/** How many turns of the event loop other work gets until the promise is settled. */
export async function turnsDuring<T>(work: Promise<T>): Promise<{ result: T; turns: number }> {
  let turns = 0
  let done = false
  const count = () => {
    turns += 1
    if (!done) setImmediate(count)
  }
  setImmediate(count)
  const result = await work
  done = true
  return { result, turns }
}
