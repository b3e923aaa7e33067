// The single steps of reading and writing a file, each on a handle that is already open.
// workspace.ts combines them.

import { constants } from 'node:fs'
import { type FileHandle, mkdir, open, unlink } from 'node:fs/promises'
import { openRegular, pathOf, reopen } from './descriptors.ts'
import { codeOf, refused } from './refusal.ts'

/** Larger files are not read into memory. */
export const fileBytesMax = 10 * 1024 * 1024

export async function readWholeFile(file: FileHandle, shown: string): Promise<Buffer> {
  const pieces: Buffer[] = []
  let length = 0
  for (;;) {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(256 * 1024), 0, 256 * 1024, length)
    if (bytesRead === 0) return Buffer.concat(pieces)
    pieces.push(buffer.subarray(0, bytesRead))
    length += bytesRead
    if (length > fileBytesMax) throw refused(`${shown} is larger than ${fileBytesMax / 1024 / 1024} MiB.`)
  }
}

/** The mode of the file that will be replaced, or the default for a new one. Throws if the entry must not be replaced. */
export async function modeOf(parent: FileHandle, name: string, shown: string): Promise<number> {
  try {
    const entry = await openRegular(parent, name, shown)
    try {
      return (await entry.stat()).mode & 0o777
    } finally {
      await entry.close()
    }
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return 0o644
    throw error
  }
}

export async function createNew(path: string, mode: number): Promise<FileHandle> {
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants
  const flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW
  const file = await open(path, flags, 0o600).catch(async (error: unknown) => {
    if (codeOf(error) !== 'EEXIST') throw error
    // An earlier attempt crashed and left its temporary file behind.
    await unlink(path)
    return open(path, flags, 0o600)
  })
  await file.chmod(mode)
  return file
}

export async function makeDirectory(parent: FileHandle, name: string): Promise<void> {
  try {
    await mkdir(`${pathOf(parent)}/${name}`)
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
  }
}

export async function syncDirectory(directory: FileHandle): Promise<void> {
  const handle = await reopen(directory)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
