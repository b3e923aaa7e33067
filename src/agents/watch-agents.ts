// Reads the agents again when one of their files changes, for people who write definitions. Only the directories
// that hold files of definitions are watched, not whole trees. Several changes at once, as editors and `git`
// make them, cause one reading.

import { watch as watchDirectory } from 'node:fs'
import type { Clock, Timer } from '../kit/clock.ts'
import type { ReloadableCatalogue } from './catalogue.ts'
import type { AgentsFound } from './read-agents.ts'

/** Long enough for an editor to write all files of one save. */
const quietMs = 200

export type WatchDirectory = (
  directory: string,
  onChange: () => void,
  onError: (error: unknown) => void,
) => { close(): void }

export type AgentsWatchOptions = {
  catalogue: ReloadableCatalogue
  clock: Clock
  onReload(found: AgentsFound): void
  /** A reading that failed as a whole, or a directory that cannot be watched. The last definitions stay in use. */
  onError(error: unknown): void
  /** For tests. */
  watch?: WatchDirectory
}

export interface AgentsWatch {
  close(): void
}

export function watchAgents(options: AgentsWatchOptions): AgentsWatch {
  const { catalogue, clock, onReload, onError, watch = watchWithNode } = options
  const watchers = new Map<string, { close(): void }>()
  let timer: Timer | undefined
  let reading = false
  let closed = false

  /** Returns whether a directory is watched now that was not watched before. */
  function follow(directories: ReadonlySet<string>): boolean {
    let added = false
    for (const [directory, watcher] of watchers) {
      if (directories.has(directory)) continue
      watcher.close()
      watchers.delete(directory)
    }
    for (const directory of directories) {
      if (watchers.has(directory)) continue
      try {
        watchers.set(
          directory,
          watch(directory, changed, (error) => forget(directory, error)),
        )
        added = true
      } catch (error) {
        forget(directory, error)
      }
    }
    return added
  }

  /** A directory that was deleted is watched again when a later reading finds it. */
  function forget(directory: string, error: unknown): void {
    watchers.get(directory)?.close()
    watchers.delete(directory)
    const { code } = error as { code?: string }
    if (code !== 'ENOENT' && code !== 'EPERM') onError(error)
  }

  function closeAll(): void {
    for (const watcher of watchers.values()) watcher.close()
    watchers.clear()
  }

  function changed(): void {
    if (closed) return
    timer?.cancel()
    timer = clock.after(quietMs, () => void readAgain())
  }

  async function readAgain(): Promise<void> {
    timer = undefined
    // A change during a reading may have come too late for it.
    if (reading) return changed()
    reading = true
    try {
      // A directory that was deleted and created again needs a new watcher, although its name is the same.
      const before = new Set(watchers.keys())
      closeAll()
      follow(before)
      const found = await catalogue.reload()
      if (closed) return
      // A file may have changed after it was read and before its directory was watched.
      if (follow(found.directories)) changed()
      onReload(found)
    } catch (error) {
      if (!closed) onError(error)
    } finally {
      reading = false
    }
  }

  follow(catalogue.found.directories)
  return {
    close() {
      closed = true
      timer?.cancel()
      closeAll()
    },
  }
}

const watchWithNode: WatchDirectory = (directory, onChange, onError) => {
  const watcher = watchDirectory(directory, { persistent: false }, () => onChange())
  watcher.on('error', onError)
  return watcher
}
