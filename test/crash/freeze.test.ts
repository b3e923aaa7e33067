// A run that freezes or kills the process does so twice at most, and the other runs are not
// affected. Real processes, a real watchdog.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { databaseSettings } from '../support/test-database.ts'

type Line = Record<string, unknown> & { run?: string; innocent?: string; ended?: string; code?: string | null }

const server = fileURLToPath(new URL('./freezing-server.ts', import.meta.url))
const folders: string[] = []
after(() => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })))

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'polylog-freeze-'))
  folders.push(folder)
  return folder
}

/** One life of the process: what it said, and how it ended. */
async function life(
  folder: string,
  deed: string,
  ...runs: string[]
): Promise<{ lines: Line[]; end: string; errors: string }> {
  const child = spawn(process.execPath, [server, folder, deed, ...runs], {
    env: { ...process.env, ...(await databaseSettings(folder)) },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  let errors = ''
  child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  const end = await new Promise<string>((resolve) =>
    child.on('close', (code, signal) => resolve(signal ?? String(code))),
  )
  const lines = said
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Line)
  return { lines, end, errors }
}

describe('a run that takes the process down', () => {
  for (const [deed, end] of [
    ['spin', 'SIGKILL'],
    ['exit', '7'],
    ['throw', '1'],
  ] as const) {
    it(`by its tool (${deed}) is ended when it has done so twice`, async () => {
      const folder = newFolder()
      const first = await life(folder, deed)
      const { run = '', innocent = '' } = first.lines.find((line) => line.run !== undefined) ?? {}
      assert.equal(first.end, end, first.errors)
      assert.ok(existsSync(join(folder, 'watchdog-mark.json')))
      if (deed === 'spin')
        assert.match(first.errors, new RegExp(`"run":"${run}","place":"tool bad \\(c\\)".*blocked for`))

      assert.equal((await life(folder, deed, run, innocent)).end, end)
      const third = await life(folder, deed, run, innocent)

      const blamed = third.lines.find(
        (line) => line.error === 'the last process did not survive; this was on its main thread',
      )
      assert.deepEqual(blamed?.activity, { run, place: 'tool bad (c)' })
      const last = third.lines.at(-1)
      assert.deepEqual([last?.ended, last?.code, third.end], ['failed', 'run_unrecoverable', '0'])
      assert.equal(last?.innocent, 'running', 'the run beside it goes on')
      assert.ok(!existsSync(join(folder, 'watchdog-deaths.json')), 'every death is in its journal')
    })
  }

  it('for a moment only is named in the log, and does not count as a crash', async () => {
    const folder = newFolder()

    const { lines, end, errors } = await life(folder, 'pause')

    const { run } = lines.find((line) => line.run !== undefined) ?? {}
    const warnings = lines.filter((line) =>
      /^a request or run blocked the event loop for \d+ ms$/.test(String(line.warn)),
    )
    // On a busy machine, loading the server blocks as well, before there is a run.
    const warning = warnings.find((line) => line.run !== undefined)
    assert.deepEqual([warning?.run, warning?.place], [run, 'tool bad (c)'], errors)
    assert.match(String(warning?.code), /freezing-server/)
    assert.deepEqual([lines.at(-1)?.ended, end], ['succeeded', '0'])
    assert.ok(!existsSync(join(folder, 'watchdog-mark.json')))
  })
})
