// The snippets of docs/clients/ag-ui.md, run as they are, each in a process of its own.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { calls, says, sharedTestServer } from '../support/test-server.ts'

const root = join(import.meta.dirname, '../..')
const server = sharedTestServer()

/** The snippet that contains `word`. */
function snippetWith(word: string): string {
  const blocks = readFileSync(join(root, 'docs/clients/ag-ui.md'), 'utf8').matchAll(/^```js\n([\s\S]*?)^```$/gm)
  const found = [...blocks].map(([, code]) => code ?? '').filter((code) => code.includes(word))
  assert.equal(found.length, 1, `one snippet has ${word}`)
  return found[0] ?? ''
}

async function run(snippet: string): Promise<string> {
  const code = snippet.replaceAll('http://localhost:3000', server.polylog.baseUrl)
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', code], { cwd: root })
  return stdout
}

test('the first question is answered, and a second screen attaches to its thread', async () => {
  await server.provider.script([calls(['current_time', {}]), says('It is ', 'late.')], 'what time is it')

  assert.equal(await run(snippetWith('what time is it')), 'It is late.\nassistant, tool, assistant\n')

  assert.match(
    await run(snippetWith('class ThreadAgent')),
    /^user: what time is it\nassistant: \(calls\)\ntool: .*\nassistant: It is late\.\n$/,
  )
})

test('a call is allowed', async () => {
  await server.provider.script([calls(['remember_note', { text: 'buy milk' }]), says('Noted.')], 'remember to buy milk')

  assert.equal(await run(snippetWith('pendingInterrupts')), 'allowed: Save a note: “buy milk”\nNoted.\n')
})

test('a tool of the client is run', async () => {
  await server.provider.script([calls(['get_location', {}]), says('You are in Oslo.')], 'where am I')

  assert.equal(await run(snippetWith('get_location')), 'You are in Oslo.\n')
})
