// The snippets of docs/clients/a2a.md and docs/clients/langgraph.md, run as they are, each in a process of its own.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { calls, says, sharedTestServer } from '../support/test-server.ts'

const root = join(import.meta.dirname, '../..')
const server = sharedTestServer()

/** The code blocks of a page, with the address of this server. */
function blocks(page: string, language: string): string[] {
  const text = readFileSync(join(root, 'docs/clients', page), 'utf8')
  const found = text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm'))
  return [...found].map(([, code = '']) => code.replaceAll('http://localhost:3000', server.polylog.baseUrl))
}

async function run(code: string | undefined): Promise<string> {
  assert.ok(code !== undefined)
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', code], { cwd: root })
  return stdout
}

test('A2A 1.0: the answer is streamed', async () => {
  await server.provider.script([says('It is ', 'late.')], 'what time is it')

  assert.equal(await run(blocks('a2a.md', 'js')[0]), '\nstate 2\nIt is late.\nstate 3\n')
})

test('A2A 0.3: the answer is there when the task is', async () => {
  await server.provider.script([says('It is ', 'late.')], 'what time is it')

  const code = blocks('a2a.md', 'js')[1]?.replace('@a2a-js/sdk/client', 'a2a-sdk-0/client')
  assert.equal(await run(code), "completed [ 'It is late.' ]\n")
})

test('A2A with curl', async () => {
  await server.provider.script([says('It is ', 'late.')], 'what time is it')

  const { stdout } = await promisify(execFile)('bash', ['-c', blocks('a2a.md', 'sh')[0] ?? ''])
  assert.match(stdout, /^id: 1\ndata: \{"jsonrpc":"2.0","id":1,"result":\{"task":.*"state":"TASK_STATE_COMPLETED"/s)
})

test('LangGraph: a thread and a streamed run', async () => {
  await server.provider.script([says('It is ', 'late.')], 'what time is it')

  assert.equal(await run(blocks('langgraph.md', 'js')[0]), 'It is late.\n 2 messages\n')
})

test('LangGraph: an interrupt and its answer', async () => {
  await server.provider.script([calls(['remember_note', { text: 'buy milk' }]), says('Noted.')], 'remember to buy milk')

  assert.equal(await run(blocks('langgraph.md', 'js')[1]), 'asks: Save a note: “buy milk”\nNoted.\n')
})
