// A server in this process whose time of day a test can move, and agents of its own: for
// tests of one-shot runs. Timers run in real time; only `now` is shifted.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { compose } from '../../src/app/compose.ts'
import { readConfig } from '../../src/app/config.ts'
import { createLog } from '../../src/app/log.ts'
import { systemClock } from '../../src/kit/clock.ts'
import { type FakeProvider, startFakeProvider } from './fake-provider.ts'
import { type Answer, callServer, type CallOptions, type Json } from './test-server.ts'
import { databaseSettings, dropDatabase } from './test-database.ts'

export type AgentFiles = { card?: Json; system?: string; user?: string; output?: Json; input?: Json }

export type OneShotServer = {
  readonly provider: FakeProvider
  readonly baseUrl: string
  readonly dataDir: string
  call(method: string, path: string, options?: CallOptions): Promise<Answer>
  run(body: Json, headers?: Record<string, string>): Promise<Answer>
  /** Moves the time of day. */
  shift(ms: number): void
  /** Writes a definition; it counts from the next start. */
  define(id: string, files: AgentFiles): void
  /** `between` is called while no server uses the data folder. */
  restart(environment?: Record<string, string>, between?: () => void | Promise<void>): Promise<void>
  close(): Promise<void>
}

export async function startOneShotServer(
  agents: Record<string, AgentFiles>,
  environment: Record<string, string> = {},
): Promise<OneShotServer> {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-one-shot-'))
  const agentsDir = join(folder, 'agents')
  const dataDir = join(folder, 'data')
  mkdirSync(agentsDir)
  const provider = await startFakeProvider()
  let offset = 0
  const clock = { ...systemClock, now: () => systemClock.now() + offset }
  let app: { start(): Promise<string>; stop(): Promise<void> }
  let baseUrl = ''

  const define = (id: string, files: AgentFiles) => writeAgent(join(agentsDir, id), id, files)
  for (const [id, files] of Object.entries(agents)) define(id, files)

  async function start(more: Record<string, string> = {}): Promise<void> {
    const settings = {
      HOST: '127.0.0.1',
      PORT: '0',
      POLYLOG_DATA: dataDir,
      POLYLOG_AGENTS_DIR: agentsDir,
      POLYLOG_AGENTS_RELOAD: 'off',
      OPENAI_API_KEY: 'test-key',
      OPENAI_BASE_URL: provider.baseUrl,
      POLYLOG_MODEL: 'openai/fake',
      POLYLOG_PROVIDER_RETRIES: '0',
      ...(await databaseSettings(dataDir)),
      ...environment,
      ...more,
    }
    app = await compose(readConfig(settings), createLog({ level: 'silent' }), { environment: settings, clock })
    baseUrl = await app.start()
  }
  await start()

  const server: OneShotServer = {
    provider,
    get baseUrl() {
      return baseUrl
    },
    dataDir,
    call: (method, path, options) => callServer(baseUrl, method, path, options),
    run: (body, headers) => callServer(baseUrl, 'POST', '/v1/agent/run', { body, ...(headers && { headers }) }),
    shift(ms) {
      offset += ms
    },
    define,
    async restart(more, between) {
      await app.stop()
      await between?.()
      await start(more)
    },
    async close() {
      await app.stop()
      await dropDatabase(dataDir)
      await provider.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
  return server
}

/** A small agent: it reads its input and answers with `{ "word": … }`, unless the files say otherwise. */
export function writeAgent(folder: string, id: string, { card = {}, system, user, output, input }: AgentFiles): void {
  mkdirSync(folder, { recursive: true })
  const schema = output ?? { type: 'object', properties: { word: { type: 'string' } }, required: ['word'] }
  const files: Record<string, string> = {
    'agent.json': JSON.stringify({
      id,
      version: '1.0.0',
      prompt: { systemTemplate: 'system.mustache', userTemplate: 'user.mustache' },
      memory: { strategy: 'declarative', maxTokens: 4000 },
      tools: { mode: 'none', allowedTools: [] },
      validation: { outputSchema: 'output.json', ...(input === undefined ? {} : { inputSchema: 'input.json' }) },
      cache: { ttl: 3600 },
      ...card,
    }),
    'system.mustache': system ?? 'Answer with JSON: {{{outputSchema}}}',
    'user.mustache': user ?? '{{{data}}}',
    'output.json': JSON.stringify(schema),
    ...(input === undefined ? {} : { 'input.json': JSON.stringify(input) }),
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
}
