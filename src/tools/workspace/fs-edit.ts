// `fs_edit`: replaces a piece of a text file. Idempotent; session-files.ts explains how.

import { excerpt, textField } from '../excerpt.ts'
import type { Tool } from '../tool.ts'
import { counted, booleanField } from './arguments.ts'
import { withRefusalsAsResults, refused } from './refusal.ts'
import { replaceText } from './replace.ts'
import type { SessionFiles } from './session-files.ts'

const charsMax = 1_000_000

export function createFsEditTool(files: SessionFiles): Tool {
  return {
    name: 'fs_edit',
    description:
      'Replaces a piece of a text file in the working directory. The piece must occur exactly once, unless replace_all is set.',
    effect: 'idempotent',
    confirm: 'never',
    needsWorkspace: true,
    inputSchema: {
      type: 'object',
      properties: {
        path: { type: 'string', minLength: 1, description: 'The file, relative to the working directory.' },
        old_string: { type: 'string', minLength: 1, maxLength: charsMax, description: 'The piece, exactly as it is.' },
        new_string: { type: 'string', maxLength: charsMax, description: 'What takes its place.' },
        replace_all: { type: 'boolean', description: 'Replace every occurrence.' },
      },
      required: ['path', 'old_string', 'new_string'],
      additionalProperties: false,
    },
    timeoutMs: 30_000,
    outputCharsMax: 10_000,
    describe: (input) => `File operation edit, path ${excerpt(textField(input, 'path'))}`,
    run: withRefusalsAsResults(
      async (input, context) => {
        const workspace = await files.of(context)
        const place = workspace.locate(textField(input, 'path'))
        const { lines, replacements, modified } = await files.change(workspace, place, context, (text) => {
          if (text === null) throw refused(`There is no file or directory ${place.shown}.`)
          return replaceText(
            text,
            textField(input, 'old_string'),
            textField(input, 'new_string'),
            booleanField(input, 'replace_all'),
            place.shown,
          )
        })
        return {
          ok: true,
          output: { ok: true, path: place.shown, replacements, lines },
          summary: `${counted(replacements, 'replacement')} in ${place.shown}.`,
          modified,
          paths: modified ? [place.shown] : [],
        }
      },
      { modified: false, paths: [] },
    ),
  }
}
