// `fs_grep`: lines that contain a text or fit a regular expression. Files that are
// not text, too large, links or of several names are passed over.

import { setImmediate } from 'node:timers/promises'
import { excerpt, quoted, textField } from '../excerpt.ts'
import type { Tool } from '../tool.ts'
import { AppError } from '../../errors/app-error.ts'
import { counted, field, flag, whole } from './arguments.ts'
import { globStepsInARow, globStepsMax, visitedMax } from './fs-glob.ts'
import { globPattern } from './glob-pattern.ts'
import type { Hit } from './line-hits.ts'
import { plainSearch, regexSearch } from './line-search.ts'
import { answering } from './refusal.ts'
import type { SearchPool } from './search-pool.ts'
import { decoded, type SessionFiles } from './session-files.ts'
import type { Place, Workspace } from './workspace.ts'

const resultsDefault = 200
const resultsMax = 1000
/** How much of a workspace one call searches. */
const searchedCharsMax = 128 * 1024 * 1024
const unchanged = { modified: false, paths: [] }

export function createFsGrepTool(files: SessionFiles, pool: SearchPool): Tool {
  return {
    name: 'fs_grep',
    description: 'Searches the text files of the working directory for a text or a regular expression.',
    effect: 'read',
    confirm: 'never',
    needsWorkspace: true,
    inputSchema: {
      type: 'object',
      properties: {
        pattern: { type: 'string', minLength: 1, maxLength: 2000, description: 'What to look for.' },
        path: {
          type: 'string',
          description: 'A file, a directory or a pattern such as src/**/*.ts; everything when absent.',
        },
        regex: {
          type: 'boolean',
          description: 'The pattern is a regular expression in RE2 syntax: no look-around, no back-references.',
        },
        case_sensitive: { type: 'boolean', description: 'true when absent.' },
        max_results: {
          type: 'integer',
          minimum: 1,
          maximum: resultsMax,
          description: `At most so many; ${resultsDefault} when absent.`,
        },
      },
      required: ['pattern'],
      additionalProperties: false,
    },
    timeoutMs: 30_000,
    outputCharsMax: 100_000,
    describe: (input) => `File operation grep, path ${excerpt(textField(input, 'path') || '.')}`,
    run: answering(async (input, context) => {
      const workspace = await files.of(context)
      const pattern = textField(input, 'pattern')
      const path = textField(input, 'path') || '.'
      const limit = whole(input, 'max_results', resultsDefault)
      const caseSensitive = field(input, 'case_sensitive') !== false
      const search = flag(input, 'regex')
        ? regexSearch(pool, pattern, caseSensitive, context.signal)
        : plainSearch(pattern, caseSensitive)
      // Also where no file is searched, a pattern that cannot be used is said to be so.
      await search('', 1)
      const matches: (Hit & { path: string })[] = []
      let truncated = false
      let chars = 0
      for await (const place of filesAt(workspace, path)) {
        if (context.signal.aborted) throw context.signal.reason
        if (place === null) {
          truncated = true
          break
        }
        const text = await textAt(workspace, place)
        if (text === null) continue
        const hits = await search(text, limit - matches.length + 1)
        matches.push(...hits.map((hit) => ({ path: place.shown, ...hit })))
        chars += text.length
        truncated = matches.length > limit || chars > searchedCharsMax
        if (truncated) break
      }
      const shown = matches.slice(0, limit)
      return {
        ok: true,
        output: { ok: true, pattern, path, matches: shown, truncated },
        summary: `${counted(shown.length, 'match', 'matches')} for ${quoted(pattern, 60)}${truncated ? ', and there are more' : ''}.`,
        ...unchanged,
      }
    }, unchanged),
  }
}

/** Null: there are more than anyone should search. Names that begin with a dot are left out of directories. */
async function* filesAt(workspace: Workspace, path: string): AsyncGenerator<Place | null> {
  const isPattern = /[*?[{]/.test(path)
  const place = workspace.place(isPattern ? '.' : path)
  if (!isPattern && (await workspace.kindOf(place)) !== 'directory') {
    // What is wrong with it is said by reading it.
    await workspace.readFile(place)
    yield place
    return
  }
  const pattern = isPattern ? globPattern(path) : null
  let visited = 0
  let restedAt = 0
  for await (const entry of workspace.walk(place, (one) => !/(?:^|\/)\.[^/]*$/.test(one.path))) {
    visited += 1
    if (pattern !== null && pattern.steps - restedAt > globStepsInARow) {
      restedAt = pattern.steps
      await setImmediate()
    }
    if (visited > visitedMax || (pattern?.steps ?? 0) > globStepsMax) {
      yield null
      return
    }
    if (entry.kind !== 'file' || pattern?.matches(entry.path) === false) continue
    yield workspace.place(place.shown === '.' ? entry.path : `${place.shown}/${entry.path}`)
  }
}

async function textAt(workspace: Workspace, place: Place): Promise<string | null> {
  try {
    return decoded(await workspace.readFile(place))
  } catch (error) {
    if (error instanceof AppError && (error.code === 'file_refused' || error.code === 'workspace_outside')) return null
    throw error
  }
}
