// The tools of jobs: ask a person, read uploaded files and the skill's files, save artifacts.
// A path is only looked up in the run's list of files and never resolved on a file system.

import type { JsonValue } from '../journal/event.ts'
import { cutText } from '../kit/cut-text.ts'
import { questionStyles, type Tool, type ToolQuestion } from './tool.ts'

export interface JobFiles {
  /** Undefined if there is no such file. */
  readInput(runId: string, path: string): Promise<Uint8Array | undefined>
  putArtifact(runId: string, path: string, text: string): Promise<void>
  listSkillFiles(runId: string): Promise<{ path: string; size: number }[]>
  /** Undefined if the skill has no such file. */
  readSkillFile(runId: string, path: string): Promise<Uint8Array | undefined>
}

const readTimeoutMs = 30_000
const outputCharsMax = 200_000
const artifactCharsMax = 1024 * 1024
const pathCharsMax = 200

export function createJobTools(files: JobFiles): Tool[] {
  return [askUser, readJobFile(files), listSkillFiles(files), readSkillFile(files), saveArtifact(files)]
}

type Asked = {
  question: string
  kind?: string
  options?: (string | { label: string; value?: JsonValue })[]
  fields?: string[]
}

const askUser: Tool = {
  name: 'ask_user',
  description:
    'Ask the person who started this job a question and wait for the answer. One question a call. ' +
    'kind: choose_one (give options), confirm, fill_fields (give fields), open_text, risk_ack.',
  effect: 'read',
  confirm: 'never',
  audience: 'interactive_jobs',
  inputSchema: {
    type: 'object',
    properties: {
      question: { type: 'string', minLength: 1, maxLength: 4000 },
      kind: { type: 'string' },
      options: {
        type: 'array',
        maxItems: 50,
        items: {
          anyOf: [
            { type: 'string', minLength: 1 },
            { type: 'object', properties: { label: { type: 'string', minLength: 1 }, value: {} }, required: ['label'] },
          ],
        },
      },
      fields: { type: 'array', maxItems: 50, items: { type: 'string', minLength: 1 } },
    },
    required: ['question'],
  },
  timeoutMs: readTimeoutMs,
  outputCharsMax,
  describe: (input) => `Ask: ${(input as Asked).question}`,
  ask(input): ToolQuestion {
    const { question, kind, options = [], fields = [] } = input as Asked
    return {
      prompt: question,
      style: styleOf(kind),
      options: options.map((option) =>
        typeof option === 'string'
          ? { label: option, value: option }
          : { label: option.label, value: option.value ?? option.label },
      ),
      fields,
    }
  },
  run: () => Promise.reject(new Error('a person answers this call')),
}

const aliases: Record<string, ToolQuestion['style']> = {
  decision: 'choose_one',
  confirmation: 'confirm',
  clarification: 'open_text',
}

/** Unknown kinds fall back to open_text and are not refused, because the style only affects the display. */
function styleOf(kind: string | undefined): ToolQuestion['style'] {
  return questionStyles.find((style) => style === kind) ?? aliases[kind ?? ''] ?? 'open_text'
}

function readJobFile(files: JobFiles): Tool {
  return {
    name: 'read_job_file',
    description: 'Read a text file that was uploaded for this job.',
    effect: 'read',
    confirm: 'never',
    audience: 'jobs_with_files',
    inputSchema: {
      type: 'object',
      properties: { path: { type: 'string', minLength: 1, maxLength: pathCharsMax } },
      required: ['path'],
      additionalProperties: false,
    },
    timeoutMs: readTimeoutMs,
    outputCharsMax,
    describe: (input) => `Read ${(input as { path: string }).path}`,
    async run(input, { runId }) {
      const { path } = input as { path: string }
      const body = await files.readInput(runId, path)
      if (body === undefined) return { ok: false, output: null, summary: `There is no file ${path} in this job.` }
      const text = new TextDecoder().decode(body)
      if (text.includes('\0')) return { ok: false, output: null, summary: `${path} is not a text file.` }
      return { ok: true, output: text, summary: `Read ${path} (${body.length} bytes)`, paths: [path], modified: false }
    },
  }
}

