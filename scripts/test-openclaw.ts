// `npm run test:openclaw`: the openclaw engine against the real `openclaw` package. It installs
// the package (about 650 MB) into a folder, starts its gateway on this machine with a fake model
// provider behind it, lets Polylog chat through it, and prints what worked. It is not part of
// `npm test`, because of the download.
//
//   --folder <path>    install there, or use what is installed there; default: a temporary folder
//   --release <name>   the version of the package

import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type FakeProvider, startFakeProvider } from '../test/support/fake-provider.ts'
import type { SseFrame } from '../test/support/sse.ts'
import { calls, endOf, named, runIdOf, says, startTestServer, toolState } from '../test/support/test-server.ts'

const { values } = parseArgs({
  options: { folder: { type: 'string' }, release: { type: 'string', default: '2026.9.6' } },
})
const token = 'a-token-of-this-test'
const readyMs = 300_000

const folder = values.folder ?? mkdtempSync(join(tmpdir(), 'polylog-openclaw-'))
const home = mkdtempSync(join(tmpdir(), 'polylog-openclaw-home-'))
install()
const provider = await startFakeProvider()
const port = await freePort()
const gateway = await startGateway(provider, port)
let failures = 0
try {
  await check()
} finally {
  gateway.kill()
  await provider.stop()
  rmSync(home, { recursive: true, force: true, maxRetries: 5 })
  if (values.folder === undefined) rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}
process.exit(failures === 0 ? 0 : 1)

function install(): void {
  if (existsSync(join(folder, 'node_modules', 'openclaw', 'openclaw.mjs'))) return
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{"private":true}')
  say(`installing openclaw@${values.release} into ${folder}`)
  const args = ['install', '--ignore-scripts', '--no-audit', '--no-fund', `openclaw@${values.release}`]
  const { status } = spawnSync('npm', args, { cwd: folder, stdio: 'inherit' })
  assert.equal(status, 0, 'npm could not install the package')
}

