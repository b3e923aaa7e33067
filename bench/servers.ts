// The servers of the measurements: the provider, which all share, and the two that are
// measured, Polylog and the raw proxy.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Child, jsonPort, type LoadOptions, polylogPort, type Role, startChild } from './processes.ts'

export class Bench {
  /** How often each load is measured, after one round that warms up. */
  readonly rounds = Number(process.env.BENCH_ROUNDS ?? 3)
  private readonly upstream: Child
  private readonly data = mkdtempSync(join(tmpdir(), 'polylog-bench-'))
  private readonly running = new Set<Child>()
  private folders = 0

  private constructor(upstream: Child) {
    this.upstream = upstream
  }

  static async open(): Promise<Bench> {
    return new Bench(await startChild('upstream.ts', {}, jsonPort, 'helper'))
  }

  async close(): Promise<void> {
    await this.stopServers()
    await this.upstream.stop()
    rmSync(this.data, { recursive: true, force: true })
  }

  newFolder(): string {
    this.folders += 1
    return join(this.data, String(this.folders))
  }

  async polylog(
    folder = this.newFolder(),
    environment: Record<string, string> = {},
    role: Role = 'server',
  ): Promise<Child> {
    const child = await startChild(
      '../src/app/main.ts',
      {
        PORT: '0',
        POLYLOG_DATA: folder,
        OPENAI_BASE_URL: `${this.upstreamUrl}/v1`,
        OPENAI_API_KEY: 'bench',
        POLYLOG_LOG: 'info',
        POLYLOG_CONCURRENCY: '10000',
        POLYLOG_QUEUE_MAX: '10000',
        ...(process.env.NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE }),
        ...environment,
      },
      polylogPort,
      role,
    )
    this.running.add(child)
    return child
  }

  async proxy(environment: Record<string, string> = {}): Promise<Child> {
    const child = await startChild('raw-proxy.ts', { UPSTREAM: this.upstreamUrl, ...environment }, jsonPort)
    this.running.add(child)
    return child
  }

  /** Stops what a part has started. */
  async stopServers(): Promise<void> {
    await Promise.all([...this.running].map((child) => child.stop()))
    this.running.clear()
  }

  private get upstreamUrl(): string {
    return `http://127.0.0.1:${this.upstream.port}`
  }
}

export function urlOf(child: Child, path: string): string {
  return `http://127.0.0.1:${child.port}${path}`
}

/** What a client sends to Polylog and to the proxy; each reads its own fields. */
export function chatBody(model: string, conversationId?: string): string {
  const messages = [{ role: 'user', content: 'go %INDEX%' }]
  return JSON.stringify({ model, input: 'go %INDEX%', messages, conversationId })
}

type ChatLoad = Pick<LoadOptions, 'streams' | 'rounds' | 'stamped'> & {
  model: string
  /** The beginning of the names of the conversations, one for each request. Without it conversations have no names. */
  conversations?: string
}

export function proxyLoad(child: Child, { model, ...rest }: ChatLoad): LoadOptions {
  return { url: urlOf(child, '/'), body: chatBody(model), marker: '"content"', ...rest }
}

export function polylogLoad(child: Child, { model, conversations, ...rest }: ChatLoad): LoadOptions {
  const body = chatBody(model, conversations === undefined ? undefined : `${conversations}-%INDEX%`)
  return { url: urlOf(child, '/v1/agent/chat'), body, marker: 'event: agent.delta', ...rest }
}

/** Starts a run, reads its stream to the end, and returns its id. */
export async function finishedRun(child: Child, model: string): Promise<string> {
  const response = await fetch(urlOf(child, '/v1/agent/chat'), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: chatBody(model),
  })
  await response.text()
  return response.headers.get('x-run-id') ?? ''
}

/** One row of the comparison with the proxy. */
export type Comparison = { what: string; unit: string; raw: number; ours: number; goal: string }
