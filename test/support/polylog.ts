// The real server in the process of the test: composed from its settings as main.ts does
// it, on a free port with its own data folder, and started again on the same data. Tests
// talk to it over real sockets.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { databaseSettings, dropDatabase } from './test-database.ts'

export type Polylog = {
  readonly baseUrl: string
  readonly dataDir: string
  /** Everything the server logged so far. */
  log(): string
  /** Stops it as SIGTERM does; resolves with the exit code. */
  stop(): Promise<number | null>
  /** A new server on the same data (after a stop or a kill), in the process of the test, with changed settings if given. */
  restart(environment?: Record<string, string>): Promise<Polylog>
  /** Stops it and removes its data. */
  dispose(): Promise<void>
}

export async function startPolylog(
  environment: Record<string, string> = {},
  data: string = newDataFolder(),
): Promise<Polylog> {
  // Imported here, because a test that only needs the types or a child process must not load the whole server.
  const [{ openServer }, { readConfig }, { createLog }, { Shutdown }, { systemClock }] = await Promise.all([
    import('../../src/app/open-server.ts'),
    import('../../src/app/config.ts'),
    import('../../src/app/log.ts'),
    import('../../src/app/shutdown.ts'),
    import('../../src/kit/clock.ts'),
  ])
  const settings = testSettings({ ...(await databaseSettings(data)), ...environment }, data)
  const config = readConfig(settings)
  let output = ''
  const log = createLog({ level: config.logLevel, destination: { write: (line: string) => void (output += line) } })
  const exited = Promise.withResolvers<number>()
  const shutdown = new Shutdown({ clock: systemClock, log, exit: exited.resolve })
  const server = await openServer(config, { tools: [], hooks: {} }, log, { environment: settings, ownsProcess: true })
  shutdown.stopWith(() => server.close())
  const baseUrl = await server.listen()
  const stop = () => {
    if (!shutdown.requested) shutdown.onSignal('SIGTERM')
    return exited.promise
  }
  return {
    baseUrl,
    dataDir: data,
    log: () => output,
    stop,
    restart: (changes = {}) => startPolylog({ ...environment, ...changes }, data),
    async dispose() {
      await stop()
      await dropDatabase(data)
      rmSync(data, { recursive: true, force: true })
    },
  }
}

/** The settings of a test server. The developer's own environment is not passed on: a test must never use a real key. */
export function testSettings(environment: Record<string, string>, dataDir: string): Record<string, string> {
  return {
    PATH: process.env.PATH ?? '',
    HOST: '127.0.0.1',
    PORT: '0',
    POLYLOG_DATA: dataDir,
    POLYLOG_DEMO_PACE_MS: '0',
    ...environment,
  }
}

export function newDataFolder(): string {
  return mkdtempSync(join(tmpdir(), 'polylog-test-'))
}
