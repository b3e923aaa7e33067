// The sandbox and the environment of a command. The environment is built from scratch: a
// command never sees a variable of the server.
//
// bwrap shows a command the system's programs, its working directory and nothing
// else, without a network. unshare only hides the other processes (and with them
// the server's environment). With neither, a command can do all that the server's
// user can; docs/workspace.md says so to operators.

import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'

export type SandboxKind = 'bwrap' | 'unshare' | 'none'

export type Sandbox = {
  kind: SandboxKind
  /** The whole command line for `cmd`, to be run in `directory`. */
  command(cmd: string, directory: string): string[]
}

const searchPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** Every process that the command starts inherits `mark`, so that processes which left the group can be found. */
export function shellEnvironment(directory: string, mark: string): Record<string, string> {
  return { PATH: searchPath, HOME: directory, PWD: directory, LANG: 'C.UTF-8', TERM: 'dumb', POLYLOG_SHELL: mark }
}

const shell = (cmd: string) => ['/bin/bash', '--noprofile', '--norc', '-c', cmd]

const isolation = '--unshare-all --die-with-parent --new-session --proc /proc --dev /dev --tmpfs /tmp'.split(' ')
const system = ['/usr', '/bin', '/sbin', '/lib', '/lib64', '/lib32']
const systemSettings = ['alternatives', 'ld.so.cache', 'passwd', 'group', 'ssl/certs', 'localtime']
const readable = [...system, ...systemSettings.map((name) => `/etc/${name}`)]
const hiding = '--user --map-current-user --pid --fork --mount-proc --ipc --kill-child'.split(' ')

const sandboxes: Record<SandboxKind, Sandbox> = {
  bwrap: {
    kind: 'bwrap',
    command(cmd, directory) {
      const readOnly = readable.flatMap((path) => ['--ro-bind-try', path, path])
      const own = ['--bind', directory, directory, '--chdir', directory]
      return ['bwrap', ...isolation, ...readOnly, ...own, '--', ...shell(cmd)]
    },
  },
  unshare: { kind: 'unshare', command: (cmd) => ['unshare', ...hiding, '--', ...shell(cmd)] },
  none: { kind: 'none', command: (cmd) => shell(cmd) },
}

/**
 * Tests each sandbox with a command that does nothing, because an installed sandbox may still be forbidden. Null if the
 * requested one does not work.
 */
export function findSandbox(
  wanted: 'auto' | SandboxKind,
  works: (sandbox: Sandbox) => boolean = tryOut,
): Sandbox | null {
  if (wanted === 'none') return sandboxes.none
  const candidates = wanted === 'auto' ? [sandboxes.bwrap, sandboxes.unshare] : [sandboxes[wanted]]
  return candidates.find(works) ?? (wanted === 'auto' ? sandboxes.none : null)
}

function tryOut(sandbox: Sandbox): boolean {
  const directory = '/usr'
  const [program = '', ...rest] = sandbox.command('exit 7', directory)
  const { status } = spawnSync(program, rest, {
    cwd: directory,
    env: { PATH: searchPath },
    stdio: 'ignore',
    timeout: 5000,
  })
  return status === 7
}

export function hasShell(): boolean {
  return process.platform === 'linux' && existsSync('/bin/bash')
}
