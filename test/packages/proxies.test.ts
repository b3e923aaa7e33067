// The settings in docs/proxies.md, with the real proxies: streams come through as they are, and the doctor finds what the
// wrong settings do.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { doctorStream } from '../../client/src/doctor.ts'
import { createClient } from '../../client/src/index.ts'
import { ensureProgram, type ProgramName } from '../../scripts/ensure-programs.ts'
import { says, sharedTestServer, someone, until } from '../support/test-server.ts'

const server = sharedTestServer()
const docs = readFileSync(join(import.meta.dirname, '../../docs/proxies.md'), 'utf8')
const nginxLocation = /```nginx\n([^]*?)```/.exec(docs)?.[1] ?? ''
const caddySite = /```caddy\n([^]*?)```/.exec(docs)?.[1] ?? ''

/** The path of the program; skips the test if there is none. */
function programFor(context: TestContext, name: ProgramName): string | undefined {
  const found = ensureProgram(name)
  if ('path' in found) return found.path
  context.skip(found.missing)
  return undefined
}

async function freePort(): Promise<number> {
  const probe = createServer()
  await new Promise<void>((done) => probe.listen(0, '127.0.0.1', done))
  const { port } = probe.address() as { port: number }
  await new Promise((done) => probe.close(done))
  return port
}

async function start(context: TestContext, path: string, args: string[], cwd: string, port: number): Promise<string> {
  const child: ChildProcess = spawn(path, args, { cwd, stdio: 'ignore', env: { ...process.env, HOME: cwd } })
  context.after(async () => {
    const gone = once(child, 'exit')
    if (child.exitCode === null) child.kill('SIGTERM')
    else return
    await gone
  })
  context.after(() => rmSync(cwd, { recursive: true, force: true }))
  const baseUrl = `http://127.0.0.1:${port}`
  await until('the proxy to answer', async () => {
    const response = await fetch(`${baseUrl}/v1/health`).catch(() => undefined)
    return response?.ok === true ? true : undefined
  })
  return baseUrl
}

/** nginx with this location; `http` are settings for all locations. */
async function startNginx(context: TestContext, path: string, location: string, http = ''): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-nginx-'))
  mkdirSync(join(folder, 'tmp'))
  const port = await freePort()
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path tmp/${name};`)
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off; master_process off; pid nginx.pid; error_log stderr;
events {}
http {
  access_log off; ${temporary.join(' ')}
  ${http}
  server { listen 127.0.0.1:${port}; ${location.replaceAll('http://127.0.0.1:3000', server.polylog.baseUrl)} }
}`,
  )
  return await start(context, path, ['-p', folder, '-e', 'stderr', '-c', 'nginx.conf'], folder, port)
}

/** On a busy machine frames may come late without a proxy; a stream that came through once is not held back by one. */
async function comesThrough(baseUrl: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const problems = await problemsAt(baseUrl)
    if (problems.length === 0) return
    if (attempt === 4) assert.deepEqual(problems, [])
  }
}

async function problemsAt(baseUrl: string): Promise<string[]> {
  const { findings } = await doctorStream({ baseUrl, frames: 8, intervalMs: 200 })
  return findings.map(({ problem }) => problem)
}

async function answersThrough(baseUrl: string): Promise<void> {
  const user = someone()
  await server.provider.script([says('Hello', ' there')], user)
  const run = await createClient({ baseUrl, userId: user }).chat({ input: user })
  assert.equal((await run.result()).output, 'Hello there')
}

describe('a stream through a proxy', () => {
  test('comes through nginx with the settings of the docs', async (context) => {
    const path = programFor(context, 'nginx')
    if (path === undefined) return
    const baseUrl = await startNginx(context, path, nginxLocation)
    await comesThrough(baseUrl)
    await answersThrough(baseUrl)
  })

  test('comes through nginx with its defaults, because of the headers of the stream', async (context) => {
    const path = programFor(context, 'nginx')
    if (path === undefined) return
    const baseUrl = await startNginx(context, path, 'location / { proxy_pass http://127.0.0.1:3000; }', 'gzip on;')
    await comesThrough(baseUrl)
  })

  test('is held back by an nginx that ignores the header, and the doctor says so', async (context) => {
    const path = programFor(context, 'nginx')
    if (path === undefined) return
    const location = 'location / { proxy_pass http://127.0.0.1:3000; proxy_ignore_headers X-Accel-Buffering; }'
    const baseUrl = await startNginx(context, path, location)
    assert.ok((await problemsAt(baseUrl)).includes('buffered'))
    await answersThrough(baseUrl)
  })

  test('is compressed by an nginx that compresses everything, and the doctor says so', async (context) => {
    const path = programFor(context, 'nginx')
    if (path === undefined) return
    const http = 'gzip on; gzip_types *; gzip_proxied any; gzip_min_length 1;'
    const baseUrl = await startNginx(context, path, 'location / { proxy_pass http://127.0.0.1:3000; }', http)
    assert.ok((await problemsAt(baseUrl)).includes('compressed'))
  })

  test('is cut by an nginx with a short timeout, and the doctor says so', async (context) => {
    const path = programFor(context, 'nginx')
    if (path === undefined) return
    const location = 'location / { proxy_pass http://127.0.0.1:3000; proxy_read_timeout 100ms; }'
    const baseUrl = await startNginx(context, path, location)
    assert.ok((await problemsAt(baseUrl)).includes('cut'))
  })

  test('comes through Caddy with the settings of the docs', async (context) => {
    const path = programFor(context, 'caddy')
    if (path === undefined) return
    const folder = mkdtempSync(join(tmpdir(), 'polylog-caddy-'))
    const port = await freePort()
    const site = caddySite.replace('127.0.0.1:3000', new URL(server.polylog.baseUrl).host)
    writeFileSync(
      join(folder, 'Caddyfile'),
      `{\n  admin off\n}\nhttp://127.0.0.1:${port} {\n  encode gzip\n${site}\n}\n`,
    )
    const args = ['run', '--config', 'Caddyfile', '--adapter', 'caddyfile']
    const baseUrl = await start(context, path, args, folder, port)
    await comesThrough(baseUrl)
    await answersThrough(baseUrl)
  })
})
