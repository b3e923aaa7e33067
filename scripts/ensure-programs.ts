// Programs that some tests run beside the server: a browser, two reverse proxies, and a message server. A program that is not on the
// machine is installed or unpacked from Debian's packages, if this machine has them. The tests that need a program call
// this for its path.
//
// Without the program a test is skipped, and says what to install; with CI set it fails.

import { execFileSync, spawnSync, type SpawnSyncReturns } from 'node:child_process'
import { existsSync, globSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { delimiter, join } from 'node:path'

type Program = {
  /** Names of the executable, in the order of preference. */
  names: readonly string[]
  packages: readonly string[]
  /** `install` needs root. `unpack` puts the files into a folder of this clone; only for programs without further needs. */
  how: 'install' | 'unpack'
}

const programs = {
  chromium: {
    // The same browser without windows comes first, because it takes a third less CPU time.
    names: ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'],
    packages: ['chromium-headless-shell'],
    how: 'install',
  },
  nginx: { names: ['nginx'], packages: ['nginx', 'nginx-common'], how: 'unpack' },
  caddy: { names: ['caddy'], packages: ['caddy'], how: 'unpack' },
  'nats-server': { names: ['nats-server'], packages: ['nats-server'], how: 'unpack' },
} satisfies Record<string, Program>

export type ProgramName = keyof typeof programs

const unpacked = join(import.meta.dirname, '../node_modules/.cache/polylog-programs')
/** Chromium with what it needs is 100 MB. */
const installMs = 240_000

/** The path of the program, or the sentence that says why a test has to be skipped. Throws instead if CI is set. */
export function ensureProgram(name: ProgramName): { path: string } | { missing: string } {
  const program: Program = programs[name]
  const found = pathOf(name, program)
  if (found !== undefined) return { path: found }
  const problem = program.how === 'install' ? install(program) : unpack(name, program)
  const path = pathOf(name, program)
  if (path !== undefined) return { path }
  const missing = `${name} is not on this machine and cannot be installed (${problem}). Install the package ${program.packages[0]}.`
  if ((process.env['CI'] ?? '') !== '') throw new Error(missing)
  return { missing }
}

function pathOf(name: ProgramName, { names }: Program): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/usr/bin']
  const inFolders = folders.flatMap((folder) => names.map((file) => join(folder, file)))
  const inPackages = names.flatMap((file) =>
    ['usr/sbin', 'usr/bin'].map((folder) => join(unpacked, name, folder, file)),
  )
  return [...inFolders, ...inPackages].find((path) => existsSync(path))
}

/** Returns what went wrong. */
function install({ packages }: Program): string {
  if (process.getuid?.() !== 0) return 'this needs root'
  const options = ['install', '--yes', '--no-install-recommends', '--quiet', ...packages]
  return apt(options) ?? ''
}

function unpack(name: ProgramName, { packages }: Program): string {
  const folder = join(unpacked, `${name}-${process.pid}`)
  mkdirSync(folder, { recursive: true })
  try {
    const problem = apt(['download', '--quiet', ...packages], folder)
    if (problem !== undefined) return problem
    for (const file of globSync('*.deb', { cwd: folder })) {
      execFileSync('dpkg-deb', ['-x', join(folder, file), join(folder, 'files')])
    }
    // Another process may have been faster; both have the same files.
    if (!existsSync(join(unpacked, name))) renameSync(join(folder, 'files'), join(unpacked, name))
    return ''
  } catch (error) {
    return String(error)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Runs apt-get, and once more after an update: a fresh container has no package lists. */
function apt(args: readonly string[], cwd?: string): string | undefined {
  const first = aptGet(args, cwd)
  if (first.status === 0) return undefined
  if (first.error !== undefined) return 'there is no apt-get'
  aptGet(['update', '--quiet'])
  const second = aptGet(args, cwd)
  return second.status === 0 ? undefined : (second.stderr.trim().split('\n').at(-1) ?? 'apt-get failed')
}

/** Test files run in several processes, and apt-get refuses to work while another apt-get does. */
const lockWaitMs = 2000
const lockWaitsMax = 90

function aptGet(args: readonly string[], cwd?: string): SpawnSyncReturns<string> {
  for (let waits = 0; ; waits += 1) {
    const done = spawnSync('apt-get', args, {
      ...(cwd === undefined ? {} : { cwd }),
      encoding: 'utf8',
      timeout: installMs,
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' },
    })
    const isLocked = done.status !== 0 && /could not get lock|unable to (?:lock|acquire)/i.test(done.stderr ?? '')
    if (!isLocked || waits >= lockWaitsMax) return done
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, lockWaitMs)
  }
}
