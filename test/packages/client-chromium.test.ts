// The built client in a real browser: a page reads a run while the server is killed and started again, the network is
// gone, and the tab sleeps. What the page shows in the end is the journal.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type Browser, type CDPSession, chromium, type Page } from 'playwright-core'
import { createClient, foldRun, type RunFrame, type RunState } from '../../client/src/index.ts'
import { ensureProgram } from '../../scripts/ensure-programs.ts'
import { type NastyProxy, startNastyProxy } from '../support/nasty-proxy.ts'
import { calls, says, someone, startTestServerProcess, type TestServerProcess, until } from '../support/test-server.ts'

/** Between two attempts the client waits up to 30 s, if the server takes long to start on a busy machine. */
const drawnWithinMs = 90_000

const root = join(import.meta.dirname, '../..')

/** The page: it starts or attaches to a run, and draws its state after each frame. */
const pageCode = `
import { createClient, emptyRun, reduceRun } from './client/index.js'
import { doctorStream } from './client/doctor.js'
const given = new URL(location.href).searchParams
const client = createClient({ baseUrl: given.get('server') ?? '', userId: given.get('user'), idleTimeoutMs: 3000 })
const page = { frames: [], state: emptyRun, connections: [], runId: null, error: null, client, doctorStream: () => doctorStream({ baseUrl: given.get('server') ?? '' }) }
globalThis.page = page
const options = { onConnection: ({ state }) => page.connections.push(state) }
async function read(run) {
  page.runId = run.id
  for await (const frame of run) {
    page.frames.push(frame)
    page.state = reduceRun(page.state, frame)
    document.querySelector('main').textContent = page.state.blocks.map((block) => block.text ?? block.status).join('|')
  }
}
page.ask = (input) => void client.chat({ input }, options).then(read).catch((error) => (page.error = String(error)))
page.attach = (id) => void read(client.attach(id, options)).catch((error) => (page.error = String(error)))
`

type Shown = { frames: RunFrame[]; state: RunState; connections: string[]; runId: string | null; error: string | null }

/** The global object of the page. The functions that use it run there, not in this process. */
type PageGlobal = {
  page: Shown & {
    ask(input: string): void
    attach(id: string): void
    client: ReturnType<typeof createClient>
    doctorStream: () => Promise<{ observation: { received: unknown[] } }>
  }
}

type Rig = {
  proxy: NastyProxy
  server: TestServerProcess
  /** `server`: the address of the server, if the page is of another origin. */
  open(user: string, server?: string): Promise<{ page: Page; devtools: CDPSession }>
}

