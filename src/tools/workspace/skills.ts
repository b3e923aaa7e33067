// `skills`: lets a model read instruction packages. Each is a folder with a SKILL.md and
// other files. Links are never followed.

import { readdirSync, realpathSync } from 'node:fs'
import type { JsonValue } from '../../journal/event.ts'
import { readFrontMatter, frontMatterText } from '../../kit/front-matter.ts'
import { quoted, textField } from '../excerpt.ts'
import type { Tool } from '../tool.ts'
import type { ToolEntry } from '../tool-registry.ts'
import { counted } from './arguments.ts'
import { descriptorsWork } from './descriptors.ts'
import { withRefusalsAsResults, refusalResult } from './refusal.ts'
import { decoded } from './session-files.ts'
import { Workspace } from './workspace.ts'

const description =
  'Lists the skills of this server, or loads the instructions of one. With file, loads a file that lies beside the instructions.'

/** The most files that are listed for one skill. */
const filesMax = 200

export function createSkillsTool(skillsDir: string): ToolEntry {
  let root: string
  try {
    root = realpathSync(skillsDir)
    readdirSync(root)
  } catch {
    return missing('There is no skills directory.')
  }
  return descriptorsWork() ? { source: 'built-in', tool: skills(root) } : missing('It needs Linux with /proc.')
}

function missing(reason: string): ToolEntry {
  return { source: 'built-in', missing: { name: 'skills', description, effect: 'read', reason } }
}

function skills(root: string): Tool {
  const folder = new Workspace(root, '.')
  async function read(name: string, file = 'SKILL.md'): Promise<string | null> {
    const skill = new Workspace(root, name)
    const content = await skill.readFileIfPresent(skill.locate(file))
    return content === null ? null : decoded(content)
  }

  async function filesOf(name: string): Promise<string[]> {
    const paths: string[] = []
    for await (const entry of folder.walk(
      folder.locate(name),
      ({ path }) => !path.split('/').at(-1)?.startsWith('.'),
    )) {
      if (paths.length === filesMax) break
      if (entry.kind === 'file' && entry.path !== 'SKILL.md') paths.push(entry.path)
    }
    return paths
  }
  return {
    name: 'skills',
    description,
    effect: 'read',
    confirm: 'never',
    needsWorkspace: true,
    inputSchema: {
      type: 'object',
      properties: {
        action: { enum: ['list', 'load'] },
        skill_name: { type: 'string', maxLength: 200, description: 'The skill to load.' },
        file: {
          type: 'string',
          maxLength: 1000,
          description: 'One of the files that load lists, instead of the instructions.',
        },
      },
      required: ['action'],
      additionalProperties: false,
    },
    timeoutMs: 10_000,
    outputCharsMax: 200_000,
    describe: (input) =>
      textField(input, 'action') === 'load'
        ? `Load the skill ${quoted(textField(input, 'skill_name'))}`
        : 'List the skills',
    run: withRefusalsAsResults(async (input) => {
      if (textField(input, 'action') === 'list') {
        const found: JsonValue[] = []
        for (const entry of readdirSync(root, { withFileTypes: true })) {
          if (!entry.isDirectory() || !isName(entry.name)) continue
          const text = await read(entry.name).catch(() => null)
          if (text !== null) found.push({ name: entry.name, description: descriptionIn(text) })
        }
        return { ok: true, output: { ok: true, data: found }, summary: `${counted(found.length, 'skill')}.` }
      }
      const name = textField(input, 'skill_name')
      const content = isName(name) ? await read(name) : null
      if (content === null) return refusalResult(`There is no skill ${quoted(name)}.`)
      const file = textField(input, 'file')
      if (file !== '') {
        const text = await read(name, file)
        if (text === null) return refusalResult(`The skill ${quoted(name)} has no file ${quoted(file)}.`)
        return {
          ok: true,
          output: { ok: true, data: { name, file, content: text } },
          summary: `The file ${quoted(file)} of the skill ${quoted(name)} was loaded.`,
        }
      }
      return {
        ok: true,
        output: { ok: true, data: { name, content, files: await filesOf(name) } },
        summary: `The skill ${quoted(name)} was loaded.`,
      }
    }),
  }
}

function isName(name: string): boolean {
  return /^[\p{L}\p{N}_][\p{L}\p{N}_.-]*$/u.test(name)
}

/** Empty if the front matter cannot be read: the skill can still be loaded. */
function descriptionIn(text: string): string {
  try {
    return frontMatterText(readFrontMatter(text, 'SKILL.md').fields, 'description', 'SKILL.md')
  } catch {
    return ''
  }
}
