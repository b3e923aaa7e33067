// `fs_write`: creates or replaces a whole file atomically. Idempotent: if a call is retried
// after a crash, it recognises its own content and changes nothing, and it never overwrites
// a change that another writer made in between.

import { excerpt, textField } from '../excerpt.ts'
import type { Tool } from '../tool.ts'
import { counted } from './arguments.ts'
import { withRefusalsAsResults } from './refusal.ts'
import type { SessionFiles } from './session-files.ts'

const charsMax = 5_000_000

export function createFsWriteTool(files: SessionFiles): Tool {
  return {
    name: 'fs_write',
    description: 'Writes a whole text file in the working directory. Missing directories are made.',
    effect: 'idempotent',
    confirm: 'never',
    needsWorkspace: true,
    inputSchema: {
      type: 'object',
      properties: {
        path: { type: 'string', minLength: 1, description: 'The file, relative to the working directory.' },
        content: { type: 'string', maxLength: charsMax, description: 'All of its new content.' },
      },
      required: ['path', 'content'],
      additionalProperties: false,
    },
    timeoutMs: 30_000,
    outputCharsMax: 10_000,
    describe: (input) => `File operation write, path ${excerpt(textField(input, 'path'))}`,
    run: withRefusalsAsResults(
      async (input, context) => {
        const workspace = await files.of(context)
        const place = workspace.locate(textField(input, 'path'))
        const content = textField(input, 'content')
        const { bytes, lines } = await files.change(workspace, place, context, () => ({ content, replacements: 0 }))
        return {
          ok: true,
          output: { ok: true, path: place.shown, bytes, lines },
          summary: `Wrote ${counted(bytes, 'byte')} to ${place.shown}.`,
          modified: true,
          paths: [place.shown],
        }
      },
      { modified: false, paths: [] },
    ),
  }
}
