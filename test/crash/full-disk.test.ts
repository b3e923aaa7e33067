// A disk that is full for a while: callers get an error that says so, nothing that was shown or
// acknowledged is lost, and runs go on by themselves when there is space again. Needs a small
// file system of its own, so it is skipped if none can be mounted.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { type FakeProvider, startFakeProvider } from '../support/fake-provider.ts'
import { type PolylogProcess, startPolylogProcess } from '../support/polylog-process.ts'
import { openStream } from '../support/sse.ts'
import { onlyOnSqlite } from '../support/test-database.ts'
import { until } from '../support/until.ts'

const folder = mkdtempSync(join(tmpdir(), 'polylog-disk-'))
const disk = join(folder, 'disk')
const ballast = join(disk, 'ballast')
mkdirSync(disk)
const skip = onlyOnSqlite('it fills the disk of the file') || mountSmallDisk()

/** False if it worked, otherwise why it did not. */
function mountSmallDisk(): string | false {
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', disk])
  if (mounted.status === 0) return false
  return `a small file system cannot be mounted here: ${String(mounted.stderr ?? mounted.error).trim()}`
}

/** Takes all the room that is left, to the last page. */
function fill(): void {
  const file = openSync(ballast, 'a')
  try {
    for (const size of [65_536, 4096, 1]) {
      const block = Buffer.alloc(size)
      try {
        for (;;) if (writeSync(file, block) < size) break
      } catch (error) {
        assert.equal((error as { code?: string }).code, 'ENOSPC')
      }
    }
  } finally {
    closeSync(file)
  }
}

describe('a full disk', { skip }, () => {
  let provider: FakeProvider
  let server: PolylogProcess

  before(async () => {
    provider = await startFakeProvider()
    const environment = {
      OPENAI_API_KEY: 'fake-key',
      OPENAI_BASE_URL: provider.baseUrl,
      POLYLOG_MODEL: 'openai/fake',
      POLYLOG_PING_MS: '600000',
    }
    server = await startPolylogProcess(environment, join(disk, 'data'))
  })
  after(async () => {
    await server?.dispose()
    await provider?.stop()
    if (skip === false) assert.equal(spawnSync('umount', [disk]).status, 0)
    rmSync(folder, { recursive: true, force: true })
  })

  it('is reported clearly, nothing that was shown is lost, and the run that it hit goes on', async () => {
    const answer = { text: ['two ', 'three.'] }
    await provider.script(
      [
        [{ text: 'One ' }, { stall: true }, answer, { finish: 'stop' }],
        ...Array.from({ length: 5 }, () => [{ text: 'One ' }, answer, { finish: 'stop' }]),
      ],
      'Count.',
    )
    const stream = await openStream(`${server.baseUrl}/v1/agent/chat`, {
      body: { prompt: 'Count.' },
      headers: { 'idempotency-key': 'k' },
    })
    const runId = String(stream.headers['x-run-id'])
    await stream.waitFor((frame) => frame.json.data.delta === 'One ')

    fill()
    const refused = await fetch(`${server.baseUrl}/v1/agent/chat`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ prompt: 'Another.' }),
    })
    assert.equal(refused.status, 503)
    const problem = (await refused.json()) as { code: string; message: string }
    assert.equal(problem.code, 'store_unavailable')
    assert.match(problem.message, /disk .*full.*Free some space/)
    assert.equal((await fetch(`${server.baseUrl}/v1/health`)).status, 503)
    await provider.release()
    await until('the run notices', async () => server.log().includes('the journal could not be written'))
    const shown = stream.text()
    assert.equal(shown.includes('two '), false, 'nothing is shown that is not stored')
    // Reading still works.
    const status = (await (await fetch(`${server.baseUrl}/v1/agent/runs/${runId}`)).json()) as { status: string }
    assert.equal(status.status, 'running')

    rmSync(ballast)
    await stream.waitFor((frame) => frame.json.event === 'agent.end')
    await stream.ended()

    assert.equal((await fetch(`${server.baseUrl}/v1/health`)).status, 200)
    const whole = stream.text()
    assert.ok(whole.startsWith(shown))
    assert.equal(deltas(whole), 'One two three.')
    assert.match(whole, /"status":"succeeded"/)
    await server.kill()
    server = await server.restartProcess()
    const replay = await openStream(`${server.baseUrl}/v1/agent/runs/${runId}/stream`)
    await replay.ended()
    assert.equal(replay.text(), whole, 'after a kill it is all there')
    const runs = (await (await fetch(`${server.baseUrl}/v1/agent/runs`)).json()) as unknown[]
    assert.equal(runs.length, 1, 'the refused one left no trace')
  })

  it('at the start is reported as a sentence without a stack, and the next start with free space works', async () => {
    await server.kill()
    fill()

    await assert.rejects(server.restartProcess(), (error: Error) => {
      assert.match(error.message, /Polylog cannot start\. .*full/)
      assert.doesNotMatch(error.message, /\n\s+at /)
      return true
    })

    rmSync(ballast)
    server = await server.restartProcess()
    assert.equal((await fetch(`${server.baseUrl}/v1/health`)).status, 200)
  })
})

function deltas(text: string): string {
  return [...text.matchAll(/"delta":"([^"]*)"/g)].map((match) => match[1]).join('')
}
