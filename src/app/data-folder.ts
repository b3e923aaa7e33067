// Prepares the data folder, which holds the conversations of all users. It is created if it
// is missing, and only this server's user may read it, whatever the umask is. The database
// file is created here with that mode, because SQLite copies it to the files beside it.

import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  type Stats,
  statSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { AppError } from '../errors/app-error.ts'

const folderMode = 0o700
const fileMode = 0o600
/** The permission bits of the group and of other users. */
const foreignRights = 0o077

export const databaseName = 'polylog.db'

/** Throws `config_invalid` if the folder cannot be used. */
export function prepareDataFolder(dir: string, warn: (sentence: string) => void): void {
  const stats = usable(dir, () => makeFolder(dir))
  if (!stats.isDirectory()) {
    throw new AppError('config_invalid', `The data folder ${dir} is a file; set POLYLOG_DATA to a folder.`)
  }
  usable(dir, () => accessSync(dir, constants.R_OK | constants.W_OK | constants.X_OK))
  const entries = usable(dir, () => readdirSync(dir))
  // Never change the mode of a shared folder such as /tmp or a home: its other users would lose access.
  const isOurs = entries.length === 0 || entries.includes(databaseName)
  if ((stats.mode & foreignRights) !== 0 && !(isOurs && tighten(dir, folderMode)))
    warn(
      `Other users of this machine may read the data folder ${dir}; run chmod 700 on it, or use a folder of its own.`,
    )
}

/** Creates the database file in a prepared folder and returns its path. */
export function prepareDatabaseFile(dir: string, warn: (sentence: string) => void): string {
  const file = join(dir, databaseName)
  const files = new Set([
    ...usable(dir, () => readdirSync(dir)).filter((name) => name.startsWith(databaseName)),
    databaseName,
    `${databaseName}.lock`,
  ])
  for (const name of files) keepPrivate(join(dir, name), warn)
  return file
}

/** Makes an existing workspace inside the data folder private; warns if one elsewhere is readable by other users. */
export function prepareWorkspaceRoot(dir: string, dataDir: string, warn: (sentence: string) => void): void {
  const stats = statSync(dir, { throwIfNoEntry: false })
  if (stats?.isDirectory() !== true || (stats.mode & foreignRights) === 0) return
  const isInside = dir.startsWith(join(dataDir, '/'))
  if (!(isInside && tighten(dir, folderMode)))
    warn(`Other users of this machine may read the workspace ${dir}; run chmod 700 on it if they should not.`)
}

/** Does not use Node's `recursive`, which never returns if the system refuses a folder whose parent exists (in /proc). */
function makeFolder(dir: string): Stats {
  if (!existsSync(dir)) {
    if (!existsSync(dirname(dir))) makeFolder(dirname(dir))
    mkdirSync(dir, folderMode)
    chmodSync(dir, folderMode)
  }
  return statSync(dir)
}

function keepPrivate(file: string, warn: (sentence: string) => void): void {
  usable(file, () => closeSync(openSync(file, 'a', fileMode)))
  if ((statSync(file).mode & 0o777) !== fileMode && !tighten(file, fileMode))
    warn(`Other users of this machine may read ${file}; run chmod 600 on it.`)
}

/** False if the file belongs to another user or the file system does not support modes. */
function tighten(path: string, mode: number): boolean {
  try {
    chmodSync(path, mode)
    return (statSync(path).mode & foreignRights) === 0
  } catch {
    return false
  }
}

function usable<T>(path: string, work: () => T): T {
  try {
    return work()
  } catch (cause) {
    throw new AppError('config_invalid', `${path} cannot be used: ${fileErrorReason(cause)}.`, { cause })
  }
}

const another = 'set POLYLOG_DATA to a folder that this user can write'
/** What is wrong, and what helps if it is the data folder. */
const reasons: Readonly<Record<string, readonly [reason: string, advice: string]>> = {
  EACCES: ['this user may not write there', another],
  EPERM: ['this user may not write there', another],
  EROFS: ['the file system is read-only', another],
  ENOENT: ['there is no such folder', another],
  ENOTDIR: ['a part of the path is a file', another],
  EEXIST: ['a part of the path is a file', another],
  EISDIR: ['it is a folder and should be a file', 'remove it, or set POLYLOG_DATA to another folder'],
  ENOSPC: ['the disk is full', 'free some space, or set POLYLOG_DATA to a folder on another disk'],
  ENAMETOOLONG: ['the path is too long', 'set POLYLOG_DATA to a shorter one'],
}

/** `advice` is for files that are not in the data folder. */
export function fileErrorReason(cause: unknown, advice?: string): string {
  const code = String((cause as { code?: unknown } | null)?.code)
  const [reason, ownAdvice] = reasons[code] ?? [`the system says ${code}`, another]
  return `${reason}; ${advice ?? ownAdvice}`
}
