// The skills that are installed on this server: every folder of the skills directory, read
// once at start-up. A broken skill is listed with the reason and does not stop the server.

import { readdir, readFile, realpath, stat } from 'node:fs/promises'
import { join, resolve, sep } from 'node:path'
import { AppError } from '../errors/app-error.ts'
import { type PackageReader, readSkill, type Skill } from './skill.ts'
import { filesOfFolder, skillFileBytesMax } from './skill-files.ts'

export type SkillListing = { id: string; skill: Skill | null; error: string | null }

export interface SkillRegistry {
  list(): readonly SkillListing[]
  /** Throws `skill_not_found`, or `skill_broken` with the reason. */
  get(id: string): Skill
  /** Reads a file from the skill's `files`. Undefined if the skill or the file does not exist or cannot be read. */
  readFile(id: string, path: string): Promise<Buffer | undefined>
}

/** If the directory does not exist, there are no skills. */
export async function readSkills(directory: string): Promise<SkillRegistry> {
  let names: string[]
  try {
    const entries = await readdir(directory, { withFileTypes: true })
    names = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name)
  } catch (cause) {
    if ((cause as { code?: string }).code !== 'ENOENT') {
      throw new AppError(
        'config_invalid',
        `The skills folder ${directory} cannot be read; set POLYLOG_SKILLS_DIR to a folder with skills.`,
        { cause },
      )
    }
    names = []
  }
  const listings: SkillListing[] = []
  for (const name of names.toSorted()) {
    try {
      const folder = join(directory, name)
      const files = await filesOfFolder(folder)
      const skill = await readSkill(textReader(folder), { folder: name, strict: false, files })
      listings.push({ id: skill.id, skill, error: null })
    } catch (error) {
      listings.push({ id: name, skill: null, error: error instanceof Error ? error.message : String(error) })
    }
  }
  return {
    list: () => listings,
    get(id) {
      const listing = listings.find((candidate) => candidate.id === id)
      if (listing === undefined)
        throw new AppError(
          'skill_not_found',
          `There is no skill ${JSON.stringify(id)}. GET /v1/skills lists those that there are.`,
        )
      if (listing.skill === null)
        throw new AppError('skill_broken', `The skill ${id} cannot be used: ${listing.error}.`)
      return listing.skill
    },
    async readFile(id, path) {
      const skill = listings.find((candidate) => candidate.id === id)?.skill
      if (skill?.files.some((file) => file.path === path) !== true) return undefined
      return await readInside(join(directory, id), path).catch(() => undefined)
    },
  }
}

function textReader(folder: string): PackageReader {
  return async (path) => (await readInside(folder, path))?.toString('utf8')
}

/** Throws if the path leads out of the folder, also through a link. Undefined if there is no such file. */
async function readInside(folder: string, path: string): Promise<Buffer | undefined> {
  let real: string
  let root: string
  try {
    root = await realpath(folder)
    real = await realpath(resolve(folder, path))
  } catch {
    return undefined
  }
  if (!real.startsWith(root + sep)) throw new Error(`${path} lies outside the skill's folder`)
  const { size } = await stat(real)
  if (size > skillFileBytesMax) throw new Error(`${path} is larger than 1 MiB`)
  return await readFile(real)
}
