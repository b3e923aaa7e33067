// The examples of the client's README run as they are printed, each as a program of its own against a server with the
// demo model. (That they compile against the built package is tested with the types.)

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type Polylog, startPolylog } from '../support/polylog.ts'

const client = join(import.meta.dirname, '../../client')
const examples = [...readFileSync(join(client, 'README.md'), 'utf8').matchAll(/```ts\n([^]*?)```/g)]
let server: Polylog
let folder: string

before(async () => {
  server = await startPolylog()
  folder = mkdtempSync(join(tmpdir(), 'polylog-readme-'))
})
after(async () => {
  await server.dispose()
  rmSync(folder, { recursive: true, force: true })
})

/** What the programs print, in the order of the README. */
const printed = [
  /^queued 0\n[^]*\nsucceeded 3\ncurrent_time answered: .*\d{4}-\d\d-\d\dT/,
  /^succeeded\n$/,
  /the key is under the mat[^]*\nsucceeded\n$/,
  /working\n[^]*ready\n\[[^]*\]\n$/,
  // How fast the frames arrive depends on the machine.
  /^(true|false) \d+\n/,
]

test('the README of the client has these examples', () => assert.equal(examples.length, printed.length))

for (const [index, [, code = '']] of examples.entries()) {
  test(`example ${index + 1} of the README of the client does what it shows`, async () => {
    const file = join(folder, `example-${index}.ts`)
    const local = code
      .replaceAll('http://localhost:3000', server.baseUrl)
      .replaceAll(/'@polylog\/client(?:\/(\w+))?'/g, (_, entry = 'index') => `'${join(client, 'src', `${entry}.ts`)}'`)
    writeFileSync(file, local)
    const child = spawn(process.execPath, [file], { stdio: ['ignore', 'pipe', 'pipe'] })
    let said = ''
    let problems = ''
    child.stdout.on('data', (part) => (said += String(part)))
    child.stderr.on('data', (part) => (problems += String(part)))
    const exitCode = await new Promise((done) => child.once('close', done))
    assert.equal(exitCode, 0, problems)
    assert.match(said, printed[index] ?? /^$/)
  })
}
