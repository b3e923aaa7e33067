// `fs_glob`: names of files by a pattern. Links are neither shown nor followed.

import { setImmediate } from 'node:timers/promises'
import { excerpt, quoted, textField } from '../excerpt.ts'
import type { Tool } from '../tool.ts'
import { counted, flag, whole } from './arguments.ts'
import { globPattern } from './glob-pattern.ts'
import { answering } from './refusal.ts'
import type { SessionFiles } from './session-files.ts'

const limitDefault = 200
const limitMax = 2000
/** Comparisons of one call; a pattern and names that are made for it would need more than anybody waits for. */
export const globStepsMax = 50_000_000
/** After so many others get their turn: reading a large directory gives many names at once. */
export const globStepsInARow = 500_000
/** A directory with more than this is looked at only in part. */
export const visitedMax = 100_000
const unchanged = { modified: false, paths: [] }

export function createFsGlobTool(files: SessionFiles): Tool {
  return {
    name: 'fs_glob',
    description: 'Finds files in the working directory by a pattern such as src/**/*.ts.',
    effect: 'read',
    confirm: 'never',
    needsWorkspace: true,
    inputSchema: {
      type: 'object',
      properties: {
        pattern: {
          type: 'string',
          minLength: 1,
          maxLength: 1000,
          description: '* ? [a-z] {a,b}, and ** for directories.',
        },
        cwd: { type: 'string', description: 'Where to begin, relative to the working directory.' },
        dot: { type: 'boolean', description: 'Also names that begin with a dot.' },
        limit: {
          type: 'integer',
          minimum: 1,
          maximum: limitMax,
          description: `At most so many; ${limitDefault} when absent.`,
        },
      },
      required: ['pattern'],
      additionalProperties: false,
    },
    timeoutMs: 30_000,
    outputCharsMax: 100_000,
    describe: (input) => `File operation glob, path ${excerpt(textField(input, 'pattern'))}`,
    run: answering(async (input, context) => {
      const workspace = await files.of(context)
      const place = workspace.place(textField(input, 'cwd'))
      const text = textField(input, 'pattern')
      const pattern = globPattern(text)
      const dot = flag(input, 'dot')
      const limit = whole(input, 'limit', limitDefault)
      const matches: string[] = []
      let truncated = false
      let visited = 0
      let restedAt = 0
      for await (const entry of workspace.walk(place, ({ path }) => dot || !hidden(path))) {
        if (pattern.steps - restedAt > globStepsInARow) {
          restedAt = pattern.steps
          await setImmediate()
        }
        if (context.signal.aborted) throw context.signal.reason
        visited += 1
        if (entry.kind === 'file' && pattern.matches(entry.path)) {
          if (matches.length < limit) matches.push(entry.path)
          else truncated = true
        }
        if (visited > visitedMax || pattern.steps > globStepsMax) truncated = true
        if (truncated) break
      }
      const found = `${counted(matches.length, 'file')} ${matches.length === 1 ? 'matches' : 'match'}`
      return {
        ok: true,
        output: { ok: true, pattern: text, cwd: place.shown, truncated, count: matches.length, matches },
        summary: `${found} ${quoted(text)}${truncated ? ', and there are more' : ''}.`,
        ...unchanged,
      }
    }, unchanged),
  }
}

function hidden(path: string): boolean {
  return path.slice(path.lastIndexOf('/') + 1).startsWith('.')
}
