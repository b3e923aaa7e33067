// The real server with a fake model provider behind it, and a client for both. The server
// runs in the process of the test, or in one of its own if the test has to kill it. The tests
// of one file share one server. Each test uses its own user, and puts a marker text into its
// questions, which selects the scripted answers of the provider.

import assert from 'node:assert/strict'
import { after, before } from 'node:test'
import { type Action, type FakeProvider, type SeenRequest, startFakeProvider } from './fake-provider.ts'
import { type Polylog, startPolylog } from './polylog.ts'
import { type PolylogProcess, startPolylogProcess } from './polylog-process.ts'
import { openStream, type SseFrame, type SseStream } from './sse.ts'
import { until } from './until.ts'

export { until }

/** JSON of an answer; the test asserts what it needs of it. */
export type Json = SseFrame['json']['data']

export type Answer = { status: number; headers: Headers; body: Json; text: string }

export type CallOptions = { user?: string; body?: unknown; raw?: string; headers?: Record<string, string> }

export type TestServer = {
  readonly provider: FakeProvider
  readonly polylog: Polylog
  call(method: string, path: string, options?: CallOptions): Promise<Answer>
  /** POST /v1/agent/chat; `body` may be just the text. */
  chat(user: string, body: string | Json, headers?: Record<string, string>, query?: string): Promise<SseStream>
  /** The same, read to its end. */
  chatToEnd(user: string, body: string | Json, headers?: Record<string, string>): Promise<SseFrame[]>
  /** The requests to the provider whose last user message contains `marker`. */
  asked(marker: string): Promise<SeenRequest[]>
  /** Waits until there are at least `count` such requests. */
  askedTimes(marker: string, count: number): Promise<SeenRequest[]>
  /** Waits until the run has one of these states. */
  reaches(user: string, runId: string, ...statuses: string[]): Promise<Json>
  /** Starts a new server on the same data. This one must have been stopped or killed first. */
  restart(environment?: Record<string, string>): Promise<TestServer>
  close(): Promise<void>
}

/** A test server that can be killed. */
export type TestServerProcess = TestServer & {
  readonly polylog: PolylogProcess
  /** As `restart`, and the new server can be killed too. */
  restartProcess(environment?: Record<string, string>): Promise<TestServerProcess>
}

type Environment = Record<string, string>

export async function startTestServer(environment: Environment = {}, shared?: FakeProvider): Promise<TestServer> {
  const provider = shared ?? (await startFakeProvider())
  const polylog = await startPolylog({ ...askingProvider(provider), ...environment })
  return testServerOf(provider, polylog, shared === undefined)
}

/** Settings of a shared server; a function if they are known only when the tests start (the port of a fake, for example). */
export type SharedSettings = Environment | (() => Environment | Promise<Environment>)

/** One server for all tests of a file or suite: started before the first test, closed after the last. */
export function sharedTestServer(settings: SharedSettings = {}): TestServer {
  return sharedTestServers(settings)[0]
}

/** The same in a process of its own, so that a client library of the tests and the server share nothing but a socket. */
export function sharedServerProcess(settings: SharedSettings = {}): TestServer {
  return sharedServers(startTestServerProcess, [settings])[0]
}

/** The same as `sharedTestServer` for several servers with different settings. They use one fake provider. */
export function sharedTestServers<const Settings extends readonly [SharedSettings, ...SharedSettings[]]>(
  ...settings: Settings
): { [Index in keyof Settings]: TestServer } {
  return sharedServers(startTestServer, settings)
}

function sharedServers<const Settings extends readonly [SharedSettings, ...SharedSettings[]]>(
  start: typeof startTestServer,
  settings: Settings,
): { [Index in keyof Settings]: TestServer } {
  const started: TestServer[] = []
  before(async () => {
    for (const each of settings) {
      const environment = typeof each === 'function' ? await each() : each
      started.push(await start(environment, started[0]?.provider))
    }
  })
  // The first server owns the provider, so it is closed last.
  after(async () => {
    for (const server of started.toReversed()) await server.close()
  })
  return settings.map((_, index) => sharedServerAt(started, index)) as { [Index in keyof Settings]: TestServer }
}

function sharedServerAt(started: TestServer[], index: number): TestServer {
  const running = () => {
    const server = started[index]
    assert.ok(server !== undefined, 'the server is there only while tests run')
    return server
  }
  return {
    get provider() {
      return running().provider
    },
    get polylog() {
      return running().polylog
    },
    call: (...given) => running().call(...given),
    chat: (...given) => running().chat(...given),
    chatToEnd: (...given) => running().chatToEnd(...given),
    asked: (...given) => running().asked(...given),
    askedTimes: (...given) => running().askedTimes(...given),
    reaches: (...given) => running().reaches(...given),
    // The following calls go to the new server, because the old one was stopped.
    async restart(...given) {
      const next = await running().restart(...given)
      started[index] = next
      return next
    },
    close: () => running().close(),
  }
}

export async function startTestServerProcess(
  environment: Environment = {},
  shared?: FakeProvider,
): Promise<TestServerProcess> {
  const provider = shared ?? (await startFakeProvider())
  const polylog = await startPolylogProcess({ ...askingProvider(provider), ...environment })
  return testServerProcessOf(provider, polylog, shared === undefined)
}

function askingProvider(provider: FakeProvider): Environment {
  return {
    OPENAI_API_KEY: 'test-key',
    OPENAI_BASE_URL: provider.baseUrl,
    POLYLOG_MODEL: 'openai/fake',
    POLYLOG_PROVIDER_RETRIES: '0',
  }
}

