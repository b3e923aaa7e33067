// Ctrl-C in a real terminal: the terminal signals npm and the server, and npm signals the server
// again. The server must treat them as one signal, finish in order, and end streams cleanly. The
// terminal is a pseudo-terminal of Python, because Node has none.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { until } from '../support/test-server.ts'
import { openStream } from '../support/sse.ts'

const root = join(import.meta.dirname, '../..')

/** Runs its arguments in a terminal of their own; what it reads is typed there, and what is shown there it prints. */
const terminal = `
import os, pty, select, sys
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
keys = 0
while True:
    ready, _, _ = select.select([fd] + ([] if keys is None else [keys]), [], [])
    if fd in ready:
        try:
            shown = os.read(fd, 65536)
        except OSError:
            break
        if not shown:
            break
        os.write(1, shown)
    if keys in ready:
        typed = os.read(keys, 1024)
        if typed:
            os.write(fd, typed)
        else:
            keys = None
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status) & 255)
`

const hasTerminal =
  spawnSync('python3', ['-c', 'import pty, os; os.waitstatus_to_exitcode']).status === 0 &&
  spawnSync('npm', ['--version']).status === 0

type Session = { shown(): string; type(keys: string): void; exited: Promise<number | null>; child: ChildProcess }

function inTerminal(command: string[], environment: Record<string, string>): Session {
  const child = spawn('python3', ['-c', terminal, ...command], {
    cwd: root,
    env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', TERM: 'dumb', NO_COLOR: '1', ...environment },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let shown = ''
  child.stdout.on('data', (part: Buffer) => (shown += part.toString()))
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve))
  return { shown: () => shown, type: (keys) => void child.stdin.write(keys), exited, child }
}

describe('Ctrl-C in a terminal', { skip: hasTerminal ? false : 'needs python3 and npm' }, () => {
  for (const command of [
    ['npm', 'start'],
    ['npm', 'run', 'dev'],
  ])
    test(`under ${command.join(' ')} stops in order: streams end cleanly, and the exit code is 0`, async () => {
      const data = mkdtempSync(join(tmpdir(), 'polylog-terminal-'))
      const session = inTerminal(command, { PORT: '0', POLYLOG_DATA: data, POLYLOG_DEMO_PACE_MS: '50' })
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
