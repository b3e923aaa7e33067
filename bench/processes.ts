// Starts the processes of a measurement and reads their CPU time and memory.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { cpus } from 'node:os'
import type { ProbeAnswer, ProbeQuestion } from './probe.ts'

export type Child = {
  process: ChildProcess
  port: number
  pid: number
  ask(question: ProbeQuestion): Promise<ProbeAnswer>
  stop(): Promise<void>
}

/**
 * On Linux with two cores or more, the measured server has the first core for itself with all its threads, and the
 * provider and the clients share the others. Otherwise nothing is pinned.
 */
export const isPinned = cpus().length > 1 && spawnSync('taskset', ['--version']).status === 0

/** `free`: not pinned, for measurements with several servers. */
export type Role = 'server' | 'helper' | 'free'

function pinned(role: Role, args: string[]): [string, string[]] {
  if (!isPinned || role === 'free') return [process.execPath, args]
  const cores = role === 'server' ? '0' : `1-${cpus().length - 1}`
  return ['taskset', ['-c', cores, process.execPath, ...args]]
}

export async function startChild(
  file: string,
  environment: Record<string, string>,
  portOf: (line: string) => number | undefined,
  role: Role = 'server',
): Promise<Child> {
  const path = (name: string) => new URL(name, import.meta.url).pathname
  const flags = (process.env.BENCH_NODE_FLAGS ?? '').split(' ').filter((flag) => flag !== '')
  const [command, args] = pinned(role, [...(role === 'helper' ? [] : flags), '--import', path('probe.ts'), path(file)])
  const child = spawn(command, args, {
    env: { PATH: process.env.PATH ?? '', ...environment },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  const port = await new Promise<number>((resolve, reject) => {
    let text = ''
    child.stdout?.on('data', (part: Buffer) => {
      text += part.toString()
      for (const line of text.split('\n')) {
        const found = portOf(line)
        if (found !== undefined) resolve(found)
      }
    })
    child.on('exit', (code) => reject(new Error(`${file} ended with ${code}: ${text}`)))
  })
  return {
    process: child,
    port,
    pid: child.pid ?? 0,
    ask: (question) =>
      new Promise((resolve) => {
        child.once('message', (answer) => resolve(answer as ProbeAnswer))
        child.send(question)
      }),
    stop: () =>
      new Promise((resolve) => {
        if (child.exitCode !== null || child.signalCode !== null) return resolve()
        child.on('exit', () => resolve())
        child.kill('SIGTERM')
        setTimeout(() => child.kill('SIGKILL'), 15_000).unref()
      }),
  }
}

export const jsonPort = (line: string): number | undefined => {
  try {
    return (JSON.parse(line) as { port?: number }).port
  } catch {
    return undefined
  }
}

export const polylogPort = (line: string): number | undefined => {
  const match = /Polylog serves at http:\/\/[^:]+:(\d+)/.exec(line)
  return match === null ? undefined : Number(match[1])
}

/** CPU seconds of a process: all its threads, and those besides the main thread. */
export function cpuOf(pid: number): { all: number; others: number } {
  let all = 0
  let main = 0
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const seconds = Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ', 1)[0]) / 1e9
    all += seconds
    if (Number(thread) === pid) main = seconds
  }
  return { all, others: all - main }
}

/** CPU seconds of all descendants of a process. */
export function cpuOfDescendants(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
  let sum = 0
  for (const child of children) {
    try {
      sum += cpuOf(child).all + cpuOfDescendants(child)
    } catch {
      // It has just ended.
    }
  }
  return sum
}

export type LoadOptions = {
  url: string
  /** How many at once. */
  streams: number
  /** How many requests each of them makes, one after the other; 1 if absent. */
  rounds?: number
  method?: 'GET' | 'POST'
  body?: string
  /** Counted as one delta. */
  marker: string
  /** The deltas hold the time at which the provider sent them. */
  stamped?: boolean
}

export type LoadResult = {
  requests: number
  deltas: number
  bytes: number
  seconds: number
  firstP50: number
  firstP99: number
  latencyP50: number
  latencyP99: number
  /** Deltas per second of a stream, between its first and its last one. */
  perStreamSecond: number
  failed: number
}

export async function load(options: LoadOptions): Promise<LoadResult> {
  const [command, args] = pinned('helper', [new URL('load.ts', import.meta.url).pathname, JSON.stringify(options)])
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  child.stdout.on('data', (part: Buffer) => (text += part.toString()))
  await new Promise((resolve) => child.on('close', resolve))
  return JSON.parse(text)
}

/** The result of a load, and the CPU seconds that the server used meanwhile. */
export async function loadOn(
  child: Child,
  options: LoadOptions,
): Promise<LoadResult & { cpu: number; others: number }> {
  const before = cpuOf(child.pid)
  const result = await load(options)
  const after = cpuOf(child.pid)
  if (result.failed > 0) throw new Error(`${result.failed} of ${result.requests} requests to ${options.url} failed`)
  return { ...result, cpu: after.all - before.all, others: after.others - before.others }
}