async function startGateway({ baseUrl }: FakeProvider, listenPort: number): Promise<ChildProcess> {
  const config = join(home, 'config.json')
  const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }
  const model = {
    id: 'fake',
    name: 'fake',
    reasoning: false,
    input: ['text'],
    cost,
    contextWindow: 128_000,
    maxTokens: 8192,
  }
  writeFileSync(
    config,
    JSON.stringify({
      gateway: { mode: 'local', port: listenPort, bind: 'loopback', auth: { mode: 'token', token } },
      update: { checkOnStart: false },
      telemetry: { enabled: false },
      models: { providers: { fake: { baseUrl, apiKey: 'none', api: 'openai-completions', models: [model] } } },
      agents: { defaults: { model: { primary: 'fake/fake' } } },
      tools: { toolSearch: false, exec: { mode: 'ask' } },
    }),
  )
  say('starting the gateway')
  const started = spawn(
    process.execPath,
    [join(folder, 'node_modules', 'openclaw', 'openclaw.mjs'), 'gateway', 'run', '--port', String(listenPort)],
    {
      env: {
        PATH: process.env['PATH'],
        OPENCLAW_HOME: home,
        OPENCLAW_STATE_DIR: join(home, 'state'),
        OPENCLAW_CONFIG_PATH: config,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  let output = ''
  const hear = (bytes: Buffer) => void (output += bytes.toString())
  started.stdout.on('data', hear)
  started.stderr.on('data', hear)
  for (let waited = 0; waited < readyMs; waited += 250) {
    // Parts of the gateway say that they are ready, too.
    if (/\[gateway\]\S* \S{0,6}ready/.test(output)) return started
    if (started.exitCode !== null) break
    await wait(250)
  }
  started.kill()
  throw new Error(`the gateway did not become ready:\n${output.slice(-4000)}`)
}

async function check(): Promise<void> {
  const environment = {
    POLYLOG_ENGINE: 'openclaw',
    POLYLOG_ENGINE_FALLBACK: 'none',
    OPENCLAW_URL: `http://127.0.0.1:${port}`,
    OPENCLAW_TOKEN: token,
    // The first turn of a gateway takes half a minute.
    POLYLOG_STALL_MS: '300000',
  }
  let server = await startTestServer(environment, provider)
  const user = 'ada'
  try {
    await step('a chat is answered as a stream', async () => {
      await provider.script([says('Hello ', 'from ', 'the gateway.')])
      const frames = await server.chatToEnd(user, { input: 'Hello?', conversationId: 'first' })
      assert.equal(outputOf(frames), 'Hello from the gateway.')
      assert.ok(frames.filter(named('agent.delta')).length > 0)
    })
    await step('the next turn has the history of the session', async () => {
      await provider.reset()
      await server.chatToEnd(user, { input: 'And now?', conversationId: 'first' })
      const asked = JSON.stringify((await provider.requests()).at(-1)?.body.messages)
      assert.match(asked, /Hello from the gateway\./)
    })
    await step('a message with a command of the gateway is text', async () => {
      await provider.reset()
      const frames = await server.chatToEnd(user, { input: '/status', conversationId: 'slash' })
      assert.equal(outputOf(frames), 'Hello from the fake provider.')
    })
    for (const decision of ['confirm', 'reject'] as const) {
      await step(`a command waits for a person: ${decision}`, async () => {
        await provider.reset()
        const file = join(home, `made-by-${decision}`)
        await provider.script([calls(['exec', { command: `touch ${file}` }, `call_${decision}`]), says('Done.')])
        const stream = await server.chat(user, { input: 'Make a file.', conversationId: decision })
        const asked = (await stream.waitFor(toolState('awaiting_input'))).json.data
        assert.match(asked.message, /touch/)
        assert.equal(existsSync(file), false)
        await server.reaches(user, runIdOf(stream), 'awaiting_input')
        await server.call('POST', `/v1/tool-confirmations/${asked.confirmationId}/${decision}`, { user })
        await stream.ended()
        assert.equal(outputOf(stream.frames), 'Done.')
        assert.equal(existsSync(file), decision === 'confirm')
      })
    }
    await step('a turn is found again after a restart of Polylog', async () => {
      await provider.reset()
      await provider.script([[{ text: ['One ', 'two '] }, { stall: true }, { text: ['three.'] }, { finish: 'stop' }]])
      const stream = await server.chat(user, { input: 'Count.', conversationId: 'restart' })
      await stream.waitFor(named('agent.delta'))
      await server.polylog.stop()
      server = await server.restart()
      await provider.release()
      await server.reaches(user, runIdOf(stream), 'succeeded')
      const { body } = await server.call('GET', `/v1/agent/runs/${runIdOf(stream)}/timeline`, { user })
      assert.equal((body.events as { payload: { output?: string } }[]).at(-1)?.payload.output, 'One two three.')
      assert.equal((await provider.requests()).length, 1)
    })
    await step('a cancel stops the remote run', async () => {
      await provider.reset()
      await provider.script([[{ text: ['Well '] }, { stall: true }]])
      const stream = await server.chat(user, { input: 'Slowly.', conversationId: 'cancel' })
      await stream.waitFor(named('agent.delta'))
      await server.call('POST', `/v1/agent/runs/${runIdOf(stream)}/cancel`, { user })
      await stream.ended()
      assert.equal(endOf(stream.frames).status, 'cancelled')
      await provider.waitFor({ requests: 1, closedEarly: 1 })
    })
  } finally {
    await server.polylog.dispose()
  }
  say(failures === 0 ? 'everything worked' : `${failures} checks failed`)
}

function outputOf(frames: readonly SseFrame[]): unknown {
  const { status, output, error } = endOf(frames)
  assert.equal(status, 'succeeded', JSON.stringify(error))
  return output
}

async function step(title: string, run: () => Promise<void>): Promise<void> {
  try {
    await run()
    say(`ok      ${title}`)
  } catch (error) {
    failures += 1
    say(`FAILED  ${title}\n${String(error)}`)
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 0
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
