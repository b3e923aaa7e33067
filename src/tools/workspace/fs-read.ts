// `fs_read`: reads lines of a text file. The session remembers the file's hash, so that a
// later change is refused if the file has changed in between.

import { excerpt, textField } from '../excerpt.ts'
import type { Tool } from '../tool.ts'
import { counted, integerField } from './arguments.ts'
import { withRefusalsAsResults } from './refusal.ts'
import { linesOf, type SessionFiles } from './session-files.ts'

const linesMax = 2000
const charsMax = 100_000
const unchanged = { modified: false, paths: [] }

export function createFsReadTool(files: SessionFiles): Tool {
  return {
    name: 'fs_read',
    description: `Reads a text file in the working directory: at most ${linesMax} lines at a time.`,
    effect: 'read',
    confirm: 'never',
    needsWorkspace: true,
    inputSchema: {
      type: 'object',
      properties: {
        path: { type: 'string', minLength: 1, description: 'The file, relative to the working directory.' },
        offset: { type: 'integer', minimum: 1, description: 'The first line to read, counted from 1.' },
        limit: { type: 'integer', minimum: 1, description: `How many lines; ${linesMax} when absent, and at most.` },
      },
      required: ['path'],
      additionalProperties: false,
    },
    timeoutMs: 30_000,
    outputCharsMax: 2 * charsMax,
    describe: (input) => `File operation read, path ${excerpt(textField(input, 'path'))}`,
    run: withRefusalsAsResults(async (input, context) => {
      const workspace = await files.of(context)
      const place = workspace.locate(textField(input, 'path'))
      const text = await files.read(workspace, place, context)
      const offset = integerField(input, 'offset', 1)
      const limit = Math.min(integerField(input, 'limit', linesMax), linesMax)
      const totalLines = linesOf(text)
      const from = startOfLine(text, offset)
      const to = Math.min(startOfLine(text, offset + limit), from + charsMax)
      const content = text.slice(from, to)
      const truncated = to < text.length
      const shown = linesOf(content)
      return {
        ok: true,
        output: { path: place.shown, offset, limit, truncated, totalLines, content },
        summary: `Read ${counted(shown, 'line')} of ${place.shown}${truncated || offset > 1 ? ` (of ${totalLines}, from line ${offset})` : ''}.`,
        ...unchanged,
      }
    }, unchanged),
  }
}

/** The index at which line `number` begins, or the length of the text if there are fewer lines. */
function startOfLine(text: string, number: number): number {
  let at = 0
  for (let line = 1; line < number; line += 1) {
    const end = text.indexOf('\n', at)
    if (end < 0) return text.length
    at = end + 1
  }
  return at
}
