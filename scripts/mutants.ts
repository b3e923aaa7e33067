// `npm run mutants`: mutation testing. Adds small defects to the source, one at a time, and
// counts how many of them the tests detect. An undetected defect shows that a test is missing.
//
//   npm run mutants -- --sample 60 --seed 7             60 random ones of src/runs, src/stores and src/bus
//   npm run mutants -- src/runs/scheduler.ts            all of one file
//   npm run mutants -- --list src/bus                   only lists them
//   npm run mutants -- --quick                          without the tests over sockets: faster, but detects fewer
//
// Works in copies of the tree in the temporary folder, so the working tree is never touched.
// For each defect the tests nearest to the file run first, and the first failure ends it.

import { spawn } from 'node:child_process'
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { randomFrom } from '../test/support/random.ts'
import { type Mutant, mutantsOf } from './mutate.ts'

const root = join(import.meta.dirname, '..')
const defaultPaths = ['src/runs', 'src/stores', 'src/bus']
/** After this time a test file counts as hanging, and the defect as detected. */
const groupTimeoutMs = 240_000

/** Tests beyond those in the file's own folder, the quick ones first. The first folder that fits counts. */
const testsFor: readonly [prefix: string, patterns: readonly string[]][] = [
  ['src/bus', ['test/properties/follower.test.ts', 'test/properties/resume-any-cut.test.ts', 'src/runs/*.test.ts']],
  ['src/stores', ['src/runs/*.test.ts', 'test/properties/follower.test.ts']],
  ['src/runs', ['src/comparisons/*.test.ts', 'src/jobs/*.test.ts']],
]
const testsForAll = [
  'test/http/{busy,cancel,confirmations,conversations,drain,idempotency,reattach,runs,streams,tools}*.test.ts',
  'test/specs/*.test.ts',
  'test/http/*.test.ts',
  'test/properties/*.test.ts',
  'test/crash/*.test.ts',
]

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    sample: { type: 'string' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
    jobs: { type: 'string', default: '2' },
    list: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
  },
})

const chosen = choose(positionals.length === 0 ? defaultPaths : positionals)
if (values.list) {
  for (const { file, line, change } of chosen) console.log(`${file}:${line}  ${change}`)
} else {
  await main()
}

function choose(paths: string[]): Mutant[] {
  const files = paths
    .flatMap((path) =>
      statSync(resolve(root, path)).isDirectory() ? globSync(join(path, '**/*.ts'), { cwd: root }) : [path],
    )
    .map((path) => relative(root, resolve(root, path)))
    .filter((path) => !path.endsWith('.test.ts'))
    .toSorted()
  const all = files.flatMap((file) => mutantsOf(file, readFileSync(join(root, file), 'utf8')))
  if (values.sample === undefined) return all
  const random = randomFrom(Number(values.seed))
  const rest = [...all]
  const sample: Mutant[] = []
  while (sample.length < Number(values.sample) && rest.length > 0) {
    sample.push(...rest.splice(random.between(0, rest.length - 1), 1))
  }
  return sample
}

async function main(): Promise<void> {
  console.log(`${chosen.length} defects, seed ${values.seed}`)
  const queue = [...chosen]
  const survivors: Mutant[] = []
  let noticed = 0
  const worker = async (): Promise<void> => {
    const copy = copyTree()
    try {
      if (!(await typeChecks(copy))) throw new Error('The copy has type errors before any defect is planted.')
      for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift()) {
        const by = await noticedBy(mutant, copy)
        if (by === undefined) survivors.push(mutant)
        else noticed += 1
        console.log(
          `${by === undefined ? 'SURVIVED' : 'noticed '} ${mutant.file}:${mutant.line}  ${mutant.change}  ${by ?? ''}`,
        )
      }
    } finally {
      rmSync(copy, { recursive: true, force: true })
    }
  }
  await Promise.all(Array.from({ length: Number(values.jobs) }, worker))
  console.log(`\n${noticed} of ${chosen.length} noticed (${Math.round((100 * noticed) / chosen.length)} %)`)
  for (const { file, line, change } of survivors) console.log(`  ${file}:${line}  ${change}`)
}

function copyTree(): string {
  const copy = mkdtempSync(join(tmpdir(), 'polylog-mutants-'))
  for (const entry of [
    'src',
    'client',
    'bin',
    'test',
    'scripts',
    'agents',
    'skills',
    'examples',
    'docs',
    'bench',
    'package.json',
    'package-lock.json',
    'tsconfig.json',
    'tsconfig.build.json',
    'README.md',
  ])
    cpSync(join(root, entry), join(copy, entry), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  return copy
}

/** The first failing test file, or undefined if all pass. */
async function noticedBy(mutant: Mutant, copy: string): Promise<string | undefined> {
  const path = join(copy, mutant.file)
  const original = readFileSync(path, 'utf8')
  writeFileSync(path, original.slice(0, mutant.start) + mutant.text + original.slice(mutant.end))
  try {
    const done = new Set<string>()
    for (const pattern of patternsFor(mutant.file)) {
      const files = globSync(pattern, { cwd: copy }).filter((file) => !done.has(file))
      if (files.length === 0) continue
      for (const file of files) done.add(file)
      const failed = await failingTest(files, copy)
      if (failed !== undefined) return failed
    }
    return (await typeChecks(copy)) ? undefined : 'the types'
  } finally {
    writeFileSync(path, original)
  }
}

/** `npm test` checks types too. This runs last, because most defects have correct types. */
function typeChecks(cwd: string): Promise<boolean> {
  const tsc = join(root, 'node_modules/typescript-native/bin/tsc')
  const child = spawn(process.execPath, [tsc, '--noEmit', '-p', 'tsconfig.json'], { cwd, stdio: 'ignore' })
  return new Promise((done) => child.once('close', (code) => done(code === 0)))
}

function patternsFor(file: string): string[] {
  const near = testsFor.find(([prefix]) => file.startsWith(prefix))?.[1] ?? []
  return [
    file.replace(/\.ts$/, '.test.ts'),
    join(dirname(file), '*.test.ts'),
    ...near,
    ...(values.quick ? [] : testsForAll),
  ]
}

function failingTest(files: string[], cwd: string): Promise<string | undefined> {
  const child = spawn(process.execPath, ['--test', '--test-reporter=tap', '--test-concurrency=2', ...files], {
    cwd,
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const end = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    } catch {
      // it is gone already
    }
  }
  return new Promise((resolvePromise) => {
    let failed: string | undefined
    let output = ''
    const timer = setTimeout(() => {
      failed = 'a test that hangs'
      end()
    }, groupTimeoutMs)
    child.stdout.on('data', (piece: Buffer) => {
      output = (output + piece.toString()).slice(-20_000)
      const match = /^ *not ok \d+ - (.*)$/m.exec(output)
      if (match === null || failed !== undefined) return
      failed = match[1] ?? 'a test'
      end()
    })
    child.once('close', (code) => {
      clearTimeout(timer)
      end()
      resolvePromise(failed ?? (code === 0 ? undefined : `exit code ${code}`))
    })
  })
}
