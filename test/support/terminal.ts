// A real terminal for tests: a pseudo-terminal of Python, because Node has none.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'

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

export const hasTerminal = spawnSync('python3', ['-c', 'import pty, os; os.waitstatus_to_exitcode']).status === 0

export type TerminalSession = {
  shown(): string
  type(keys: string): void
  exited: Promise<number | null>
  child: ChildProcess
}

export function inTerminal(command: string[], cwd: string, environment: Record<string, string>): TerminalSession {
  const child = spawn('python3', ['-c', terminal, ...command], {
    cwd,
    env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', TERM: 'dumb', NO_COLOR: '1', ...environment },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let shown = ''
  child.stdout.on('data', (part: Buffer) => (shown += part.toString()))
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve))
  return { shown: () => shown, type: (keys) => void child.stdin.write(keys), exited, child }
}
