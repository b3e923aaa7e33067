// Builds the web console into console/dist if its sources have changed since the last build; a fresh clone has no build
// yet. `npm start`, `npm test` and `npm run build` call it. If the build fails, `npm start` prints one sentence and the
// server serves its API without the console.
//
// A stamp in dist/ is the hash of all sources. The build goes to a folder of its own and is moved when it is complete, so
// that several processes may build at the same time.

import { createHash } from 'node:crypto'
import { globSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const root = join(import.meta.dirname, '..')
const dist = join(root, 'console/dist')
const stampFile = '.stamp'
const sources = [
  'console/{index.html,vite.config.ts,package.json}',
  'console/src/**/*.{ts,tsx,css,svg}',
  'client/src/**/*.ts',
  'scripts/ensure-console.ts',
]

/** Throws if the console cannot be built; the message says why. */
export async function ensureConsole(): Promise<void> {
  const stamp = sourceStamp()
  if (builtStamp() === stamp) return
  const folder = join(root, `console/dist-${process.pid}`)
  try {
    // Only this path needs vite; a production install does not have it.
    const { build } = await import('vite')
    await build({ configFile: join(root, 'console/vite.config.ts'), logLevel: 'error', build: { outDir: folder } })
    compressFiles(folder)
    writeFileSync(join(folder, stampFile), stamp)
    rmSync(dist, { recursive: true, force: true })
    renameSync(folder, dist)
  } catch (error) {
    // Another process may have moved the same build there first.
    if (builtStamp() !== stamp) throw error
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function builtStamp(): string | undefined {
  const path = join(dist, stampFile)
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined
}

function sourceStamp(): string {
  const hash = createHash('sha256')
  for (const file of globSync(sources, { cwd: root }).toSorted()) {
    hash
      .update(`${file.replaceAll('\\', '/')}\0`)
      .update(readFileSync(join(root, file)))
      .update('\0')
  }
  return hash.digest('hex')
}

/** The server sends these instead of compressing the same files at every request. */
function compressFiles(folder: string): void {
  for (const file of globSync('**/*.{js,css,svg,html}', { cwd: folder })) {
    const content = readFileSync(join(folder, file))
    writeFileSync(join(folder, `${file}.gz`), gzipSync(content, { level: 9 }))
    const quality = { [constants.BROTLI_PARAM_QUALITY]: 11 }
    writeFileSync(join(folder, `${file}.br`), brotliCompressSync(content, { params: quality }))
  }
}

if (import.meta.main) {
  try {
    await ensureConsole()
  } catch (error) {
    const [reason = ''] = (error instanceof Error ? error.message : String(error)).split('\n')
    process.stderr.write(`The web console cannot be built, so the server has only its API: ${reason}\n`)
    if (process.argv.includes('--required')) process.exitCode = 1
  }
}