/** Null if there is no browser; the test is then skipped. */
async function rig(context: TestContext, settings: Record<string, string> = {}): Promise<Rig | null> {
  const program = ensureProgram('chromium')
  if ('missing' in program) {
    context.skip(program.missing)
    return null
  }
  const folder = mkdtempSync(join(tmpdir(), 'polylog-chromium-'))
  execFileSync(process.execPath, [join(root, 'scripts/build.ts'), 'client', join(folder, 'client')])
  const server = await startTestServerProcess({ POLYLOG_PING_MS: '500', ...settings })
  const proxy = await startNastyProxy(server.polylog.baseUrl)
  for (const file of globSync('*.js', { cwd: join(folder, 'client') })) {
    const body = readFileSync(join(folder, 'client', file), 'utf8')
    proxy.files.set(`/client/${file}`, { type: 'text/javascript', body })
  }
  proxy.files.set('/page.js', { type: 'text/javascript', body: pageCode })
  const browser: Browser = await chromium.launch({ executablePath: program.path, args: ['--no-sandbox'] })
  const made: Rig = {
    proxy,
    server,
    async open(user, otherOrigin = '') {
      const address = `/?user=${encodeURIComponent(user)}&server=${encodeURIComponent(otherOrigin)}`
      const html = '<!doctype html><title>Polylog</title><main></main><script type="module" src="/page.js"></script>'
      proxy.files.set(address, { type: 'text/html', body: html })
      const page = await browser.newPage()
      await page.goto(`${proxy.baseUrl}${address}`)
      await page.waitForFunction(() => 'page' in globalThis)
      return { page, devtools: await page.context().newCDPSession(page) }
    },
  }
  context.after(async () => {
    await browser.close()
    await proxy.close()
    await made.server.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return made
}

const shown = (page: Page): Promise<Shown> =>
  page.evaluate(() => {
    const { frames, state, connections, runId, error } = (globalThis as unknown as PageGlobal).page
    return { frames, state, connections, runId, error }
  })

/** Waits until the page has drawn this text. */
async function draws(page: Page, text: string): Promise<void> {
  const isDrawn = `document.querySelector('main').textContent.includes(${JSON.stringify(text)})`
  await page.waitForFunction(isDrawn, undefined, { polling: 50, timeout: drawnWithinMs })
}

const succeeds = (page: Page) =>
  until('the end', async () => ((await shown(page)).state.status === 'succeeded' ? true : undefined))

test('a page shows the journal, whatever happens to the server, the network and the tab', async (context) => {
  const made = await rig(context)
  if (made === null) return
  const { proxy } = made
  const { provider } = made.server
  const user = someone()
  const words = Array.from({ length: 50 }, (_, index) => `word-${index} `)
  const part = (from: number, to: number) => ({ text: words.slice(from, to) })
  const stall = { stall: true } as const
  await provider.script(
    [
      [part(0, 10), stall],
      [part(0, 20), stall, part(20, 30), stall, part(30, 40), stall, part(40, 50), { finish: 'stop' }],
    ],
    user,
  )
  const { page, devtools } = await made.open(user)
  await page.evaluate((input) => (globalThis as unknown as PageGlobal).page.ask(input), user)
  await draws(page, 'word-9 ')

  // The server dies, and a new one takes the run up again.
  await made.server.polylog.kill()
  made.server = await made.server.restartProcess()
  proxy.target = made.server.polylog.baseUrl
  await draws(page, 'word-19 ')

  // The network is gone while the run goes on.
  const network = { latency: 0, downloadThroughput: -1, uploadThroughput: -1 }
  await devtools.send('Network.enable')
  await devtools.send('Network.emulateNetworkConditions', { ...network, offline: true })
  proxy.cutAll()
  await provider.release()
  const { runId } = await shown(page)
  const good = () => createClient({ baseUrl: made.server.polylog.baseUrl, userId: user })
  await journalHas(good(), runId ?? '', 'word-29 ')
  assert.doesNotMatch(String(await page.evaluate('document.querySelector("main").textContent')), /word-29/)
  await devtools.send('Network.emulateNetworkConditions', { ...network, offline: false })
  await draws(page, 'word-29 ')

  // The tab is frozen, as browsers do with tabs that nobody looks at and as laptops do when they sleep.
  await devtools.send('Page.setWebLifecycleState', { state: 'frozen' })
  proxy.cutAll()
  await provider.release()
  await journalHas(good(), runId ?? '', 'word-39 ')
  await devtools.send('Page.setWebLifecycleState', { state: 'active' })
  await draws(page, 'word-39 ')

  // A connection that is open and silent, as after a change of the network.
  proxy.faults = [{ silentAfterBytes: 0 }]
  proxy.cutAll()
  await provider.release()
  await draws(page, 'word-49 ')
  await succeeds(page)

  const { frames, state, connections, error } = await shown(page)
  const journal: RunFrame[] = []
  for await (const frame of good().attach(runId ?? '')) journal.push(frame)
  assert.equal(error, null)
  assert.deepEqual(frames, journal)
  assert.deepEqual(state, foldRun(journal))
  assert.equal(state.output, words.join(''))
  assert.equal(await page.evaluate('document.querySelector("main").textContent'), words.join(''))
  assert.ok(connections.filter((connection) => connection === 'waiting').length >= 3, connections.join())
})

test('two tabs show one run, and the decision of one of them', async (context) => {
  const made = await rig(context)
  if (made === null) return
  const user = someone()
  await made.server.provider.script([calls(['remember_note', { text: 'milk' }]), says('Noted.')], user)
  const { page: first } = await made.open(user)
  await first.evaluate((input) => (globalThis as unknown as PageGlobal).page.ask(input), user)
  await draws(first, 'awaiting_input')
  const { runId } = await shown(first)
  const { page: second } = await made.open(user)
  await second.evaluate((id) => (globalThis as unknown as PageGlobal).page.attach(id), runId ?? '')
  await draws(second, 'awaiting_input')

  await second.evaluate(async () => {
    const [block] = (globalThis as unknown as PageGlobal).page.state.blocks
    if (block?.type === 'tool')
      await (globalThis as unknown as PageGlobal).page.client.confirm(block.confirmationId ?? '')
  })
  await draws(first, 'succeeded|Noted.')
  await draws(second, 'succeeded|Noted.')
  await Promise.all([succeeds(first), succeeds(second)])
  assert.deepEqual((await shown(first)).frames, (await shown(second)).frames)
  const received = await first.evaluate(async () => {
    const { observation } = await (globalThis as unknown as PageGlobal).page.doctorStream()
    return observation.received.length
  })
  assert.equal(received, 12)
})

test('a page of another origin reads a run, if the server allows its origin', async (context) => {
  const made = await rig(context, { POLYLOG_CORS_ORIGINS: '*' })
  if (made === null) return
  const user = someone()
  await made.server.provider.script([says('Hello')], user)
  const { page } = await made.open(user, made.server.polylog.baseUrl)
  await page.evaluate((input) => (globalThis as unknown as PageGlobal).page.ask(input), user)
  await succeeds(page)
  const { frames, state, error } = await shown(page)
  assert.deepEqual([error, state.output, frames.at(-1)?.event], [null, 'Hello', 'agent.end'])
  const conversationId = state.start?.conversationId ?? ''
  const title = await page.evaluate(async (id) => {
    const { client } = (globalThis as unknown as PageGlobal).page
    const { title: renamed } = await client.conversations.update(id, { title: 'Renamed' })
    await client.conversations.delete(id)
    return renamed
  }, conversationId)
  assert.equal(title, 'Renamed')
})

async function journalHas(client: ReturnType<typeof createClient>, runId: string, text: string): Promise<void> {
  let state = foldRun([])
  for await (const frame of client.attach(runId)) {
    state = foldRun([frame], state)
    if (state.blocks.some((block) => block.type === 'text' && block.text.includes(text))) return
  }
}
