// The snippets of docs/clients.md run as they are printed, each with the real library in a process of its own, against a
// server with the demo model.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type Polylog, startPolylog } from '../support/polylog.ts'

const root = join(import.meta.dirname, '../..')
const page = readFileSync(join(root, 'docs/clients.md'), 'utf8')
const snippets = [...page.matchAll(/^```js\n([^]*?)^```$/gm)].map(([, code = '']) => code)
let server: Polylog
let folder: string

before(async () => {
  server = await startPolylog()
  // Below node_modules, so that the libraries are found.
  const cache = join(root, 'node_modules/.cache')
  mkdirSync(cache, { recursive: true })
  folder = mkdtempSync(join(cache, 'polylog-clients-page-'))
})
after(async () => {
  await server.dispose()
  rmSync(folder, { recursive: true, force: true })
})

test('docs/clients.md has a snippet for each library', () => assert.equal(snippets.length, 8))

for (const [index, code] of snippets.entries()) {
  test(`the snippet of docs/clients.md with ${/from '([^']+)'/.exec(code)?.[1]} (${index + 1}) shows the answer`, async () => {
    const file = join(folder, `snippet-${index}.mjs`)
    const local = code
      .replaceAll('http://localhost:3000', server.baseUrl)
      .replaceAll("'@polylog/client'", `'${join(root, 'client/src/index.ts')}'`)
    writeFileSync(file, local)
    const child = spawn(process.execPath, [file], { stdio: ['ignore', 'pipe', 'pipe'] })
    let said = ''
    let problems = ''
    child.stdout.on('data', (part) => (said += String(part)))
    child.stderr.on('data', (part) => (problems += String(part)))
    const exitCode = await new Promise((done) => child.once('close', done))
    assert.equal(exitCode, 0, problems)
    assert.match(said, /current_time answered: .*\d{4}-\d\d-\d\dT/)
  })
}
