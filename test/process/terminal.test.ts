// Ctrl-C in a real terminal: the terminal signals npm and the server, and npm signals the server
// again. The server must treat them as one signal, finish in order, and end streams cleanly.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { until } from '../support/test-server.ts'
import { openStream } from '../support/sse.ts'
import { hasTerminal, inTerminal } from '../support/terminal.ts'

const root = join(import.meta.dirname, '../..')
const canRun = hasTerminal && spawnSync('npm', ['--version']).status === 0

describe('the start in a terminal', { skip: canRun ? false : 'needs python3 and npm' }, () => {
  test('shows one screen: the address, the model, the data and what to try, and the settings only at level debug', async () => {
    for (const level of ['info', 'debug']) {
      const data = mkdtempSync(join(tmpdir(), 'polylog-terminal-'))
      const session = inTerminal(['npm', 'start'], root, { PORT: '0', POLYLOG_DATA: data, POLYLOG_LOG: level })
      try {
        await until('the screen', () => /Ctrl-C stops it/.test(session.shown()) || undefined)
        const shown = session.shown()
        assert.match(shown, /Polylog serves at (http:\/\/127\.0\.0\.1:\d+) [^]*console +\1\/\r\n[^]*API page +\1\/docs/)
        assert.match(shown, /model +demo\/demo[^]*data +\S+polylog-terminal-[^]*access +open[^]*npx polylog chat/)
        assert.equal(/settings/.test(shown), level === 'debug')
        if (level === 'info') assert.doesNotMatch(shown, /Server listening|demo model answers/)
        session.type('\u0003')
        assert.equal(await session.exited, 0)
      } finally {
        session.child.kill('SIGKILL')
        rmSync(data, { recursive: true, force: true })
      }
    }
  })
})

describe('Ctrl-C in a terminal', { skip: canRun ? false : 'needs python3 and npm' }, () => {
  for (const command of [
    ['npm', 'start'],
    ['npm', 'run', 'dev'],
  ])
    test(`under ${command.join(' ')} stops in order: streams end cleanly, and the exit code is 0`, async () => {
      const data = mkdtempSync(join(tmpdir(), 'polylog-terminal-'))
      const session = inTerminal(command, root, { PORT: '0', POLYLOG_DATA: data, POLYLOG_DEMO_PACE_MS: '50' })
      try {
        const address = await until('the server to serve', () => /serves at (http:\S+)/.exec(session.shown())?.[1])
        const stream = await openStream(`${address}/v1/agent/chat`, { body: { input: 'count to 5000' } })
        await stream.waitFor((frame) => frame.json.event === 'agent.delta')

        session.type('\u0003')
        const [code, { cut }] = await Promise.all([session.exited, stream.ended()])

        assert.equal(code, 0, session.shown())
        assert.equal(cut, false, 'the stream was ended, and not cut off')
        assert.equal(
          stream.frames.some((frame) => frame.json.event === 'agent.end'),
          false,
          'the run goes on later',
        )
        assert.match(session.shown(), /stopping: [\s\S]*stopped/)
        assert.doesNotMatch(session.shown(), /ending at once/)
      } finally {
        session.child.kill('SIGKILL')
        rmSync(data, { recursive: true, force: true })
      }
    })
})
