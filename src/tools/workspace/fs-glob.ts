// `fs_glob`: lists the files whose paths match a pattern. Links are neither listed nor followed.

import { setImmediate } from 'node:timers/promises'
import { excerpt, quoted, textField } from '../excerpt.ts'
import type { Tool } from '../tool.ts'
import { counted, booleanField, integerField } from './arguments.ts'
import { globPattern } from './glob-pattern.ts'
import { withRefusalsAsResults } from './refusal.ts'
import type { SessionFiles } from './session-files.ts'

const limitDefault = 200
const limitMax = 2000
/** The most comparisons that one call makes: a hostile pattern on hostile file names would otherwise run for minutes. */
export const globStepsMax = 50_000_000
/** After this many comparisons we yield to the event loop, because a large directory delivers many names at once. */
export const globStepsInARow = 500_000
/** The most entries that one call visits; the rest of a larger directory is left out. */
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
    run: withRefusalsAsResults(async (input, context) => {
      const workspace = await files.of(context)
      const place = workspace.locate(textField(input, 'cwd'))
      const text = textField(input, 'pattern')
      const pattern = globPattern(text)
      const dot = booleanField(input, 'dot')
      const limit = integerField(input, 'limit', limitDefault)
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
