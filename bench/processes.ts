// Starts the processes of a measurement and reads their CPU time and memory.

import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'

export type Child = { process: ChildProcess; port: number; pid: number; stop(): Promise<void> }

export async function startChild(
  file: string,
  environment: Record<string, string>,
  portOf: (line: string) => number | undefined,
): Promise<Child> {
  const child = spawn(process.execPath, [new URL(file, import.meta.url).pathname], {
    env: { PATH: process.env.PATH ?? '', ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const port = await new Promise<number>((resolve, reject) => {
    let text = ''
    child.stdout.on('data', (part: Buffer) => {
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
    stop: () =>
      new Promise((resolve) => {
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

/** CPU seconds of a process with all its threads. */
export function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / 100
}

export function residentBytes(pid: number): number {
  const line = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))
  return Number(line?.[1] ?? 0) * 1024
}

export async function load(options: {
  url: string
  streams: number
  body: string
  marker: string
}): Promise<{ deltas: number; seconds: number; firstP50: number; firstP99: number; failed: number }> {
  const child = spawn(process.execPath, [new URL('load.ts', import.meta.url).pathname, JSON.stringify(options)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let text = ''
  child.stdout.on('data', (part: Buffer) => (text += part.toString()))
  await new Promise((resolve) => child.on('exit', resolve))
  return JSON.parse(text)
}
