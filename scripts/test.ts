// `npm test`: types and lint first, since they take seconds, then every test.
// Arguments are paths to narrow it down (`npm test -- src/journal`) or options of
// `node --test`. Whatever happens, the last lines are node's own totals.
//
// Tests run on SQLite, and those that depend most on the database run on PostgreSQL too, in the
// same run. POLYLOG_TEST_DATABASE=sqlite or postgres runs every test on that one only.
//
// Loading the server costs more than most test files, so a process runs many files, one
// after the other, each in a suite of its own. Files that change their process or measure
// it get one for themselves.

import { spawn } from 'node:child_process'
import {
  chmodSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  statfsSync,
  writeFileSync,
} from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { delimiter, join, matchesGlob, relative, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'
import { startPostgresServer } from '../test/support/postgres-server.ts'

const root = join(import.meta.dirname, '..')
/** Compiled modules are kept between processes: a test run starts hundreds of servers, and most of a start is compiling. */
const compileCache = join(root, 'node_modules', '.cache', 'polylog-compile')
const everything = ['src/**/*.test.ts', 'test/**/*.test.ts']
/** A test that hangs must fail; the slowest ones kill and restart servers for a while. */
const timeoutMs = 300_000
/** How long a process may live after its last test. A test that was given up may have left something open. */
const exitWithinMs = 60_000
/** Tests often wait for sockets, disks and other processes, so the cores are busy only with one file more than there are cores. */
const processesAtOnce = availableParallelism() + 1
/** Of the processes that have no deadlines to meet, in the sense of `nice`: the others come first, so that they are not late. */
const laterPriority = 5
/** More than one for each place, so that the last process to end is not alone for long. */
const groups = 2 * processesAtOnce
/** The files of tests go into memory if there is a file system for it with this much room: no test checks what a power cut leaves. */
const memoryFolder = '/dev/shm'
const memoryBytesMin = 4 * 1024 ** 3
/** Files that need a process of their own. */
const alone = [
  // They load no server but start and kill many, and take long.
  'test/{cli,clients,packages,process}/*',
  // It changes the environment of its process.
  'src/tools/mcp-stdio.test.ts',
  // It measures its process.
  'test/properties/long-answer.test.ts',
]
/** Files that share a process, because each starts several nodes that have to meet deadlines: two of them at once would be late. */
const oneAtATime = ['test/{chaos,cluster,torture}/*']
/** Folders whose files share processes with each other only: those of the console share a browser, those of crashes load no server. */
const apart = ['test/console/*', 'test/crash/*']
/**
 * Files that run on PostgreSQL as well: crashes, properties, and who owns, recovers and removes runs. The store contract runs on both
 * anyway. `npm run test:postgres` runs the others there, which takes too long for every run.
 */
const onBothDatabases = [
  'src/runs/{client-tool-recovery,cluster-commands,leases,recovery,retention,run-driver,scheduler}.test.ts',
  'test/crash/kill-{at-every-barrier,one-shot,while-waiting,with-remote-agent}.test.ts',
  'test/properties/*',
]
/** Files among them that have nothing to do with a database. */
const withoutDatabase = ['test/properties/{fcmp-any-journal,json-schema,two-arms}.test.ts']
/** Files about SQLite itself. */
const onSqliteOnly = ['src/stores/sqlite/*']

/** Loaded by servers with certain settings or requests only. */
const loadedLater = [
  './src/http/jwt-verifier.ts',
  './src/http/openapi/api-document.ts',
  './src/engines/openclaw/openclaw-engine.ts',
  './src/cli/program.ts',
]

type Database = 'sqlite' | 'postgres'

/** A test file, run on one database. */
type TestRun = { file: string; database: Database }

process.exitCode = await main(process.argv.slice(2))

async function main(args: string[]): Promise<number> {
  const options = args.filter((argument) => argument.startsWith('-'))
  const paths = args.filter((argument) => !argument.startsWith('-'))
  const runs = testRuns(paths.length === 0 ? matching(everything) : paths.flatMap(testsAt))
  if (runs.length === 0) {
    console.error(`There is no test file at ${paths.join(', ')}.`)
    return 1
  }

  const checks = await Promise.all([
    check('types', 'node_modules/typescript-native/bin/tsc', ['--noEmit', '-p', 'tsconfig.json']),
    check('types of the console', 'node_modules/typescript-native/bin/tsc', [
      '--noEmit',
      '-p',
      'console/tsconfig.json',
    ]),
    check('console', 'scripts/ensure-console.ts', ['--required']),
    check('lint', 'node_modules/oxlint/bin/oxlint', []),
  ])
  for (const { name, passed, output } of checks) {
    console.log(`${passed ? '✔' : '✖'} ${name}${passed ? '' : `\n${output.trimEnd()}`}`)
  }
  if (checks.some(({ passed }) => !passed)) return 1

  await fillCompileCache()
  return runTests(runs, options)
}

function testRuns(files: string[]): TestRun[] {
  const database = process.env['POLYLOG_TEST_DATABASE']
  const isOn = (file: string, patterns: string[]) => patterns.some((pattern) => matchesGlob(file, pattern))
  const onPostgres = files.filter((file) =>
    database === 'postgres'
      ? !isOn(file, onSqliteOnly)
      : database === undefined && isOn(file, onBothDatabases) && !isOn(file, withoutDatabase),
  )
  return [
    ...(database === 'postgres' ? [] : files.map((file): TestRun => ({ file, database: 'sqlite' }))),
    ...onPostgres.map((file): TestRun => ({ file, database: 'postgres' })),
  ]
}

/** The name of its suite. */
function nameOf({ file, database }: TestRun): string {
  return database === 'postgres' ? `${file} (postgres)` : file
}

/** A server that a test kills does not write its cache; this process ends by itself. */
async function fillCompileCache(): Promise<void> {
  const files = JSON.stringify(['./src/app/serve.ts', ...loadedLater])
  const load = `await Promise.all(${files}.map((file) => import(file))); process.exit(0)`
  const child = start(['--input-type=module', '--eval', load])
  child.stdout.resume()
  child.stderr.resume()
  await ended(child)
}

function matching(patterns: string[]): string[] {
  return globSync(patterns, { cwd: root, exclude: (path) => path.includes('node_modules') }).toSorted()
}

/** A file, all tests below a folder, or a pattern. */
function testsAt(path: string): string[] {
  const inside = relative(root, resolve(path))
  const found = statSync(resolve(path), { throwIfNoEntry: false })
  if (found?.isFile() === true) return [inside]
  return matching([found?.isDirectory() === true ? join(inside, '**/*.test.ts') : inside])
}

async function check(
  name: string,
  script: string,
  args: string[],
): Promise<{ name: string; passed: boolean; output: string }> {
  const child = start([join(root, script), ...args])
  let output = ''
  child.stdout.on('data', (chunk) => (output += String(chunk)))
  child.stderr.on('data', (chunk) => (output += String(chunk)))
  return { name, passed: (await ended(child)) === 0, output }
}

async function runTests(runs: TestRun[], options: string[]): Promise<number> {
  const cache = join(root, 'node_modules', '.cache')
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(join(cache, 'polylog-tests-'))
  const temporary = mkdtempSync(join(hasMemoryFolder() ? memoryFolder : tmpdir(), 'polylog-tests-'))
  // Other users may pass through, because a database server does not run as root.
  chmodSync(temporary, 0o711)
  const server = needsPostgres(runs) ? await startPostgresServer(temporary) : undefined
  const address = server === undefined ? {} : { POLYLOG_TEST_POSTGRES: server.url }
  try {
    return await runFiles(runs.map(nameOf), writeGroups(runs, folder), options, { TMPDIR: temporary, ...address })
  } finally {
    server?.stop()
    for (const path of [folder, temporary]) rmSync(path, { recursive: true, force: true })
  }
}

/** A test that this does not find starts its own server. */
function needsPostgres(runs: TestRun[]): boolean {
  return runs.some(
    ({ file, database }) =>
      database === 'postgres' || readFileSync(join(root, file), 'utf8').includes('support/postgres'),
  )
}

function hasMemoryFolder(): boolean {
  if (statSync(memoryFolder, { throwIfNoEntry: false })?.isDirectory() !== true) return false
  const { bavail, bsize } = statfsSync(memoryFolder)
  return bavail * bsize >= memoryBytesMin
}

/** Writes one file per process, which imports test files; the paths of these files. */
function writeGroups(runs: TestRun[], folder: string): string[] {
  const isIn = (patterns: string[], { file }: TestRun) => patterns.some((pattern) => matchesGlob(file, pattern))
  const isShared = (run: TestRun) => ![alone, oneAtATime, apart].some((patterns) => isIn(patterns, run))
  const databases = ['sqlite', 'postgres'] as const
  const serial = databases.map((database) => runs.filter((run) => run.database === database && isIn(oneAtATime, run)))
  const single = runs.filter((run) => isIn(alone, run)).map((run) => [run])
  const sharedBy = (isMember: (run: TestRun) => boolean) =>
    databases.flatMap((database) => grouped(runs.filter((run) => run.database === database && isMember(run))))
  const folders = apart.flatMap((pattern) => sharedBy((run) => isIn([pattern], run)))
  const lists = [...serial.filter(({ length }) => length > 0), ...folders, ...single, ...sharedBy(isShared)]
  return lists.map((group, index) => {
    // The names are sorted by node, and those that take longest come first.
    const path = join(folder, `${String(index).padStart(3, '0')}.test.mjs`)
    writeFileSync(path, groupOf(group, serial.includes(group) ? 0 : laterPriority))
    return path
  })
}

function grouped(runs: TestRun[]): TestRun[][] {
  return Array.from({ length: Math.min(groups, runs.length) }, (_, group) =>
    runs.filter((_, index) => index % groups === group),
  )
}

/**
 * Each file is loaded inside a suite, so that its hooks are hooks of that suite. The suites run one after the other. Processes that
 * they start have the same priority.
 */
function groupOf(runs: TestRun[], priority: number): string {
  const urls = runs.map((run) => [nameOf(run), pathToFileURL(join(root, run.file)).href])
  return `import { setPriority } from 'node:os'
import { after, describe } from 'node:test'
setPriority(${priority})
process.env.POLYLOG_TEST_DATABASE = '${runs[0]?.database ?? 'sqlite'}'
after(() => {
  setTimeout(() => {
    console.error('The tests have left something open: ' + process.getActiveResourcesInfo().join(', '))
    process.exit(1)
  }, ${exitWithinMs}).unref()
})
for (const [name, url] of ${JSON.stringify(urls)}) describe(name, { timeout: ${timeoutMs} }, () => import(url))
`
}

/** `groups` are files with the suites of these names. Fails also if a suite has not reported: its process may have ended too early. */
async function runFiles(
  names: string[],
  groups: string[],
  options: string[],
  environment: Record<string, string>,
): Promise<number> {
  const silent = new Set(names)
  const child = start(
    ['--test', '--test-reporter=spec', `--test-concurrency=${processesAtOnce}`, ...options, ...groups],
    environment,
  )
  child.stderr.pipe(process.stderr)
  // The reporter lists failures after the totals; people and scripts look for the totals at the end.
  const totals: string[] = []
  const lines = createInterface({ input: child.stdout })
  lines.on('line', (line) => {
    const [name] = /(?:src|test)\/\S+\.test\.ts(?: \(postgres\))?/.exec(line) ?? []
    if (name !== undefined) silent.delete(name)
    if (/^\P{L}*ℹ (tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+\P{L}*m?$/u.test(line))
      totals.push(line)
    else console.log(line)
  })
  const read = new Promise((done) => lines.once('close', done))
  const code = await ended(child)
  await read
  // With options, for example the name of a test, a file may have nothing to report.
  const isIncomplete = silent.size > 0 && options.length === 0
  if (isIncomplete)
    console.error(`✖ no report of ${[...silent].join(', ')}: the process of these tests ended too early.`)
  for (const line of totals) console.log(line)
  return isIncomplete ? 1 : code
}

function start(args: string[], environment: Record<string, string> = {}) {
  const path = `${join(root, 'node_modules', '.bin')}${delimiter}${process.env['PATH'] ?? ''}`
  const colour = process.stdout.isTTY ? { FORCE_COLOR: '1' } : {}
  return spawn(process.execPath, args, {
    cwd: root,
    env: { ...process.env, ...colour, PATH: path, NODE_COMPILE_CACHE: compileCache, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

function ended(child: ReturnType<typeof start>): Promise<number> {
  return new Promise((done, failed) => {
    child.once('error', failed)
    child.once('close', (code) => done(code ?? 1))
  })
}