function listSkillFiles(files: JobFiles): Tool {
  return {
    name: 'list_skill_files',
    description: 'List the files of the skill that this job runs, with their sizes in bytes.',
    effect: 'read',
    confirm: 'never',
    audience: 'jobs_with_skill_files',
    inputSchema: { type: 'object', properties: {}, additionalProperties: false },
    timeoutMs: readTimeoutMs,
    outputCharsMax,
    describe: () => 'List the files of the skill',
    async run(_input, { runId }) {
      const found = await files.listSkillFiles(runId)
      return { ok: true, output: found, summary: `${found.length} files.` }
    },
  }
}

/** The most characters that one call returns; the model reads on with `from`. Larger pages would fill its context window. */
const pageChars = 20_000

function readSkillFile(files: JobFiles): Tool {
  return {
    name: 'read_skill_file',
    description:
      'Read a text file of the skill that this job runs, for example references/guide.md. ' +
      `At most ${pageChars} characters at a time; the end of the answer says how to read on.`,
    effect: 'read',
    confirm: 'never',
    audience: 'jobs_with_skill_files',
    inputSchema: {
      type: 'object',
      properties: {
        path: { type: 'string', minLength: 1, maxLength: 300 },
        from: { type: 'integer', minimum: 0, description: 'The first character to read; 0 if it is not given.' },
      },
      required: ['path'],
      additionalProperties: false,
    },
    timeoutMs: readTimeoutMs,
    outputCharsMax,
    describe: (input) => `Read ${(input as { path: string }).path} of the skill`,
    async run(input, { runId }) {
      const { path: given, from = 0 } = input as { path: string; from?: number }
      const path = given.replace(/^\.\//, '')
      const body = await files.readSkillFile(runId, path)
      if (body === undefined) {
        return {
          ok: false,
          output: null,
          summary: `The skill has no file ${path}. list_skill_files names those it has.`,
        }
      }
      const text = new TextDecoder().decode(body)
      if (text.includes('\0')) return { ok: false, output: null, summary: `${path} is not a text file.` }
      const page = cutText(text.slice(from, from + pageChars + 1), pageChars)[0] ?? ''
      const left = text.length - from - page.length
      const rest = left > 0 ? `\n[${left} more characters: read on with from ${from + page.length}]` : ''
      return {
        ok: true,
        output: page + rest,
        summary: `Read ${path} (${body.length} bytes)`,
        paths: [path],
        modified: false,
      }
    },
  }
}

function saveArtifact(files: JobFiles): Tool {
  return {
    name: 'save_artifact',
    description: 'Keep a text file as a result of this job. Saving the same path again replaces it.',
    effect: 'idempotent',
    confirm: 'never',
    audience: 'jobs',
    inputSchema: {
      type: 'object',
      properties: {
        path: {
          type: 'string',
          pattern: '^[A-Za-z0-9_][A-Za-z0-9_. -]*(/[A-Za-z0-9_][A-Za-z0-9_. -]*)*$',
          maxLength: pathCharsMax,
        },
        content: { type: 'string', maxLength: artifactCharsMax },
      },
      required: ['path', 'content'],
      additionalProperties: false,
    },
    timeoutMs: readTimeoutMs,
    outputCharsMax,
    describe: (input) => `Save ${(input as { path: string }).path}`,
    async run(input, { runId }) {
      const { path, content } = input as { path: string; content: string }
      await files.putArtifact(runId, path, content)
      const bytes = new TextEncoder().encode(content).length
      return {
        ok: true,
        output: { path: `artifacts/${path}`, bytes },
        summary: `Saved artifacts/${path}`,
        paths: [`artifacts/${path}`],
        modified: true,
      }
    },
  }
}
