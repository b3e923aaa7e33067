// Starts a fake of an external service as a process of its own and waits until it says where it
// listens (one line of JSON on stdout). The fake exits when its stdin ends, so none is left
// behind when a test process dies.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

export type FakeProcess = {
  baseUrl: string
  /** Kills the process as a crash would: connections are not closed in order. */
  kill(): Promise<void>
  stop(): Promise<void>
}

export async function spawnFake(
  file: string,
  options: { environment?: Record<string, string>; port?: number } = {},
): Promise<FakeProcess> {
  const path = fileURLToPath(new URL(`../fakes/${file}`, import.meta.url))
  const child = spawn(process.execPath, [path, String(options.port ?? 0)], {
    env: { ...process.env, ...options.environment },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })
  const line = await Promise.race([
    once(lines, 'line').then(([text]) => text as string),
    exited.then(([code]) => Promise.reject(new Error(`${file} ended with code ${code} before it listened`))),
  ])
  const { port } = JSON.parse(line) as { port: number }
  const end = async (signal: NodeJS.Signals) => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal)
    await exited
  }
  return { baseUrl: `http://127.0.0.1:${port}`, kill: () => end('SIGKILL'), stop: () => end('SIGTERM') }
}
