// An uploaded skill: a zip with one top-level folder that has the skill's name. It is read in
// memory and never installed.

import { AppError } from '../errors/app-error.ts'
import { readZip, type ZipFile } from '../kit/zip-reader.ts'
import { readSkill, type Skill } from './skill.ts'
import { skillFile } from './skill-files.ts'

export type SkillPackage = {
  skill: Skill
  /** Paths are relative to the top-level folder. */
  files: ZipFile[]
}

/** Throws `archive_…` if the zip is invalid, and `skill_package_invalid` if the skill in it is. */
export async function openSkillPackage(archive: Buffer): Promise<SkillPackage> {
  const entries = await readZip(archive)
  const tops = new Set(entries.map(({ path }) => path.split('/', 1)[0] ?? ''))
  const [top] = tops
  if (tops.size !== 1 || top === undefined || entries.some(({ path }) => !path.includes('/'))) {
    throw invalid('it must have exactly one folder at the top, and everything in it')
  }
  const files = entries.map(({ path, body }) => ({ path: path.slice(top.length + 1), body }))
  const read = (path: string) => Promise.resolve(files.find((file) => file.path === path)?.body.toString('utf8'))
  try {
    const listed = files.map(({ path, body }) => skillFile(path, body))
    return { skill: await readSkill(read, { folder: top, strict: true, files: listed }), files }
  } catch (error) {
    throw invalid(error instanceof Error ? error.message : String(error))
  }
}

function invalid(why: string): AppError {
  return new AppError('skill_package_invalid', `The skill package cannot be used: ${why}.`)
}
