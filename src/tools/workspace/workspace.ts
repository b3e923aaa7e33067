// One session's working directory. Whatever path a model names, nothing outside is read or
// written: a path is split into names, and each name is opened below the previous one
// without following links (see descriptors.ts). Links, devices, pipes and files with several
// hard links are always refused.
//
// Writes are atomic: a temporary file is written beside the old one, synced, and renamed.

import { type FileHandle, readdir, readlink, rename, unlink } from 'node:fs/promises'
import { isAbsolute, join, relative, resolve, sep } from 'node:path'
import { openDirectory, openEntry, openRegular, openRoot, pathOf, reopen } from './descriptors.ts'
import { createNew, makeDirectory, modeOf, syncDirectory, readWholeFile } from './file-operations.ts'
import { codeOf, outside, refused, toFileError } from './refusal.ts'

const pathBytesMax = 4096
const depthMax = 64

export const temporaryPrefix = '.polylog-'

/** A path inside the working directory: its names from there on, and the form that messages show. */
export type WorkspacePath = { names: string[]; shown: string }

export type WalkEntry = { path: string; kind: 'file' | 'directory' }

export class Workspace {
  /** The real path of the configured workspace, with links resolved. */
  private readonly root: string
  /** The names from `root` to the working directory. */
  private readonly folders: string[]
  private readonly aliases: string[]

  constructor(root: string, dir: string, configuredRoot: string = root) {
    this.root = root
    this.folders = namesOf(dir, dir)
    this.aliases = [configuredRoot, root].map((base) => join(base, ...this.folders))
  }

  /** The path of the working directory. Unlike an open handle, a path may refer to another directory later. */
  get directory(): string {
    return join(this.root, ...this.folders)
  }

  locate(path: string): WorkspacePath {
    const shown = path.length <= 200 ? path : `${path.slice(0, 199)}…`
    if (path.includes('\0')) throw refused('A path must not hold a NUL character.')
    if (Buffer.byteLength(path) > pathBytesMax) throw refused(`The path ${shown} is too long.`)
    if (!isAbsolute(path)) {
      const names = namesOf(path === '' ? '.' : path, shown)
      return { names, shown: names.join('/') || '.' }
    }
    for (const base of this.aliases) {
      const inside = relative(base, resolve(path))
      if (inside === '..' || inside.startsWith(`..${sep}`) || isAbsolute(inside)) continue
      return { names: namesOf(inside || '.', shown), shown: resolve(path) }
    }
    throw outside(shown)
  }

  /** The normalised path from the configured workspace: equal for all spellings of one path. */
  keyOf(place: WorkspacePath): string {
    return [...this.folders, ...place.names].join('/') || '.'
  }

  /** Null if there is no such file. */
  async readFileIfPresent(place: WorkspacePath): Promise<Buffer | null> {
    try {
      return await this.read(place)
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return null
      throw toFileError(error, place.shown)
    }
  }

  async readFile(place: WorkspacePath): Promise<Buffer> {
    try {
      return await this.read(place)
    } catch (error) {
      throw toFileError(error, place.shown)
    }
  }

  /** Replaces the whole file, or creates it and its directories. `temporary` must be the same for all retries of one write. */
  async writeFile(place: WorkspacePath, content: Uint8Array, temporary: string): Promise<void> {
    try {
      await this.write(place, content, `${temporaryPrefix}${temporary}.tmp`)
    } catch (error) {
      throw toFileError(error, place.shown)
    }
  }

  /** Creates the working directory if it is missing. */
  async make(): Promise<void> {
    try {
      const handle = await this.enter([], 'its path', true)
      await handle.close()
    } catch (error) {
      throw toFileError(error, 'The working directory')
    }
  }

  /** Runs `use` with the open directory. */
  async inDirectory<T>(place: WorkspacePath, use: (directory: FileHandle) => Promise<T>): Promise<T> {
    try {
      const handle = await this.enter(place.names, place.shown, false)
      try {
        return await use(handle)
      } finally {
        await handle.close()
      }
    } catch (error) {
      throw toFileError(error, place.shown)
    }
  }

  /** Null if there is no such entry. A link is `other`. */
  async kindOf(place: WorkspacePath): Promise<'file' | 'directory' | 'other' | null> {
    const name = place.names.at(-1)
    if (name === undefined) return 'directory'
    try {
      const parent = await this.enter(place.names.slice(0, -1), place.shown, false)
      try {
        const entry = await openEntry(parent, name)
        try {
          const stats = await entry.stat()
          return stats.isDirectory() ? 'directory' : stats.isFile() ? 'file' : 'other'
        } finally {
          await entry.close()
        }
      } finally {
        await parent.close()
      }
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return null
      throw toFileError(error, place.shown)
    }
  }