function testServerProcessOf(
  provider: FakeProvider,
  polylog: PolylogProcess,
  ownsProvider: boolean,
): TestServerProcess {
  return {
    ...testServerOf(provider, polylog, ownsProvider),
    polylog,
    restartProcess: async (environment) =>
      testServerProcessOf(provider, await polylog.restartProcess(environment), ownsProvider),
  }
}

function testServerOf(provider: FakeProvider, polylog: Polylog, ownsProvider: boolean): TestServer {
  const server: TestServer = {
    provider,
    polylog,
    call: (method, path, options) => callServer(polylog.baseUrl, method, path, options),
    async chat(user, body, headers = {}, query = '') {
      const fields = typeof body === 'string' ? { input: body } : body
      const url = `${polylog.baseUrl}/v1/agent/chat${query}`
      return await openStream(url, { method: 'POST', body: { userId: user, ...fields }, headers })
    },
    async chatToEnd(user, body, headers) {
      const stream = await server.chat(user, body, headers)
      const { cut } = await stream.ended()
      assert.equal(stream.status, 200, stream.text())
      assert.equal(cut, false)
      return stream.frames
    },
    async asked(marker) {
      return (await provider.requests()).filter((request) => lastUserText(request).includes(marker))
    },
    askedTimes: (marker, count) =>
      until(`${count} requests with ${marker}`, async () => {
        const found = await server.asked(marker)
        return found.length >= count ? found : undefined
      }),
    reaches: (user, runId, ...statuses) =>
      until(`run ${runId} to be ${statuses.join(' or ')}`, async () => {
        const { body } = await server.call('GET', `/v1/agent/runs/${runId}`, { user })
        return statuses.includes(String(body.status)) ? body : undefined
      }),
    restart: async (environment) => testServerOf(provider, await polylog.restart(environment), ownsProvider),
    async close() {
      await polylog.dispose()
      if (ownsProvider) await provider.stop()
    },
  }
  return server
}

export async function callServer(
  baseUrl: string,
  method: string,
  path: string,
  { user, body, raw, headers }: CallOptions = {},
): Promise<Answer> {
  const url = new URL(path, baseUrl)
  if (user !== undefined) url.searchParams.set('userId', user)
  const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body))
  const response = await fetch(url, {
    method,
    headers: { ...(payload === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(payload === undefined ? {} : { body: payload }),
  })
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.includes('json') === true
  return { status: response.status, headers: response.headers, text, body: isJson ? (JSON.parse(text) as Json) : {} }
}

let users = 0

/** A user name that no other test uses. It also serves as a marker, because no such name contains another. */
export function someone(name = 'user'): string {
  users += 1
  return `${name}-${users}-${process.pid}.`
}

function lastUserText(request: SeenRequest): string {
  const content = request.body.messages?.findLast((message) => message.role === 'user')?.content
  if (typeof content === 'string') return content
  return Array.isArray(content) ? content.map((part: { text?: string }) => part.text ?? '').join('') : ''
}

/** A model answer with one chunk per text, which ends normally. */
export function says(...text: string[]): Action[] {
  return [{ text }, { finish: 'stop' }]
}

/** A model answer that calls these tools. */
export function calls(...wanted: [name: string, input: unknown, id?: string][]): Action[] {
  return [
    {
      toolCalls: wanted.map(([name, input, id], index) => ({
        name,
        id: id ?? `call_${index + 1}_${name}`,
        arguments: JSON.stringify(input),
      })),
    },
    { finish: 'tool_calls' },
  ]
}

/** A model answer that stalls after `text`, until the provider is released or the client disconnects. */
export function hangsAfter(...text: string[]): Action[] {
  return [{ text }, { stall: true }]
}

export function runIdOf(stream: Pick<SseStream, 'headers'>): string {
  const id = stream.headers['x-run-id']
  assert.equal(typeof id, 'string')
  return id as string
}

export function named(name: string): (frame: SseFrame) => boolean {
  return (frame) => frame.json.event === name
}

export function toolState(status: string, name?: string): (frame: SseFrame) => boolean {
  return ({ json }) =>
    json.event === 'tool.state' && json.data.status === status && (name === undefined || json.data.name === name)
}

/** The `tool.state` statuses in order, of one tool or of all. */
export function toolStatuses(frames: readonly SseFrame[], name?: string): string[] {
  return frames
    .filter(({ json }) => json.event === 'tool.state' && (name === undefined || json.data.name === name))
    .map(({ json }) => String(json.data.status))
}

export function endOf(frames: readonly SseFrame[]): Json {
  const last = frames.at(-1)
  assert.ok(last !== undefined, 'the stream held no frame')
  assert.equal(last.json.event, 'agent.end')
  return last.json.data
}

/** The messages in a request to the provider. */
export function messagesOf(request: SeenRequest | undefined): Json[] {
  assert.ok(request !== undefined, 'the provider was not asked')
  return (request.body.messages ?? []) as Json[]
}

/** Providers refuse a tool call that is not directly followed by its result, and a result without its call. */
export function assertCallsArePaired(messages: readonly Json[]): void {
  let open: string[] = []
  for (const message of messages) {
    if (message.role === 'tool') {
      assert.ok(open.includes(message.tool_call_id), `a result without its call: ${JSON.stringify(messages)}`)
      open = open.filter((id) => id !== message.tool_call_id)
      continue
    }
    assert.deepEqual(open, [], `a call without its result: ${JSON.stringify(messages)}`)
    if (message.role === 'assistant') open = ((message.tool_calls ?? []) as { id: string }[]).map((call) => call.id)
  }
  assert.deepEqual(open, [], `a call without its result: ${JSON.stringify(messages)}`)
}
