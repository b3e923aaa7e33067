// The real server as a child process, for tests: started on a free port with its
// own data folder, killed or stopped on request, started again on the same data.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'

const main = new URL('../../src/app/main.ts', import.meta.url).pathname

/** The command to execute, and its working directory. */
export type ServerCommand = { readonly file: string; readonly args: readonly string[]; readonly cwd?: string }

const fromSources: ServerCommand = { file: process.execPath, args: [main] }

export type Polylog = {
  readonly baseUrl: string
  readonly dataDir: string
  readonly pid: number
  /** Everything the server logged so far. */
  log(): string
  /** SIGTERM; resolves with the exit code. */
  stop(): Promise<number | null>
  /** SIGKILL: the process cannot clean up. */
  kill(): Promise<void>
  /** A new process on the same data (after `stop` or `kill`), with changed settings if given. */
  restart(environment?: Record<string, string>): Promise<Polylog>
  /** A new process on the same data that is killed after the given time, even if it is still starting. */
  restartAndKill(environment: Record<string, string>, afterMs: number): Promise<void>
  /** Stops it and removes its data. */
  dispose(): Promise<void>
}

export async function startPolylog(
  environment: Record<string, string> = {},
  dataDir?: string,
  command: ServerCommand = fromSources,
): Promise<Polylog> {
  const data = dataDir ?? mkdtempSync(join(tmpdir(), 'polylog-test-'))
  const child = spawnServer(command, environment, data)
  let output = ''
  const exited = new Promise<number | null>((resolve) => child.once('exit', (code) => resolve(code)))
  const baseUrl = await new Promise<string>((resolve, reject) => {
    const hear = (part: Buffer) => {
      output += part.toString()
      const match = /Polylog serves at (http:\/\/[^\s"]+)/.exec(output)
      if (match?.[1] !== undefined) resolve(match[1])
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    void exited.then((code) => reject(new Error(`the server ended with ${code} before it served:\n${output}`)))
  })
  const end = async (signal: NodeJS.Signals) => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal)
    return await exited
  }
  return {
    baseUrl,
    dataDir: data,
    pid: pidOf(child),
    log: () => output,
    stop: () => end('SIGTERM'),
    async kill() {
      await end('SIGKILL')
    },
    restart: (changes = {}) => startPolylog({ ...environment, ...changes }, data, command),
    async restartAndKill(changes, afterMs) {
      const doomed = spawnServer(command, { ...environment, ...changes }, data)
      doomed.stdout.resume()
      doomed.stderr.resume()
      const gone = once(doomed, 'exit')
      await wait(afterMs)
      doomed.kill('SIGKILL')
      await gone
    },
    async dispose() {
      await end('SIGKILL')
      rmSync(data, { recursive: true, force: true })
    },
  }
}

function spawnServer({ file, args, cwd }: ServerCommand, environment: Record<string, string>, data: string) {
  return spawn(file, args, {
    cwd,
    // The developer's own environment is not passed on: a test must never use a real key.
    env: {
      PATH: process.env.PATH ?? '',
      ...(process.env.NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE }),
      HOST: '127.0.0.1',
      PORT: '0',
      POLYLOG_DATA: data,
      POLYLOG_DEMO_PACE_MS: '0',
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

function pidOf(child: ChildProcess): number {
  if (child.pid === undefined) throw new Error('the server did not start')
  return child.pid
}
