// What a start with default settings loads. Loading is most of a start, and the tests start hundreds of servers. So
// code that only some settings or requests need imports its libraries when it runs for the first time.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { commandLine } from '../support/command-line.ts'
import { newDataFolder } from '../support/polylog.ts'
import { startPolylogProcess } from '../support/polylog-process.ts'

const root = join(import.meta.dirname, '../..')

/** Runs before the server and prints the addresses of all modules of the main thread at its exit. */
const listModules = `
import { registerHooks } from 'node:module'
import { isMainThread } from 'node:worker_threads'
const urls = []
registerHooks({ load(url, context, next) { urls.push(url); return next(url, context) } })
const ofNode = () => process.moduleLoadList.filter((name) => name.includes('deps/undici'))
if (isMainThread) process.on('exit', () => process.stderr.write('\\nloaded ' + JSON.stringify([...urls, ...ofNode()]) + '\\n'))`

async function modulesOfStart(): Promise<string[]> {
  const preload = `data:text/javascript,${encodeURIComponent(listModules)}`
  const args = ['--import', preload, commandLine, 'serve']
  // On SQLite, also if the tests run on PostgreSQL.
  const server = await startPolylogProcess({ POLYLOG_DATABASE_URL: '' }, newDataFolder(), {
    file: process.execPath,
    args,
  })
  try {
    await server.stop()
    const [, urls = '[]'] = /^loaded (.*)$/m.exec(server.log()) ?? []
    return JSON.parse(urls) as string[]
  } finally {
    await server.dispose()
  }
}

test('a default start loads the libraries that every server needs, and no others', async () => {
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  const urls = await modulesOfStart()
  const packages = new Set(urls.map((url) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url)?.[1] ?? ''))

  assert.ok(urls.length > 500, `${urls.length} modules were listed`)
  assert.deepEqual(
    Object.keys(dependencies).filter((name) => packages.has(name)),
    [
      '@ai-sdk/provider',
      '@fastify/multipart',
      '@fastify/static',
      // By prom-client.
      '@opentelemetry/api',
      'eventsource-parser',
      'fastify',
      'fastify-type-provider-zod',
      'mustache',
      'pino',
      'prom-client',
      're2js',
      'ulid',
      'yaml',
      'zod',
    ],
  )
  // Not ours, but each came with dozens of files.
  for (const name of ['@fastify/ajv-compiler', 'fast-uri', 'json-schema-resolver']) assert.ok(!packages.has(name), name)

  assert.deepEqual(
    urls.filter((url) => url.includes('deps/undici')),
    [],
    'kit/node-http.ts says how to use node:http without it',
  )

  const own = urls.filter((url) => url.startsWith(pathToFileURL(root).href) && !url.includes('/node_modules/'))
  const unused =
    /\/src\/(?:cli\/(?!main\.|output\.)|engines\/openclaw\/|stores\/postgres\/|tools\/mcp\.|http\/openapi\/api-document)|\/client\//
  assert.deepEqual(
    own.filter((url) => unused.test(url)),
    [],
  )
})
