// `fs_multi_edit`: several edits in several files. The edits of one file are atomic: all or
// none. If one file fails, the changes to other files stay. Each file's change is
// idempotent; session-files.ts explains how.

import { AppError } from '../../errors/app-error.ts'
import type { JsonValue } from '../../journal/event.ts'
import { textField } from '../excerpt.ts'
import type { Tool, ToolContext } from '../tool.ts'
import { counted, field, booleanField } from './arguments.ts'
import { refused } from './refusal.ts'
import { replaceText } from './replace.ts'
import type { SessionFiles } from './session-files.ts'
import type { WorkspacePath, Workspace } from './workspace.ts'

const charsMax = 1_000_000
const editsMax = 100

type Edit = { index: number; path: string; find: string; replace: string; all: boolean }
type Result = { path: string; replacements: number; status: 'ok' | 'skipped' | 'error'; message?: string }

export function createFsMultiEditTool(files: SessionFiles): Tool {
  return {
    name: 'fs_multi_edit',
    description:
      'Replaces several pieces in one or more text files of the working directory. All edits of one file are made, or none of them.',
    effect: 'idempotent',
    confirm: 'never',
    needsWorkspace: true,
    inputSchema: {
      type: 'object',
      properties: {
        edits: {
          type: 'array',
          minItems: 1,
          maxItems: editsMax,
          items: {
            type: 'object',
            properties: {
              path: { type: 'string', minLength: 1, description: 'The file, relative to the working directory.' },
              find: { type: 'string', minLength: 1, maxLength: charsMax, description: 'The piece, exactly as it is.' },
              replace: { type: 'string', maxLength: charsMax, description: 'What takes its place.' },
              replace_all: { type: 'boolean', description: 'Replace every occurrence.' },
            },
            required: ['path', 'find', 'replace'],
            additionalProperties: false,
          },
        },
      },
      required: ['edits'],
      additionalProperties: false,
    },
    timeoutMs: 60_000,
    outputCharsMax: 50_000,
    describe: (input) =>
      `File operation multi-edit, path ${[...new Set(editsOf(input).map((edit) => edit.path))].join(', ').slice(0, 500)}`,
    async run(input, context) {
      const workspace = await files.of(context)
      const edits = editsOf(input)
      const results: Result[] = edits.map(({ path }) => ({ path, replacements: 0, status: 'skipped' }))
      const paths: string[] = []
      for (const group of byFile(workspace, edits, results).values()) {
        const path = await editFile(files, workspace, group, context, results)
        if (path !== null) paths.push(path)
      }
      const failed = results.filter(({ status }) => status !== 'ok').length
      const summary = `${counted(paths.length, 'file')} updated, ${counted(results.length - failed, 'edit')} made${failed === 0 ? '' : `, ${failed} failed: ${results.find(({ message }) => message !== undefined)?.message ?? ''}`}`
      return { ok: failed === 0, output: { ok: failed === 0, results }, summary, modified: paths.length > 0, paths }
    },
  }
}

type Group = { place: WorkspacePath; edits: Edit[] }

function byFile(workspace: Workspace, edits: Edit[], results: Result[]): Map<string, Group> {
  const groups = new Map<string, Group>()
  for (const edit of edits) {
    try {
      const place = workspace.locate(edit.path)
      const key = workspace.keyOf(place)
      const group = groups.get(key) ?? { place, edits: [] }
      group.edits.push(edit)
      groups.set(key, group)
    } catch (error) {
      results[edit.index] = failure(edit.path, error)
    }
  }
  return groups
}

/** Returns the file's path if the file was changed, else null. */
async function editFile(
  files: SessionFiles,
  workspace: Workspace,
  { place, edits }: Group,
  context: ToolContext,
  results: Result[],
): Promise<string | null> {
  let at = edits[0]
  const counts: number[] = []
  try {
    const { modified, replacements } = await files.change(workspace, place, context, (text) => {
      if (text === null) throw refused(`There is no file or directory ${place.shown}.`)
      let content = text
      for (const edit of edits) {
        at = edit
        const change = replaceText(content, edit.find, edit.replace, edit.all, place.shown)
        content = change.content
        counts.push(change.replacements)
      }
      return { content, replacements: counts.reduce((sum, count) => sum + count, 0) }
    })
    // A retried call knows only the total, so we count one replacement for each later edit and the rest for the first.
    const known =
      counts.length > 0 ? counts : edits.map((_, index) => (index > 0 ? 1 : replacements - edits.length + 1))
    for (const [index, edit] of edits.entries()) {
      results[edit.index] = { path: place.shown, replacements: known[index] ?? 0, status: 'ok' }
    }
    return modified ? place.shown : null
  } catch (error) {
    for (const edit of edits) {
      results[edit.index] =
        edit === at ? failure(place.shown, error) : { path: place.shown, replacements: 0, status: 'skipped' }
    }
    return null
  }
}

function failure(path: string, error: unknown): Result {
  if (!(error instanceof AppError) || (error.code !== 'workspace_outside' && error.code !== 'file_refused')) throw error
  return { path, replacements: 0, status: 'error', message: error.message }
}

function editsOf(input: JsonValue): Edit[] {
  const edits = field(input, 'edits')
  if (!Array.isArray(edits)) return []
  return edits.map((edit, index) => ({
    index,
    path: textField(edit, 'path'),
    find: textField(edit, 'find'),
    replace: textField(edit, 'replace'),
    all: booleanField(edit, 'replace_all'),
  }))
}
