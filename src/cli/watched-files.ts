// The files that a server has imported, and whether one of them has changed since.

import { statSync } from 'node:fs'

/** Two equal states mean that the file is the same. Null if there is no file. */
export type FileState = string | null

export function fileState(path: string): FileState {
  const found = statSync(path, { throwIfNoEntry: false })
  return found === undefined ? null : `${found.mtimeMs} ${found.size} ${found.ino}`
}

export class WatchedFiles {
  readonly #stateOf: (path: string) => FileState
  /** The states from before the files were read, so that no later change is missed. */
  readonly #states = new Map<string, FileState>()
  #missing = new Set<string>()

  constructor(stateOf: (path: string) => FileState = fileState) {
    this.#stateOf = stateOf
  }

  /** `state`: from before the file was read. A file that is known already keeps its state. */
  add(path: string, state: FileState): void {
    if (!this.#states.has(path)) this.#states.set(path, state)
  }

  /** Call before the files are read again. */
  refresh(): void {
    this.#missing.clear()
    for (const path of this.#states.keys()) this.#states.set(path, this.#stateOf(path))
  }

  /** Some editors remove a file before they write it again, so a file counts as removed if it is missing two times in a row. */
  hasChanged(): boolean {
    const missing = new Set<string>()
    let hasChanged = false
    for (const [path, before] of this.#states) {
      const now = this.#stateOf(path)
      if (now === before) continue
      if (now === null) missing.add(path)
      if (now !== null || this.#missing.has(path)) hasChanged = true
    }
    this.#missing = missing
    return hasChanged
  }
}
