// The skills that are installed on this server: every folder of the skills directory,
// read once at start. A broken one stops nothing and is listed with the reason.

import { readdir, readFile, realpath } from 'node:fs/promises'
import { join, resolve, sep } from 'node:path'
import { AppError } from '../errors/app-error.ts'
import { type PackageReader, readSkill, type Skill } from './skill.ts'

export type SkillListing = { id: string; skill: Skill | null; error: string | null }

export interface SkillRegistry {
  list(): readonly SkillListing[]
  /** Throws `skill_not_found`, and `skill_broken` with the reason. */
  get(id: string): Skill
}

/** A folder that is not there holds no skills. */
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
      const skill = await readSkill(folderReader(join(directory, name)), { folder: name, strict: false })
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
  }
}

/** Reads files of the folder only, also where a link in it leads elsewhere. */
function folderReader(folder: string): PackageReader {
  return async (path) => {
    const full = resolve(folder, path)
    let real: string
    let root: string
    try {
      root = await realpath(folder)
      real = await realpath(full)
    } catch {
      return undefined
    }
    if (!real.startsWith(root + sep)) throw new Error(`${path} lies outside the skill's folder`)
    return await readFile(real, 'utf8')
  }
}
