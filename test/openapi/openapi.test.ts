// The OpenAPI description of the running server is valid, complete and usable by generators, and
// the server accepts every example in it.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import { type Polylog, startPolylog } from '../support/polylog.ts'

type Operation = {
  operationId?: string
  summary?: string
  tags?: string[]
  security?: Record<string, string[]>[]
  requestBody?: { content: Record<string, { example?: unknown }> }
  responses: Record<string, { content?: Record<string, unknown> }>
}
type Document = {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, unknown> }
}

let server: Polylog
let folder: string
let text: string
let document: Document

before(async () => {
  server = await startPolylog()
  folder = mkdtempSync(join(tmpdir(), 'polylog-openapi-'))
  text = await (await fetch(`${server.baseUrl}/openapi.json`)).text()
  writeFileSync(join(folder, 'openapi.json'), text)
  document = JSON.parse(text) as Document
})
after(async () => {
  await server.dispose()
  rmSync(folder, { recursive: true, force: true })
})

const allOperations = () =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )

/** Runs a script of a package in the temporary folder, so that nothing of this project configures it. */
function run(name: string, script: string, args: string[]): string {
  const manifest = createRequire(import.meta.url).resolve(`${name}/package.json`)
  try {
    return execFileSync(process.execPath, [join(dirname(manifest), script), ...args], {
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env.PATH ?? '', REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
    })
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string }
    throw new Error(`${name} failed:\n${stdout ?? ''}${stderr ?? ''}`, { cause: error })
  }
}

test('a linter finds no error and no warning in the description', () => {
  // Two paths of the chat API would only meet if a comparison's id were the word “comparison”; all else of the rules holds.
  writeFileSync(join(folder, 'redocly.yaml'), 'extends: [recommended]\nrules:\n  no-ambiguous-paths: off\n')
  const found = JSON.parse(
    run('@redocly/cli', 'bin/cli.js', ['lint', 'openapi.json', '--format=json', '--max-problems=1000']),
  ) as { problems: { ruleId: string; message: string; location: { pointer?: string }[] }[] }

  assert.deepEqual(
    found.problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer ?? ''}`),
    [],
  )
})

test('generated types describe the API and type-check in use', () => {
  run('openapi-typescript', 'bin/cli.js', ['openapi.json', '-o', 'api.d.ts'])
  writeFileSync(
    join(folder, 'use.ts'),
    `import type { components, operations } from './api.js'
type Chat = operations['chat']['requestBody']['content']['application/json']
export const body: Chat = { input: 'hello', userId: 'me' }
export const status = (run: components['schemas']['Run']): string => run.status
export const code = (error: components['schemas']['Error']): string => error.code
// @ts-expect-error: a status is a text
export const wrong: number = null as unknown as components['schemas']['Run']['status']
`,
  )
  run('typescript-native', 'bin/tsc', ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2024', 'use.ts'])
})

test('every operation has an id of its own, a summary, a tag, and says whether it needs a login', () => {
  const ids = allOperations().map(({ method, path, operation }) => {
    const at = `${method} ${path}`
    assert.ok(operation.operationId !== undefined, `${at} has no entry in src/http/openapi/operations.ts`)
    assert.ok((operation.summary ?? '') !== '', at)
    assert.equal(operation.tags?.length, 1, at)
    assert.ok(operation.security !== undefined, at)
    return operation.operationId
  })
  assert.equal(new Set(ids).size, ids.length)
})

test('schemas that are used often have a name, and no name is a number', () => {
  const names = Object.keys(document.components.schemas)
  for (const name of ['Error', 'Run', 'Conversation', 'Message', 'Confirmation', 'Timeline', 'ChatRequest', 'Trace'])
    assert.ok(names.includes(name), name)
  assert.deepEqual(
    names.filter((name) => /\d$|Input$/.test(name)),
    [],
  )
})

test('streams are described by media type, with frames to look at', () => {
  for (const [at, media] of [
    ['/v1/agent/chat', ['text/event-stream', 'text/plain', 'application/x-ndjson']],
    ['/api/get_chat_response_stream', ['text/event-stream', 'application/x-ndjson']],
    ['/api/chat/stream', ['text/event-stream']],
  ] as const) {
    assert.deepEqual(Object.keys(document.paths[at]?.['post']?.responses['200']?.content ?? {}), media)
  }
})

test('files are described by every media type in which they are sent', () => {
  const mediaOf = (path: string) => Object.keys(document.paths[path]?.['get']?.responses['200']?.content ?? {})
  assert.deepEqual(mediaOf('/v1/contacts/export'), ['text/vcard', 'text/csv'])
  assert.deepEqual(mediaOf('/v1/files/{fileId}'), ['application/octet-stream', 'application/json'])
})

test('every example is a request that works', async () => {
  const examples = allOperations().flatMap(({ method, path, operation }) => {
    const example = operation.requestBody?.content['application/json']?.example
    return example === undefined ? [] : [{ method, path, example }]
  })
  assert.ok(examples.length >= 8)

  for (const { method, path, example } of examples) {
    const response = await fetch(server.baseUrl + path, {
      method,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(example),
    })
    const answer = await response.text()
    assert.ok(response.ok, `${method} ${path}: ${response.status} ${answer}`)
    assert.doesNotMatch(answer, /"status":"failed"|"type":"error"/, `${method} ${path}`)
  }
})

test('the reference page runs under a policy that allows this server alone', async () => {
  const page = await fetch(`${server.baseUrl}/docs`)
  const html = await page.text()

  assert.equal(page.status, 200)
  const policy = page.headers.get('content-security-policy') ?? ''
  assert.match(policy, /default-src 'none'; script-src 'self' 'sha256-[^']+'/)
  assert.match(policy, /connect-src 'self'/)
  const sources = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1] ?? '')
  assert.ok(sources.length > 0)
  assert.deepEqual(
    sources.filter((source) => /^[a-z]+:|^\/\//.test(source)),
    [],
    'nothing is loaded from another host',
  )
  for (const source of sources) {
    const script = await fetch(new URL(source, page.url))
    assert.equal(script.status, 200)
    assert.match(script.headers.get('content-type') ?? '', /javascript/)
  }
})

test('a server that requires a login says so for every route but the public ones', async () => {
  const closed = await startPolylog({ POLYLOG_AUTH: 'required', POLYLOG_JWT_SECRET: 'x'.repeat(40) })
  try {
    const { paths } = (await (await fetch(`${closed.baseUrl}/openapi.json`)).json()) as Document
    assert.deepEqual(paths['/v1/health']?.['get']?.security, [])
    assert.deepEqual(paths['/v1/agent/chat']?.['post']?.security, [{ bearer: [] }, { apiKey: [] }])
  } finally {
    await closed.dispose()
  }
})
