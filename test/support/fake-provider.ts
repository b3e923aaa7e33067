// Starts the fake model provider as a process of its own and talks to its control
// routes. One provider serves many tests: `reset` between them.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Action, SeenRequest } from '../fakes/openai-script.ts'

export type { Action, SeenRequest } from '../fakes/openai-script.ts'

export type FakeProvider = {
  /** For OPENAI_BASE_URL. */
  baseUrl: string
  /** Queues answers for the next requests; with `match` for those whose last user message contains that text, with `model` for that model. */
  script(answers: Action[][], match?: string, model?: string): Promise<void>
  requests(): Promise<SeenRequest[]>
  /** Resolves when at least this many requests came in, and the client closed at least `closedEarly` of them early. */
  waitFor(wanted: { requests?: number; closedEarly?: number }): Promise<SeenRequest[]>
  /** Ends every stall. */
  release(): Promise<void>
  reset(): Promise<void>
  /** Call it after the last test: closes its connections and forgets everything. Another test file may get it. */
  stop(): Promise<void>
  /** Ends its process; requests to it fail from then on. */
  kill(): Promise<void>
}

/** Providers of earlier tests of this process. A start takes 0.2 s of CPU time, and most test files need a provider. */
const idle: FakeProvider[] = []

export async function startFakeProvider(): Promise<FakeProvider> {
  return idle.pop() ?? (await spawnProvider())
}

async function spawnProvider(): Promise<FakeProvider> {
  const path = fileURLToPath(new URL('../fakes/openai-provider.ts', import.meta.url))
  const child = spawn(process.execPath, [path], { stdio: ['pipe', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })
  const [line] = (await Promise.race([
    once(lines, 'line'),
    exited.then(() => Promise.reject(new Error('The fake provider did not start.'))),
  ])) as [string]
  // It ends when this process has ended and does not keep it alive.
  child.unref()
  for (const pipe of [child.stdin, child.stdout] as unknown as Socket[]) pipe.unref()
  const { port } = JSON.parse(line) as { port: number }
  const origin = `http://127.0.0.1:${port}`

  const control = async (path: string, body?: unknown): Promise<unknown> => {
    const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
    const response = await fetch(`${origin}/control/${path}`, init)
    if (!response.ok) throw new Error(`The fake provider refused ${path}: ${response.status}`)
    return response.json()
  }

  const provider: FakeProvider = {
    baseUrl: `${origin}/v1`,
    async script(answers, match, model) {
      await control('script', { answers, match, model })
    },
    async requests() {
      return (await control('requests')) as SeenRequest[]
    },
    async waitFor({ requests = 0, closedEarly = 0 }) {
      return (await control(`wait?requests=${requests}&closedEarly=${closedEarly}`)) as SeenRequest[]
    },
    async release() {
      await control('release', {})
    },
    async reset() {
      await control('reset', {})
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null || idle.includes(provider)) return
      await control('renew', {})
      idle.push(provider)
    },
    async kill() {
      child.kill()
      await exited
    },
  }
  return provider
}
