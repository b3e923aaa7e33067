// `npm run build`: builds the contents of the published packages. The server becomes JavaScript in dist/, with the
// same folders as src/, so that relative paths are the same in both, and declaration files for what src/index.ts
// exports. The command line uses the client, whose files are in dist/client/ for it, so that the server's package
// needs no other. The package of the client becomes declaration files and JavaScript in client/dist/; the console becomes
// console/dist/. A clone needs only the console, which `npm start` builds: Node runs the TypeScript of the others as it is.
//
// An argument names one part (`server`, `client`, `console`). A second one is the folder to write to; the console is
// always built into console/dist.

import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { ensureConsole } from './ensure-console.ts'

const root = join(import.meta.dirname, '..')

/** Files that the server reads at run time and that the compiler does not copy: it copies the JSON that is imported. */
const assets = ['stores/postgres/migrations/*.sql', 'stores/sqlite/migrations/*.sql']

const [only, folder] = process.argv.slice(2)
const parts: Record<string, () => void | Promise<void>> = {
  async server() {
    // The package of the server has the console.
    await ensureConsole()
    buildServer(resolve(folder ?? join(root, 'dist')))
  },
  client: () => buildClient(resolve(folder ?? join(root, 'client/dist'))),
  console: ensureConsole,
}
const chosen = only === undefined ? Object.values(parts) : [parts[only]]
for (const build of chosen) {
  if (build === undefined)
    throw new Error(`There is no part ${only}: name server, client or console, or nothing for all.`)
  await build()
}

function buildServer(out: string): void {
  compile('tsconfig.build.json', out)
  arrange(out)
  for (const file of globSync('**/*.js', { cwd: out })) {
    const path = join(out, file)
    writeFileSync(path, withBuiltWorkers(readFileSync(path, 'utf8')))
  }
  for (const file of globSync(assets, { cwd: join(root, 'src') })) {
    mkdirSync(dirname(join(out, file)), { recursive: true })
    copyFileSync(join(root, 'src', file), join(out, file))
  }
  pruneDeclarations(out, 'index.d.ts')
  refuseMissingFiles(out)
}

/** The compiler writes src/ and client/src/; the first becomes `out` itself, the second its folder `client`. */
function arrange(out: string): void {
  const compiled = join(out, 'src')
  for (const name of readdirSync(compiled)) renameSync(join(compiled, name), join(out, name))
  rmSync(compiled, { recursive: true })
  const client = join(out, 'client')
  renameSync(join(client, 'src'), join(out, 'client-src'))
  rmSync(client, { recursive: true })
  renameSync(join(out, 'client-src'), client)
  for (const file of globSync('cli/*.{js,d.ts}', { cwd: out })) {
    const path = join(out, file)
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll('../../client/src/', '../client/'))
  }
}

function buildClient(out: string): void {
  compile('client/tsconfig.build.json', out)
  for (const file of globSync('**/*.d.ts', { cwd: out })) writeFileSync(join(out, file), declarationOf(join(out, file)))
}

/** The compiler rewrites the paths of imports in JavaScript and leaves those in declarations alone. */
function declarationOf(path: string): string {
  return readFileSync(path, 'utf8').replace(/((?:from |import\()['"]\.[^'"]*)\.ts(['"])/g, '$1.js$2')
}

/** Keeps the declarations that a user of the package can reach from `entry`, and removes those of the rest of the server. */
function pruneDeclarations(out: string, entry: string): void {
  const kept = new Set<string>()
  const rest = [entry]
  for (let file = rest.pop(); file !== undefined; file = rest.pop()) {
    if (kept.has(file)) continue
    kept.add(file)
    const text = declarationOf(join(out, file))
    writeFileSync(join(out, file), text)
    for (const [, path = ''] of text.matchAll(/(?:from |import\()['"](\.[^'"]*)\.js['"]/g)) {
      rest.push(join(dirname(file), `${path}.d.ts`))
    }
  }
  for (const file of globSync('**/*.d.ts', { cwd: out })) if (!kept.has(file)) rmSync(join(out, file))
}

function compile(project: string, out: string): void {
  rmSync(out, { recursive: true, force: true })
  const compiler = join(root, 'node_modules/typescript-native/bin/tsc')
  const { status } = spawnSync(process.execPath, [compiler, '-p', join(root, project), '--outDir', out], {
    stdio: ['ignore', 2, 2],
  })
  if (status !== 0) process.exit(1)
}

/** The compiler rewrites the paths of imports; the file of a worker thread is named by a URL. */
function withBuiltWorkers(code: string): string {
  return code.replace(/(new URL\('\.[^']*)\.ts(', import\.meta\.url\))/g, '$1.js$2')
}

/** Every file that built code names by a relative path has to be there. The build checks it, so that a missing file is not found at the first request. */
function refuseMissingFiles(out: string): void {
  const named = /(?:\bfrom |\bimport |\bimport\(|new URL\()'(\.{1,2}\/[^']*)'/g
  const missing: string[] = []
  for (const file of globSync('**/*.js', { cwd: out })) {
    for (const [, path = ''] of readFileSync(join(out, file), 'utf8').matchAll(named)) {
      // Paths that leave dist/ name package.json, agents/ and skills/ of the package.
      const target = resolve(dirname(join(out, file)), path)
      const inside = target.startsWith(out)
      if (inside ? !existsSync(target) : !existsSync(resolve(root, 'dist', dirname(file), path))) {
        missing.push(`${file} names ${path}`)
      }
    }
  }
  if (missing.length === 0) return
  process.stderr.write(`The build is not complete:\n${missing.map((line) => `  ${line}\n`).join('')}`)
  process.exit(1)
}
