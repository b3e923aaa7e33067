// npm run test:ag-ui: a chat through Polylog with a real remote agent. Installs Mastra and its
// AG-UI adapter into a temporary folder (about 450 MB, so it is run by hand), puts the fake
// model provider behind it, and prints what a client of Polylog sees.
//
//   npm run test:ag-ui [-- FOLDER]     FOLDER keeps the installed packages for the next time

import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { agentFolder } from '../test/support/agent-folder.ts'
import { startFakeProvider } from '../test/support/fake-provider.ts'
import { calls, endOf, says, startTestServer, toolState, toolStatuses } from '../test/support/test-server.ts'

const packages = [
  '@ag-ui/mastra@1.1.2',
  '@mastra/core@1.71.0',
  '@mastra/client-js@0.17.2',
  '@ag-ui/client@0.0.59',
  '@ag-ui/core@0.0.59',
  '@ag-ui/encoder@0.0.59',
  '@ai-sdk/openai-compatible@2.0.87',
  'zod@4.6.7',
]

/** The remote agent: two tools, of which one asks a person before it works. */
const agentCode = `
import { createServer } from 'node:http'
import { EventEncoder } from '@ag-ui/encoder'
import { MastraAgent } from '@ag-ui/mastra'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { Mastra } from '@mastra/core'
import { Agent } from '@mastra/core/agent'
import { createTool } from '@mastra/core/tools'
import { z } from 'zod'

const provider = createOpenAICompatible({ name: 'fake', baseURL: process.env.OPENAI_BASE_URL, apiKey: 'none' })
let refunds = 0
const add = createTool({
  id: 'add',
  description: 'Adds two numbers.',
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  execute: async ({ a, b }) => ({ sum: a + b }),
})
const refund = createTool({
  id: 'refund',
  description: 'Refunds an order.',
  inputSchema: z.object({ order: z.number() }),
  suspendSchema: z.object({ question: z.string() }),
  resumeSchema: z.object({ approved: z.boolean() }),
  execute: async ({ order }, { agent }) => {
    if (agent?.resumeData === undefined) return await agent?.suspend({ question: 'Refund order ' + order + '?' })
    if (!agent.resumeData.approved) return { refunded: false }
    refunds += 1
    return { refunded: true, refunds }
  },
})
const agent = new Agent({
  id: 'helper',
  name: 'helper',
  instructions: 'You help.',
  model: provider('fake'),
  tools: { add, refund },
})
const mastra = new Mastra({ agents: { helper: agent }, logger: false })
const encoder = new EventEncoder()

const server = createServer(async (request, response) => {
  let body = ''
  for await (const chunk of request) body += chunk
  const bridge = new MastraAgent({ agentId: 'helper', agent: mastra.getAgent('helper'), resourceId: 'someone' })
  response.writeHead(200, { 'content-type': encoder.getContentType() })
  const say = (event) => {
    if (process.env.SHOW_EVENTS) console.error('<-', JSON.stringify(event).slice(0, 400))
    response.write(encoder.encodeSSE(event))
  }
  bridge.run(JSON.parse(body)).subscribe({
    next: say,
    error(error) {
      say({ type: 'RUN_ERROR', message: String(error?.message ?? error) })
      response.end()
    },
    complete: () => response.end(),
  })
})
server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ port: server.address().port })))
process.stdin.on('end', () => process.exit(0)).resume()
`

function install(): string {
  const folder = process.argv[2] ?? mkdtempSync(join(tmpdir(), 'polylog-mastra-'))
  mkdirSync(folder, { recursive: true })
  if (!existsSync(join(folder, 'node_modules', '@ag-ui', 'mastra'))) {
    process.stdout.write(`Installing ${packages.join(' ')} into ${folder} …\n`)
    writeFileSync(join(folder, 'package.json'), '{"private":true}')
    const options = ['--no-audit', '--no-fund', '--legacy-peer-deps', '--ignore-scripts']
    execFileSync('npm', ['install', ...options, ...packages], { cwd: folder, stdio: 'inherit' })
  }
  writeFileSync(join(folder, 'agent.mjs'), agentCode)
  return folder
}

async function startAgent(folder: string, providerUrl: string) {
  const child = spawn(process.execPath, ['agent.mjs'], {
    cwd: folder,
    env: { ...process.env, OPENAI_BASE_URL: providerUrl },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  for await (const line of createInterface({ input: child.stdout })) {
    if (!line.startsWith('{"port"')) continue
    const { port } = JSON.parse(line) as { port: number }
    return {
      url: `http://127.0.0.1:${port}/`,
      async stop() {
        const exited = once(child, 'exit')
        child.kill()
        await exited
      },
    }
  }
  throw new Error('the Mastra agent did not start')
}

const folder = install()
const provider = await startFakeProvider()
const agent = await startAgent(folder, provider.baseUrl)
const agents = agentFolder()
agents.agent(
  'mastra',
  {
    prompt: { systemTemplate: 'system.mustache' },
    validation: undefined,
    engine: { kind: 'ag-ui', url: agent.url },
  },
  { 'system.mustache': ' ' },
)
const server = await startTestServer({ POLYLOG_AGENTS_DIR: agents.path, POLYLOG_ENGINE_FALLBACK: 'none' }, provider)

try {
  await provider.script([calls(['add', { a: 1, b: 2 }, 'call_1']), says('It is ', 'three.')], 'What is')
  const conversationId = 'with-mastra'
  const frames = await server.chatToEnd('ada', { input: 'What is 1 + 2?', agentId: 'mastra', conversationId })
  show('A tool of the remote agent', frames)
  assert.equal(endOf(frames).output, 'It is three.')
  assert.match(JSON.stringify(frames.map(({ json }) => json)), /"output":\{"sum":3\}/)

  await provider.script([says('You asked for 1 + 2.')], 'What did')
  show('The next turn', await server.chatToEnd('ada', { input: 'What did I ask?', agentId: 'mastra', conversationId }))
  const [second] = await server.asked('What did')
  assert.match(JSON.stringify(second?.body.messages), /What is 1 \+ 2\?.*It is three\./)

  for (const decision of ['confirm', 'reject'] as const) {
    const order = decision === 'confirm' ? 7 : 8
    await provider.script(
      [calls(['refund', { order }, `call_${order}`]), says('The refund is settled.')],
      `order ${order}`,
    )
    const stream = await server.chat('ada', { input: `Refund order ${order}`, agentId: 'mastra' })
    const { confirmationId } = (await stream.waitFor(toolState('awaiting_input'))).json.data
    await server.reaches('ada', String(stream.headers['x-run-id']), 'awaiting_input')
    await server.call('POST', `/v1/tool-confirmations/${confirmationId}/${decision}`, { user: 'ada' })
    await stream.ended()
    show(`A suspended tool: ${decision}`, stream.frames)
    assert.equal(endOf(stream.frames).output, 'The refund is settled.')
    assert.equal(toolStatuses(stream.frames).at(-1), decision === 'confirm' ? 'succeeded' : 'cancelled')
  }
  process.stdout.write('\nAll of it works with a real Mastra agent.\n')
} finally {
  await server.close()
  agents.dispose()
  await Promise.all([agent.stop(), provider.stop()])
}

function show(title: string, frames: readonly { json: { event: string; data: unknown } }[]): void {
  process.stdout.write(`\n== ${title}\n`)
  for (const { json } of frames) process.stdout.write(`${json.event} ${JSON.stringify(json.data)}\n`)
}
