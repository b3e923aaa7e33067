// Records which run was on the main thread when a process froze or died. The watchdog
// keeps a mark file while the main thread is blocked; if the mark still exists at the next
// start, the process died. Each death stays in a second file until its run has written it
// to its journal.

import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Activity } from '../kit/activity.ts'
import type { ProcessDeath } from '../runs/run-dependencies.ts'

export type Mark = {
  /** Unique, so that a death that is journaled twice is counted once. */
  id: string
  at: number
  how: ProcessDeath['how']
  activity: Activity | null
  /** The source line that was executing, if it is known. */
  code?: string
}

export const markFileOf = (folder: string) => join(folder, 'watchdog-mark.json')
const deathsFileOf = (folder: string) => join(folder, 'watchdog-deaths.json')
/** Bounds the file; the oldest deaths are dropped first. */
const deathsMax = 1000

/** Replaces the file atomically: writes and syncs a new file, then renames it. */
export function writeWhole(file: string, value: unknown): void {
  const fresh = `${file}.new`
  const handle = openSync(fresh, 'w')
  try {
    writeSync(handle, JSON.stringify(value))
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
  renameSync(fresh, file)
}

export class DeathRecord {
  /** The mark of the last process; null if that process ended normally. */
  readonly last: Mark | null
  private readonly file: string
  private deaths: ProcessDeath[]

  constructor(folder: string) {
    this.file = deathsFileOf(folder)
    this.deaths = readJson<ProcessDeath[]>(this.file, Array.isArray) ?? []
    this.last = readJson<Mark>(markFileOf(folder), isMark)
    if (this.last !== null) {
      const { id, at, how, activity } = this.last
      if (activity !== null && 'run' in activity && !this.deaths.some((death) => death.id === id)) {
        this.deaths = [...this.deaths, { id, at, how, runId: activity.run, place: activity.place }].slice(-deathsMax)
        writeWhole(this.file, this.deaths)
      }
      rmSync(markFileOf(folder), { force: true })
    }
  }

  of(runId: string): ProcessDeath[] {
    return this.deaths.filter((death) => death.runId === runId)
  }

  /** Forgets the deaths of a run, once its journal has them. */
  settled(runId: string): void {
    const left = this.deaths.filter((death) => death.runId !== runId)
    if (left.length === this.deaths.length) return
    this.deaths = left
    if (left.length === 0) rmSync(this.file, { force: true })
    else writeWhole(this.file, left)
  }
}

function isMark(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'id' in value && 'activity' in value
}

/** Null if the file is missing or does not hold the expected JSON. */
function readJson<T>(file: string, fits: (value: unknown) => boolean): T | null {
  try {
    const value: unknown = JSON.parse(readFileSync(file, 'utf8'))
    return fits(value) ? (value as T) : null
  } catch {
    return null
  }
}
