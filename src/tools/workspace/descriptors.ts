// Opens files below a directory without ever following a link, even if another process
// renames or replaces entries at the same time. Each step opens one name below a directory
// that is already open (`/proc/self/fd/N/name`, the equivalent of openat), so there is no
// time-of-check to time-of-use race: the checks run on the handle that is used afterwards.
//
// This needs Linux. On other systems the file tools are not offered.

import { constants, existsSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { refused } from './refusal.ts'

const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants
/**
 * Opens an entry only as a reference, not for reading, so a device is not activated and a FIFO does not block. Node's
 * constants do not have it. Linux uses this value on all architectures for which Node is built (x64, arm64, ppc64,
 * s390x, riscv64, loong64); only Alpha, SPARC and PA-RISC differ.
 */
const O_PATH = 0o10000000

export function descriptorsWork(): boolean {
  return process.platform === 'linux' && existsSync('/proc/self/fd')
}

/** A path for system calls that refers to the open file or directory itself, even after a rename. */
export function pathOf(handle: FileHandle): string {
  return `/proc/self/fd/${handle.fd}`
}

/** Opens the configured workspace. Links in its path are followed, because the operator chose it. */
export function openRoot(path: string): Promise<FileHandle> {
  return open(path, O_PATH | O_DIRECTORY)
}

/** Opens an entry of any kind, also a link itself, without reading it. */
export function openEntry(directory: FileHandle, name: string): Promise<FileHandle> {
  return open(`${pathOf(directory)}/${name}`, O_PATH | O_NOFOLLOW)
}

export async function openDirectory(directory: FileHandle, name: string, shown: string): Promise<FileHandle> {
  const entry = await openEntry(directory, name)
  try {
    const stats = await entry.stat()
    if (stats.isSymbolicLink()) throw refused(`A part of ${shown} is a link; links are not followed.`)
    if (!stats.isDirectory()) throw refused(`A part of ${shown} is a file, not a directory.`)
    return entry
  } catch (error) {
    await entry.close()
    throw error
  }
}

/** Refuses everything except regular files with a single hard link: another hard link may be outside the workspace. */
export async function openRegular(directory: FileHandle, name: string, shown: string): Promise<FileHandle> {
  const entry = await openEntry(directory, name)
  try {
    const stats = await entry.stat()
    if (stats.isSymbolicLink()) throw refused(`${shown} is a link; links are not followed.`)
    if (stats.isDirectory()) throw refused(`${shown} is a directory.`)
    if (!stats.isFile()) throw refused(`${shown} is not a regular file.`)
    if (stats.nlink > 1) throw refused(`${shown} has several names (hard links); such files are not used.`)
    return entry
  } catch (error) {
    await entry.close()
    throw error
  }
}

/** Opens the same file or directory for reading, even if its name now refers to another one. */
export function reopen(entry: FileHandle): Promise<FileHandle> {
  return open(pathOf(entry), O_RDONLY | O_NONBLOCK)
}
