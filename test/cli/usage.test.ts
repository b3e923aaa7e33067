// How the command line is used wrongly, and how it helps: exit codes and sentences.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { exitCodes } from '../../src/cli/exit-codes.ts'
import { closedAddress } from '../support/closed-port.ts'
import { polylog } from '../support/command-line.ts'

const page = readFileSync(join(import.meta.dirname, '../../docs/command-line.md'), 'utf8')

describe('the command line', () => {
  test('lists its commands, and each has a help with examples', async () => {
    const { code, stdout } = await polylog(['--help'])
    assert.equal(code, 0)
    const commands = [...(stdout.split('Commands:')[1] ?? '').matchAll(/^ {2}([a-z]+) /gm)].map(
      ([, name]) => name ?? '',
    )
    assert.ok(commands.includes('serve') && commands.includes('runs'), stdout)
    for (const command of commands.filter((name) => name !== 'help')) {
      const help = await polylog(['help', command])
      assert.deepEqual([help.code, help.stderr], [0, ''])
      assert.match(help.stdout, /Examples:\n {2}\$ .*polylog/, command)
      assert.match(page, new RegExp(`^\\|.*\`${command}\`.*\\|.*\\|$`, 'm'), `docs/command-line.md has ${command}`)
    }
    const documented = [...page.matchAll(/^\| (\d) \| /gm)].map(([, code]) => Number(code))
    assert.deepEqual(documented, Object.values(exitCodes))
  })

  test('suggests the command that was meant, with exit code 2', async () => {
    const { code, stderr, stdout } = await polylog(['rusn'])
    assert.deepEqual([code, stdout, stderr], [2, '', 'polylog: There is no command rusn. Did you mean runs?\n'])
    const help = await polylog(['help', 'rusn'])
    assert.deepEqual([help.code, help.stderr], [2, stderr])
  })

  test('an unknown option and a wrong value are exit code 2, and with --json the error is JSON', async () => {
    assert.deepEqual((await polylog(['runs', '--colour'])).code, 2)
    const { code, stderr } = await polylog(['runs', '--limit', 'many', '--json'])
    assert.equal(code, 2)
    assert.match((JSON.parse(stderr) as { error: { message: string } }).error.message, /whole number above 0/)
  })

  test('a server that is not there is exit code 4, and no address at all is exit code 2', async () => {
    const gone = await polylog(['runs', '--url', await closedAddress()])
    assert.equal(gone.code, 4)
    assert.match(gone.stderr, /^polylog: The server cannot be reached\. Is it running\?/)
    assert.equal((await polylog(['runs', '--url', 'localhost:3000'])).code, 2)
    // It cannot be sent, which is not the fault of the server.
    const token = await polylog(['runs', '--url', await closedAddress(), '--token', '密钥'])
    assert.equal(token.code, 2)
    assert.match(token.stderr, /^polylog: The token has characters that no API key or token has\./)
  })
})
