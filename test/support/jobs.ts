// A client of the job API, over a real socket, and skills to run with it.

import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after } from 'node:test'
import { writeZip } from '../../src/kit/zip-writer.ts'
import type { Answer, Json, TestServer } from './test-server.ts'
import { calls, sharedTestServer, until } from './test-server.ts'
import { openStream, type SseStream } from './sse.ts'
import { queryDatabase } from './test-database.ts'

/** A model answer that fits the output schema of the errand skill. */
export const errandResult = '{"done":true}'

/** A model answer that asks the user a question. */
export const asks = (question: Json) => calls(['ask_user', question])

export const statusAndCode = ({ status, body }: { status: number; body: Json }) => [status, body.code]

export type Family = 'jobs' | 'temp-skill-runs'
export const families: readonly Family[] = ['jobs', 'temp-skill-runs']

export type Package = Record<string, string>

/** The files of a valid skill package. `changes` replaces files; undefined removes a file. */
export function errand(changes: Record<string, string | undefined> = {}): Package {
  const files: Record<string, string | undefined> = {
    'SKILL.md': '---\nname: errand\ndescription: Runs an errand.\n---\nRun the errand called moonwalk.',
    'assets/runner.json': JSON.stringify({
      id: 'errand',
      execution_modes: ['auto', 'interactive'],
      schemas: { input: 'assets/any.json', parameter: 'assets/any.json', output: 'assets/output.json' },
    }),
    'assets/any.json': JSON.stringify({ type: 'object' }),
    'assets/output.json': JSON.stringify({
      type: 'object',
      properties: { done: { type: 'boolean' } },
      required: ['done'],
      additionalProperties: false,
    }),
    ...changes,
  }
  return Object.fromEntries(Object.entries(files).flatMap(([path, text]) => (text === undefined ? [] : [[path, text]])))
}

/** One server for all tests of a file, with a skills folder of its own. */
export function sharedJobServer(environment: Record<string, string> = {}): { server: TestServer; folder: string } {
  const folder = skillsFolder()
  const server = sharedTestServer({ POLYLOG_SKILLS_DIR: folder, ...environment })
  after(() => rmSync(folder, { recursive: true, force: true }))
  return { server, folder }
}

/** A skills folder with `errand`, `needs-file` (an upload is required), `picky` (auto only, another engine) and a broken one. */
export function skillsFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-skills-'))
  const write = (name: string, files: Package) => writeSkill(folder, name, files)
  write('errand', errand())
  write('needs-file', {
    'SKILL.md': '---\nname: needs-file\ndescription: Reads a file.\n---\nRead the file.',
    'assets/runner.json': JSON.stringify({
      id: 'needs-file',
      execution_modes: ['auto'],
      schemas: { input: 'input.json' },
    }),
    'input.json': JSON.stringify({
      type: 'object',
      properties: { what: { type: 'string' }, notes: { type: 'string', 'x-input-source': 'file' } },
      required: ['what', 'notes'],
    }),
  })
  write('picky', {
    'SKILL.md': '---\nname: picky\ndescription: Runs elsewhere.\n---\nRun.',
    'assets/runner.json': JSON.stringify({ id: 'picky', execution_modes: ['auto'], unsupported_engines: ['local'] }),
  })
  write('plain', { 'SKILL.md': '---\nname: plain\ndescription: Has no card.\n---\nSay something.' })
  write('broken', { 'SKILL.md': 'no front matter' })
  write('escaping', {
    'SKILL.md': '---\nname: escaping\ndescription: Looks elsewhere.\n---\nRun.',
    'assets/runner.json': JSON.stringify({
      id: 'escaping',
      execution_modes: ['auto'],
      schemas: { input: '../errand/assets/any.json' },
    }),
  })
  return folder
}

/** Adds files to a skill in a skills folder; the skill need not exist yet. */
export function writeSkill(folder: string, name: string, files: Package): void {
  for (const [path, text] of Object.entries(files)) {
    const file = join(folder, name, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
}

export function zipped(files: Package, top = 'errand/'): Buffer {
  return writeZip(Object.entries(files).map(([path, text]) => ({ path: `${top}${path}`, body: Buffer.from(text) })))
}

export async function upload(
  server: TestServer,
  path: string,
  user: string,
  parts: Record<string, Buffer>,
): Promise<Answer> {
  const form = new FormData()
  for (const [name, body] of Object.entries(parts)) form.set(name, new Blob([new Uint8Array(body)]), `${name}.zip`)
  const url = new URL(`${path}/upload`, server.polylog.baseUrl)
  url.searchParams.set('userId', user)
  const response = await fetch(url, { method: 'POST', body: form })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: JSON.parse(text) as Json }
}

export type Job = {
  readonly user: string
  readonly id: string
  readonly path: string
  get(rest?: string): Promise<Answer>
  post(rest: string, body?: Json): Promise<Answer>
  reply(interactionId: number, response: unknown, key?: string): Promise<Answer>
  reaches(...statuses: string[]): Promise<Json>
  events(cursor?: number): Promise<SseStream>
}

export function jobOf(server: TestServer, family: Family, user: string, id: string): Job {
  const path = `/v1/${family}/${id}`
  const job: Job = {
    user,
    id,
    path,
    get: (rest = '') => server.call('GET', path + rest, { user }),
    post: (rest, body) => server.call('POST', path + rest, { user, ...(body === undefined ? {} : { body }) }),
    reply: (interactionId, response, key) =>
      job.post('/interaction/reply', {
        interaction_id: interactionId,
        response,
        ...(key === undefined ? {} : { idempotency_key: key }),
      }),
    reaches: (...statuses) =>
      until(`${path} to be ${statuses.join(' or ')}`, async () => {
        const { body } = await job.get()
        return statuses.includes(String(body.status)) ? body : undefined
      }),
    events: (cursor = 0) =>
      openStream(`${server.polylog.baseUrl}${path}/events?cursor=${cursor}&userId=${encodeURIComponent(user)}`),
  }
  return job
}

/** Creates a job of the errand skill. The user's name is the marker of its scripts. A temporary run also gets its upload. */
export async function startJob(server: TestServer, family: Family, user: string, options: Json = {}): Promise<Job> {
  const common = { input: { what: user }, runtime_options: { execution_mode: 'interactive', ...options } }
  const body = family === 'jobs' ? { skill_id: 'errand', ...common } : common
  const created = await server.call('POST', `/v1/${family}`, { user, body })
  assert.equal(created.status, 200, created.text)
  const job = jobOf(server, family, user, String(created.body.request_id))
  if (family === 'temp-skill-runs') {
    const sent = await upload(server, job.path, user, { skill_package: zipped(errand()) })
    assert.equal(sent.status, 200, sent.text)
  }
  return job
}

/** The number of files that the server keeps for a job, read from its database. */
export async function blobCount(server: TestServer, job: Job): Promise<number> {
  const sql = 'SELECT count(*) AS count FROM blobs WHERE run_id = ?'
  const [row] = await queryDatabase(server.polylog.dataDir, sql, job.id)
  return Number(row?.['count'])
}
