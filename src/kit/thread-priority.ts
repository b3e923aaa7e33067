// Which threads go first on a busy core. The main thread serves every reader; the threads beside it write to the database,
// compile, and collect garbage, which is work for later. On a core of their own the priority changes nothing. On a core
// that they share with the main thread each would otherwise get as much of it as the main thread, and V8 alone has four.
//
// Only Linux has priorities of single threads; elsewhere nothing is changed.

import { readdirSync, readFileSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'
import type { Clock } from './clock.ts'

/** In the units of `nice`: such a thread gets a third of the time that the main thread gets, if both want all of it. */
const backgroundNice = 5
const lowestNice = 19

/** The names that Node gives to the threads of V8. Versions without names leave them as they are. */
const v8Threads = /^(?:node-)?V8Worker/

/** In a new process the compiler makes the main thread fast, so its threads have their full share for a while. */
const newProcessMs = 30_000

const tasks = '/proc/self/task'

/** Call it once, in a worker thread. */
export function letMainThreadGoFirst(): void {
  // 0 is the calling thread.
  if (process.platform === 'linux') lower(0)
}

/** Lets the main thread go before the threads that compile and collect garbage, soon after the start. For a process that is ours alone. */
export function letMainThreadGoBeforeV8(clock: Pick<Clock, 'after'>): void {
  clock.after(newProcessMs, () => {
    for (const thread of v8ThreadIds()) lower(thread)
  })
}

export function v8ThreadIds(): number[] {
  try {
    return readdirSync(tasks)
      .filter((id) => v8Threads.test(readFileSync(`${tasks}/${id}/comm`, 'utf8')))
      .map(Number)
  } catch {
    // Not Linux, or no such file system. A thread may also have just ended; V8's never do.
    return []
  }
}

function lower(thread: number): void {
  try {
    setPriority(thread, Math.min(lowestNice, getPriority() + backgroundNice))
  } catch {
    // The system does not allow it. Everything works without it.
  }
}
