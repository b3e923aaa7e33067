// The files of a skill that a model may list and read while it runs the skill. A path is
// valid only if it is on the list that was made when the skill was read, so a model cannot
// reach any other file.

import { createHash } from 'node:crypto'
import { lstat, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

export type SkillFile = { path: string; size: number; sha256: string }

/** The same limit as for uploaded packages. Further files are not listed. */
const filesMax = 500
const depthMax = 8
/** Larger files are not offered to a model. */
export const skillFileBytesMax = 1024 * 1024
const pathCharsMax = 300

/** Whether a model may read this file of a package. `apart` are the files that only the server reads. */
export function isReadable(path: string, size: number, apart: ReadonlySet<string>): boolean {
  return size <= skillFileBytesMax && path.length <= pathCharsMax && !apart.has(path)
}

/** The files of a folder, sorted by name. Links, hidden files and files that are too large are left out. */
export async function filesOfFolder(folder: string): Promise<SkillFile[]> {
  const found: SkillFile[] = []
  await walk('', 1)
  return found

  async function walk(inside: string, depth: number): Promise<void> {
    const entries = await readdir(join(folder, inside), { withFileTypes: true })
    for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      if (found.length >= filesMax) return
      if (entry.name.startsWith('.')) continue
      const path = inside === '' ? entry.name : `${inside}/${entry.name}`
      if (entry.isDirectory()) {
        if (depth < depthMax) await walk(path, depth + 1)
      } else if (entry.isFile()) {
        const { size } = await lstat(join(folder, path))
        if (size <= skillFileBytesMax) found.push(skillFile(path, await readFile(join(folder, path))))
      }
    }
  }
}

export function skillFile(path: string, body: Buffer): SkillFile {
  return { path, size: body.length, sha256: createHash('sha256').update(body).digest('hex') }
}
