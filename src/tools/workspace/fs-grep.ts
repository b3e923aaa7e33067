// `fs_grep`: finds lines that contain a text or match a regular expression. It skips files
// that are not text or too large, links, and files with several hard links.

import { setImmediate } from 'node:timers/promises'
import { excerpt, quoted, textField } from '../excerpt.ts'
import type { Tool } from '../tool.ts'
import { AppError } from '../../errors/app-error.ts'
import { counted, field, booleanField, integerField } from './arguments.ts'
import { globStepsInARow, globStepsMax, visitedMax } from './fs-glob.ts'
import { globPattern } from './glob-pattern.ts'
import type { Hit } from './line-hits.ts'
import { plainSearch, regexSearch } from './line-search.ts'
import { withRefusalsAsResults } from './refusal.ts'
import type { SearchPool } from './search-pool.ts'
import { decoded, type SessionFiles } from './session-files.ts'
import type { WorkspacePath, Workspace } from './workspace.ts'

const resultsDefault = 200
const resultsMax = 1000
/** The most characters that one call searches. */
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
    run: withRefusalsAsResults(async (input, context) => {
      const workspace = await files.of(context)
      const pattern = textField(input, 'pattern')
      const path = textField(input, 'path') || '.'
      const limit = integerField(input, 'max_results', resultsDefault)
      const caseSensitive = field(input, 'case_sensitive') !== false
      const search = booleanField(input, 'regex')
        ? regexSearch(pool, pattern, caseSensitive, context.signal)
        : plainSearch(pattern, caseSensitive)
      // Rejects an invalid pattern even if there is no file to search.
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

/** Yields null and stops if a limit is reached. When it walks a directory, it skips names that begin with a dot. */
async function* filesAt(workspace: Workspace, path: string): AsyncGenerator<WorkspacePath | null> {
  const isPattern = /[*?[{]/.test(path)
  const place = workspace.locate(isPattern ? '.' : path)
  if (!isPattern && (await workspace.kindOf(place)) !== 'directory') {
    // If the path is missing or not a regular file, this throws the reason.
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
    yield workspace.locate(place.shown === '.' ? entry.path : `${place.shown}/${entry.path}`)
  }
}

async function textAt(workspace: Workspace, place: WorkspacePath): Promise<string | null> {
  try {
    return decoded(await workspace.readFile(place))
  } catch (error) {
    if (error instanceof AppError && (error.code === 'file_refused' || error.code === 'workspace_outside')) return null
    throw error
  }
}
