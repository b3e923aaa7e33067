// The real server as a child process, for tests that kill it, send it signals or look at
// its exit: started on a free port with its own data folder, and started again on the
// same data. A process costs more than a second of CPU time, so every other test starts
// the server in its own process (polylog.ts).

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { databaseSettings, dropDatabase } from './test-database.ts'
import { newDataFolder, type Polylog, startPolylog, testSettings } from './polylog.ts'

const main = new URL('../../src/app/main.ts', import.meta.url).pathname

/** The command to execute, and its working directory. */
export type ServerCommand = { readonly file: string; readonly args: readonly string[]; readonly cwd?: string }

const fromSources: ServerCommand = { file: process.execPath, args: [main] }

export type PolylogProcess = Polylog & {
  readonly pid: number
  /** SIGKILL: the process cannot clean up. */
  kill(): Promise<void>
  /** As `restart`, and the new server is again a process. */
  restartProcess(environment?: Record<string, string>): Promise<PolylogProcess>
  /** A new process on the same data that is killed after the given time, even if it is still starting. */
  restartAndKill(environment: Record<string, string>, afterMs: number): Promise<void>
}

/** Starts a server that must end by itself, and gives its exit code and what it wrote to stderr. */
export async function startAndFail(
  environment: Record<string, string>,
  { file, args, cwd }: ServerCommand = fromSources,
): Promise<{ code: number | null; said: string }> {
  const child = spawn(file, args, { cwd, env: environment, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  child.stderr.on('data', (part: Buffer) => (said += part.toString()))
  child.stdout.on('data', (part: Buffer) => {
    if (part.toString().includes('serves at')) child.kill('SIGKILL')
  })
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  return { code, said }
}

export async function startPolylogProcess(
  environment: Record<string, string> = {},
  data: string = newDataFolder(),
  command: ServerCommand = fromSources,
): Promise<PolylogProcess> {
  const database = await databaseSettings(data)
  const child = spawnServer(command, { ...database, ...environment }, data)
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
    restart: (changes = {}) => startPolylog({ ...environment, ...changes }, data),
    restartProcess: (changes = {}) => startPolylogProcess({ ...environment, ...changes }, data, command),
    async restartAndKill(changes, afterMs) {
      const doomed = spawnServer(command, { ...database, ...environment, ...changes }, data)
      doomed.stdout.resume()
      doomed.stderr.resume()
      const gone = once(doomed, 'exit')
      await wait(afterMs)
      doomed.kill('SIGKILL')
      await gone
    },
    async dispose() {
      await end('SIGKILL')
      await dropDatabase(data)
      rmSync(data, { recursive: true, force: true })
    },
  }
}

function spawnServer({ file, args, cwd }: ServerCommand, environment: Record<string, string>, data: string) {
  return spawn(file, args, {
    cwd,
    env: { ...compileCache(), ...testSettings(environment, data) },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

function pidOf(child: ChildProcess): number {
  if (child.pid === undefined) throw new Error('the server did not start')
  return child.pid
}

/** For the environment of a child process: without the cache, compiling takes most of its start. */
export function compileCache(): Record<string, string> {
  const folder = process.env.NODE_COMPILE_CACHE
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: folder }
}
