// Opening files below a directory without ever following a link, whatever others do
// to the names meanwhile. Every step opens one name below a directory that is
// already open (`/proc/self/fd/N/name`, which is what openat does), so there is no
// moment between looking at a path and using it: what was looked at is what is open.
//
// This needs Linux. Elsewhere the tools that stand on it are not offered.

import { constants, existsSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { refused } from './refusal.ts'

const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants
/** Names a thing without opening it: no device wakes up and no FIFO blocks. Not in Node's list; the same on all Linux. */
const O_PATH = 0o10000000

export function descriptorsWork(): boolean {
  return process.platform === 'linux' && existsSync('/proc/self/fd')
}

/** The path of an open file or directory, for system calls; it means the open thing, not a name. */
export function pathOf(handle: FileHandle): string {
  return `/proc/self/fd/${handle.fd}`
}

/** A directory that is trusted: the operator named it. */
export function openRoot(path: string): Promise<FileHandle> {
  return open(path, O_PATH | O_DIRECTORY)
}

/** Whatever has this name, a link included; nothing is read and nothing happens to it. */
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

/** Refuses all but plain files with one name: a second name may be anywhere, also outside. */
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

/** For reading, what `entry` stands for: the same file, also when its name now means another. */
export function reopen(entry: FileHandle): Promise<FileHandle> {
  return open(pathOf(entry), O_RDONLY | O_NONBLOCK)
}
