// One session's working directory. Whatever path a model names, nothing outside is
// read or written: paths are cut into names, and names are opened one below the
// other without following links (see descriptors.ts). Links, devices, pipes and
// files with several names are refused rather than judged.
//
// Writes are whole or not at all: a new file beside the old one, synced, and then
// given its name.

import { type FileHandle, readdir, readlink, rename, unlink } from 'node:fs/promises'
import { isAbsolute, join, relative, resolve, sep } from 'node:path'
import { openDirectory, openEntry, openRegular, openRoot, pathOf, reopen } from './descriptors.ts'
import { createNew, makeDirectory, modeOf, syncDirectory, wholeOf } from './file-operations.ts'
import { codeOf, outside, refused, translated } from './refusal.ts'

const pathBytesMax = 4096
const depthMax = 64

export const temporaryPrefix = '.polylog-'

/** A place inside: its names from the working directory on, and how the caller wrote it. */
export type Place = { names: string[]; shown: string }

export type WalkEntry = { path: string; kind: 'file' | 'directory' }

export class Workspace {
  /** The configured workspace, without links. */
  private readonly root: string
  /** The working directory, from there. */
  private readonly folders: string[]
  private readonly aliases: string[]

  constructor(root: string, dir: string, configuredRoot: string = root) {
    this.root = root
    this.folders = namesOf(dir, dir)
    this.aliases = [configuredRoot, root].map((base) => join(base, ...this.folders))
  }

  /** For the current directory of a process; the names in it were checked, but it is a name again. */
  get directory(): string {
    return join(this.root, ...this.folders)
  }

  place(path: string): Place {
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

  /** The same for every way to write the place; named from the configured workspace. */
  keyOf(place: Place): string {
    return [...this.folders, ...place.names].join('/') || '.'
  }

  /** Null where there is no such file. */
  async readIfThere(place: Place): Promise<Buffer | null> {
    try {
      return await this.read(place)
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return null
      throw translated(error, place.shown)
    }
  }

  async readFile(place: Place): Promise<Buffer> {
    try {
      return await this.read(place)
    } catch (error) {
      throw translated(error, place.shown)
    }
  }

  /** Replaces the whole file, or makes it with its directories. `temporary` is the same over retries of one write. */
  async writeFile(place: Place, content: Uint8Array, temporary: string): Promise<void> {
    try {
      await this.write(place, content, `${temporaryPrefix}${temporary}.tmp`)
    } catch (error) {
      throw translated(error, place.shown)
    }
  }

  /** Makes the working directory where it is missing. */
  async make(): Promise<void> {
    try {
      const handle = await this.enter([], this.directory, true)
      await handle.close()
    } catch (error) {
      throw translated(error, 'The working directory')
    }
  }

  /** Runs `use` with the open directory. */
  async inDirectory<T>(place: Place, use: (directory: FileHandle) => Promise<T>): Promise<T> {
    try {
      const handle = await this.enter(place.names, place.shown, false)
      try {
        return await use(handle)
      } finally {
        await handle.close()
      }
    } catch (error) {
      throw translated(error, place.shown)
    }
  }

  /** What the place is; null where there is nothing. Links are `other`. */
  async kindOf(place: Place): Promise<'file' | 'directory' | 'other' | null> {
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
      throw translated(error, place.shown)
    }
  }

  /** Everything below a directory, in the order of names, without going through links. Paths are from `place` on. */
  async *walk(place: Place, wanted: (entry: WalkEntry) => boolean): AsyncGenerator<WalkEntry> {
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

  /** A directory below the first one may vanish, or become a link, while we walk: then there is nothing in it. */
  private async list(place: Place, mayBeGone: boolean) {
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

  private async read(place: Place): Promise<Buffer> {
    const name = fileNameOf(place)
    const parent = await this.enter(place.names.slice(0, -1), place.shown, false)
    try {
      const entry = await openRegular(parent, name, place.shown)
      try {
        const file = await reopen(entry)
        try {
          return await wholeOf(file, place.shown)
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

  private async write(place: Place, content: Uint8Array, temporary: string): Promise<void> {
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
        await this.stillInside(parent, place.shown)
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

  /** A directory that was open may have been moved away: then it is no longer ours. */
  private async stillInside(directory: FileHandle, shown: string): Promise<void> {
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

/** Lexically, which is right because links are never followed. */
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

function fileNameOf(place: Place): string {
  const name = place.names.at(-1)
  if (name === undefined) throw refused(`${place.shown} is a directory.`)
  return name
}
