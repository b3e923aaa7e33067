// The snippets of docs/clients/openai.md, run as they are, each in a process of its own, with both
// versions of the client.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import { calls, type Json, says, sharedTestServer } from '../support/test-server.ts'

const root = join(import.meta.dirname, '../..')
const server = sharedTestServer()
const execute = promisify(execFile)

/** The snippet that contains `word`. */
function snippetWith(language: 'js' | 'sh', word: string): string {
  const text = readFileSync(join(root, 'docs/clients/openai.md'), 'utf8')
  const blocks = text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'gm'))
  const found = [...blocks].map(([, code]) => code ?? '').filter((code) => code.includes(word))
  assert.equal(found.length, 1, `one snippet has ${word}`)
  return (found[0] ?? '').replaceAll('http://localhost:3000', server.polylog.baseUrl)
}

for (const client of ['openai', 'openai-6']) {
  /** What the snippet prints. */
  async function printed(word: string): Promise<string> {
    const code = snippetWith('js', word).replaceAll(/from 'openai(?=['/])/g, `from '${client}`)
    const { stdout } = await execute(process.execPath, ['--input-type=module', '--eval', code], { cwd: root })
    return stdout
  }

  describe(`docs/clients/openai.md with ${client}`, () => {
    test('a first answer, and a stream', async () => {
      await server.provider.script([calls(['current_time', {}]), says('It is late.')], 'what time is it')
      await server.provider.script([says('Once ', 'upon ', 'a time.')], 'tell me a story')

      assert.equal(await printed('what time is it'), 'It is late.\n')
      assert.equal(await printed('tell me a story'), 'Once upon a time.')
    })

    test('a function of the program', async () => {
      await server.provider.script(
        [calls(['weather', { city: 'Oslo' }]), says('It is 4 degrees.')],
        'how warm is it in Oslo',
      )

      assert.equal(await printed('runTools'), 'It is 4 degrees.\n')
    })

    test('consent', async () => {
      await server.provider.script(
        [calls(['remember_note', { text: 'buy milk' }]), says('Noted.')],
        'remember to buy milk',
      )

      assert.equal(await printed('mcp_approval_response'), 'remember_note {"text":"buy milk"}\nNoted.\n')
    })

    test('a structured answer', async () => {
      await server.provider.script([says('{"hour":9,"minute":41}')], 'when does the train leave')

      assert.equal(await printed('zodTextFormat'), '{ hour: 9, minute: 41 }\n')
    })

    test('a response in the background', async () => {
      await server.provider.script([says('It ', 'is ', 'done.')], 'write a long report')

      assert.equal(await printed('starting_after'), 'It is done.\n')
    })
  })
}

test('curl', async () => {
  await server.provider.script([says('It is late.')], 'what time is it')

  const { stdout } = await execute('bash', ['-c', snippetWith('sh', 'curl')])

  const { choices } = JSON.parse(stdout) as Json
  assert.equal(choices[0].message.content, 'It is late.')
})
