// A server in this process whose time of day a test can move, and agents of its own: for
// tests of one-shot runs. Timers run in real time; only `now` is shifted.

import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before } from 'node:test'
import { compose } from '../../src/app/compose.ts'
import { readConfig } from '../../src/app/config.ts'
import { createLog } from '../../src/app/log.ts'
import { systemClock } from '../../src/kit/clock.ts'
import { type FakeProvider, type SeenRequest, startFakeProvider } from './fake-provider.ts'
import { type Answer, callServer, type CallOptions, type Json, says } from './test-server.ts'
import { databaseSettings, dropDatabase } from './test-database.ts'

export type AgentFiles = { card?: Json; system?: string; user?: string; output?: Json; input?: Json }

export type OneShotServer = {
  readonly provider: FakeProvider
  readonly baseUrl: string
  readonly dataDir: string
  call(method: string, path: string, options?: CallOptions): Promise<Answer>
  run(body: Json, headers?: Record<string, string>): Promise<Answer>
  /** The requests to the provider with `marker` in any of their messages. A repair round has it in an earlier one. */
  asked(marker: string): Promise<SeenRequest[]>
  /** Moves the time of day. */
  shift(ms: number): void
  /** Writes a definition; it counts from the next start. */
  define(id: string, files: AgentFiles): void
  /** `between` is called while no server uses the data folder. */
  restart(environment?: Record<string, string>, between?: () => void | Promise<void>): Promise<void>
}

const textInput = {
  type: 'object',
  properties: {
    text: { type: 'string', minLength: 1 },
    size: { type: 'integer', minimum: 1, default: 3 },
    nested: { type: 'object', properties: { list: { type: 'array', items: { type: 'string' } } } },
  },
  required: ['text'],
}

/** Agents with an input schema, without an output schema, with operations, with a scope and with tools. */
const sampleAgents: Record<string, AgentFiles> = {
  word: { input: textInput, user: '{{{data}}} in {{language}}' },
  free: { card: { validation: {} }, user: 'Say something about {{input.text}}.' },
  two_ways: {
    card: {
      operations: [{ id: 'first', name: 'First' }, { id: 'second' }],
      validation: { outputSchema: 'output.json' },
    },
  },
  scoped: { card: { scope: 'conversation' } },
  helped: { card: { tools: { mode: 'allowlist', allowedTools: ['current_time', 'remember_note'] } } },
}

/** An answer of the model that fits the agent `word`. */
export const goodAnswer = says('{"word":"fine"}')

/** A request to the agent `word`. The user's name stands in the text, so that the provider's requests can be distinguished. */
export const wordBody = (user: string, more: Json = {}): Json => ({
  agentId: 'word',
  userId: user,
  input: { text: `about ${user}` },
  ...more,
})

/** The body of an answer that must be a result. */
export function resultOf({ status, body, text }: Answer): Json {
  assert.equal(status, 200, text)
  return body
}

/** One server with these agents for all tests of a file: started before the first test, closed after the last. */
export function sharedOneShotServer(agents: Record<string, AgentFiles> = sampleAgents): OneShotServer {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-one-shot-'))
  const agentsDir = join(folder, 'agents')
  const dataDir = join(folder, 'data')
  mkdirSync(agentsDir)
  let provider: FakeProvider | undefined
  let offset = 0
  const clock = { ...systemClock, now: () => systemClock.now() + offset }
  let app: { start(): Promise<string>; stop(): Promise<void> } | undefined
  let baseUrl = ''

  const define = (id: string, files: AgentFiles) => writeAgent(join(agentsDir, id), id, files)
  for (const [id, files] of Object.entries(agents)) define(id, files)

  function runningProvider(): FakeProvider {
    assert.ok(provider !== undefined, 'the provider is there only while tests run')
    return provider
  }

  async function start(more: Record<string, string> = {}): Promise<void> {
    const settings = {
      HOST: '127.0.0.1',
      PORT: '0',
      POLYLOG_DATA: dataDir,
      POLYLOG_AGENTS_DIR: agentsDir,
      POLYLOG_AGENTS_RELOAD: 'off',
      OPENAI_API_KEY: 'test-key',
      OPENAI_BASE_URL: runningProvider().baseUrl,
      POLYLOG_MODEL: 'openai/fake',
      POLYLOG_PROVIDER_RETRIES: '0',
      ...(await databaseSettings(dataDir)),
      ...more,
    }
    app = await compose(readConfig(settings), createLog({ level: 'silent' }), { environment: settings, clock })
    baseUrl = await app.start()
  }

  before(async () => {
    provider = await startFakeProvider()
    await start()
  })
  after(async () => {
    await app?.stop()
    await dropDatabase(dataDir)
    await provider?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  return {
    get provider() {
      return runningProvider()
    },
    get baseUrl() {
      return baseUrl
    },
    dataDir,
    call: (method, path, options) => callServer(baseUrl, method, path, options),
    run: (body, headers) => callServer(baseUrl, 'POST', '/v1/agent/run', { body, ...(headers && { headers }) }),
    asked: async (marker) =>
      (await runningProvider().requests()).filter(({ body }) => JSON.stringify(body.messages).includes(marker)),
    shift(ms) {
      offset += ms
    },
    define,
    async restart(more, between) {
      await app?.stop()
      await between?.()
      await start(more)
    },
  }
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