  /** Yields everything below a directory, sorted by name, without following links. Paths are relative to `place`. */
  async *walk(place: WorkspacePath, wanted: (entry: WalkEntry) => boolean): AsyncGenerator<WalkEntry> {
    const open: string[] = ['']
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      const names = at === '' ? [] : at.split('/')
      if (names.length > depthMax) continue
      const below: string[] = []
      for (const entry of await this.list({ names: [...place.names, ...names], shown: place.shown }, at !== '')) {
        const path = at === '' ? entry.name : `${at}/${entry.name}`
        const kind = entry.isDirectory() ? 'directory' : entry.isFile() ? 'file' : null
        if (kind === null || entry.name.startsWith(temporaryPrefix) || !wanted({ path, kind })) continue
        if (kind === 'directory') below.push(path)
        yield { path, kind }
      }
      open.push(...below.reverse())
    }
  }

  /** With `mayBeGone`, returns no entries if the directory vanished or became a link during the walk. */
  private async list(place: WorkspacePath, mayBeGone: boolean) {
    try {
      return await this.inDirectory(place, async (directory) => {
        const entries = await readdir(pathOf(directory), { withFileTypes: true })
        return entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))
      })
    } catch (error) {
      if (mayBeGone) return []
      throw error
    }
  }

  private async read(place: WorkspacePath): Promise<Buffer> {
    const name = fileNameOf(place)
    const parent = await this.enter(place.names.slice(0, -1), place.shown, false)
    try {
      const entry = await openRegular(parent, name, place.shown)
      try {
        const file = await reopen(entry)
        try {
          return await readWholeFile(file, place.shown)
        } finally {
          await file.close()
        }
      } finally {
        await entry.close()
      }
    } finally {
      await parent.close()
    }
  }

  private async write(place: WorkspacePath, content: Uint8Array, temporary: string): Promise<void> {
    const name = fileNameOf(place)
    const parent = await this.enter(place.names.slice(0, -1), place.shown, true)
    try {
      const mode = await modeOf(parent, name, place.shown)
      const beside = `${pathOf(parent)}/${temporary}`
      try {
        const file = await createNew(beside, mode)
        try {
          await file.writeFile(content)
          await file.sync()
        } finally {
          await file.close()
        }
        await this.checkStillInside(parent, place.shown)
        await rename(beside, `${pathOf(parent)}/${name}`)
      } catch (error) {
        await unlink(beside).catch(() => {})
        throw error
      }
      await syncDirectory(parent)
    } finally {
      await parent.close()
    }
  }

  /** Throws if the open directory has been moved out of the working directory in the meantime. */
  private async checkStillInside(directory: FileHandle, shown: string): Promise<void> {
    const inside = relative(this.directory, await readlink(pathOf(directory)))
    if (inside === '..' || inside.startsWith(`..${sep}`) || isAbsolute(inside)) throw outside(shown)
  }

  private async enter(names: string[], shown: string, create: boolean): Promise<FileHandle> {
    let here = await openRoot(this.root)
    try {
      for (const name of [...this.folders, ...names]) {
        if (create) await makeDirectory(here, name)
        const next = await openDirectory(here, name, shown)
        await here.close()
        here = next
      }
      return here
    } catch (error) {
      await here.close()
      throw error
    }
  }
}

/** Splits a path into names and resolves `..` lexically, which is correct because links are never followed. */
function namesOf(path: string, shown: string): string[] {
  if (path.includes('\0')) throw refused('A path must not hold a NUL character.')
  const names: string[] = []
  for (const name of path.split('/')) {
    if (name === '' || name === '.') continue
    if (name !== '..') names.push(name)
    else if (names.pop() === undefined) throw outside(shown)
    if (Buffer.byteLength(name) > 255) throw refused(`The name ${shown} is too long.`)
  }
  if (isAbsolute(path)) throw outside(shown)
  if (names.length > depthMax) throw refused(`${shown} is too deep: more than ${depthMax} directories.`)
  return names
}

function fileNameOf(place: WorkspacePath): string {
  const name = place.names.at(-1)
  if (name === undefined) throw refused(`${place.shown} is a directory.`)
  return name
}
