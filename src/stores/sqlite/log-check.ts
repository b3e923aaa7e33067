// Whether the log in front of the database may be used. It may not if the disk could become too full for
// the database to take what the log has promised, or if the files of the log were deleted. Then every
// command goes to the database before it is acknowledged, and the caller hears of a full disk.

import { type StatsFs, statfsSync } from 'node:fs'
import { stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Clock } from '../../kit/clock.ts'
import { logEndings } from './command-log.ts'

/** Far more than the database needs for all that the log can hold, also if each command changes other pages. */
const reserveBytes = 256 * 1024 * 1024
const checkMs = 1000

/** False at first. The disk is looked at in the background, at most once in a second. */
export function logCheck(file: string, clock: Pick<Clock, 'monotonic'>): () => boolean {
  let isUsable = false
  let checkedAt = Number.NEGATIVE_INFINITY
  return () => {
    if (clock.monotonic() - checkedAt >= checkMs) {
      checkedAt = clock.monotonic()
      void isLogUsable(file).then((usable) => (isUsable = usable))
    }
    return isUsable
  }
}

/** Whether there is room for the log when the database is opened. If not, there is none until the next start. */
export function hasRoomForLog(file: string): boolean {
  return leavesReserve(statfsSync(dirname(file)))
}

function leavesReserve({ bavail, bsize }: StatsFs): boolean {
  return bavail * bsize > reserveBytes
}

async function isLogUsable(file: string): Promise<boolean> {
  try {
    const disk = await statfs(dirname(file))
    await Promise.all(logEndings.map((ending) => stat(file + ending)))
    return leavesReserve(disk)
  } catch {
    return false
  }
}
