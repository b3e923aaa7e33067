// The code of @polylog/client: how large it is for a web page, and that it runs wherever there is `fetch`.

import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'

const root = join(import.meta.dirname, '../..')
const compiler = join(root, 'node_modules/typescript-native/bin/tsc')
const gzippedBytesMax = 5 * 1024
let folder: string

before(() => {
  folder = mkdtempSync(join(tmpdir(), 'polylog-bundle-'))
  execFileSync(process.execPath, [join(root, 'scripts/build.ts'), 'client', join(folder, 'dist')])
})
after(() => rmSync(folder, { recursive: true, force: true }))

/** The built modules that the entry imports, each once. */
function modulesOf(entry: string, seen = new Set<string>()): Set<string> {
  if (seen.has(entry)) return seen
  seen.add(entry)
  const code = readFileSync(join(folder, 'dist', entry), 'utf8')
  for (const [, path = ''] of code.matchAll(/from '\.\/([\w-]+\.js)'/g)) modulesOf(path, seen)
  return seen
}

/** All code of an entry without comments and spaces. A minifier also shortens names, so its result is smaller. It is only measured. */
function bundleOf(entry: string): string {
  return [...modulesOf(entry)]
    .map((file) => readFileSync(join(folder, 'dist', file), 'utf8'))
    .join('\n')
    .replace(/\/\*\*?[^]*?\*\//g, '')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('//') && !line.startsWith('import '))
    .join('\n')
    .replaceAll(/\s*([{}()[\]=,;:?&|+<>])\s*/g, '$1')
}

describe('the code of @polylog/client', () => {
  test('is at most 5 KB gzipped, even without shortened names', () => {
    const code = bundleOf('index.js')
    const bytes = gzipSync(code, { level: 9 }).length
    assert.match(code, /createClient/)
    assert.match(code, /foldRun/)
    assert.ok(bytes <= gzippedBytesMax, `${bytes} bytes`)
  })

  test('does nothing when it is imported, so that what a page does not use can be left out', () => {
    const { sideEffects } = JSON.parse(readFileSync(join(root, 'client/package.json'), 'utf8')) as {
      sideEffects: boolean
    }
    assert.equal(sideEffects, false)
    // Statements at the top level are declarations, imports and exports.
    for (const file of globSync('*.js', { cwd: join(folder, 'dist') })) {
      const code = readFileSync(join(folder, 'dist', file), 'utf8').replace(/\/\*\*?[^]*?\*\//g, '')
      const others = code
        .split('\n')
        .filter(
          (line) => /^\S/.test(line) && !/^(import|export|const|function|async function|class|\/\/|[})\]])/.test(line),
        )
      assert.deepEqual(others, [], file)
    }
  })

  test('uses only what browsers, Node, Deno, Bun and edge runtimes have in common', () => {
    const project = join(folder, 'platform')
    mkdirSync(project)
    cpSync(join(root, 'client/src'), join(project, 'src'), { recursive: true })
    rmSync(join(project, 'src/react.ts'), { force: true })
    writeFileSync(join(project, 'src/platform.d.ts'), commonPlatform)
    writeFileSync(join(project, 'package.json'), '{"type":"module"}')
    assert.equal(compile(project).slice(0, 2000), '')
    // The list is complete: another global is an error.
    writeFileSync(join(project, 'src/more.ts'), 'export const where = document.title + process.pid')
    assert.match(compile(project), /'document'[^]*'process'/)
  })
})

function compile(project: string): string {
  const config = JSON.parse(readFileSync(join(root, 'client/tsconfig.build.json'), 'utf8')) as {
    compilerOptions: object
  }
  const compilerOptions = { ...config.compilerOptions, lib: ['es2023'], noEmit: true }
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ ...config, compilerOptions }))
  return spawnSync(process.execPath, [compiler, '-p', project], { encoding: 'utf8' }).stdout
}

/** The globals that the client may use, as all these runtimes have them. `online` events are asked for with care. */
const commonPlatform = `
interface EventTarget {
  addEventListener(type: string, listener: () => void): void
  removeEventListener(type: string, listener: () => void): void
}
interface AbortSignal extends EventTarget { readonly aborted: boolean; readonly reason: any; throwIfAborted(): void }
declare class AbortController { readonly signal: AbortSignal; abort(reason?: unknown): void }
interface Headers { get(name: string): string | null }
interface Reader { read(): Promise<{ done: true; value?: undefined } | { done: false; value: Uint8Array }> }
interface Response {
  readonly ok: boolean
  readonly status: number
  readonly headers: Headers
  readonly body: { getReader(): Reader } | null
  json(): Promise<unknown>
}
declare class Blob { readonly size: number }
declare function fetch(
  url: string,
  init?: { method?: string; headers?: Record<string, string>; body?: string | Blob | Uint8Array; cache?: 'no-store'; signal?: AbortSignal },
): Promise<Response>
declare class TextDecoder { decode(bytes: Uint8Array, options: { stream: boolean }): string }
declare class URLSearchParams { constructor(pairs: string[][]) }
declare function setTimeout(fire: () => void, delayMs: number): number
declare function clearTimeout(timer: number): void
declare const crypto: { getRandomValues(bytes: Uint8Array): Uint8Array }
declare const performance: { now(): number }
`
