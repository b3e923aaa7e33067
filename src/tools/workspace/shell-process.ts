// One command, in its own process group. However it ends (by itself, at its time limit, by a
// cancel, or because the server died), the whole group is killed. If the server is alive and
// there is no sandbox, it also kills processes that left the group: it finds them by the
// mark of this shell in their environment.

import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { constants } from 'node:os'
import type { FileHandle } from 'node:fs/promises'
import type { Clock, Timer } from '../../kit/clock.ts'
import { pathOf } from './descriptors.ts'
import { ShellOutput } from './shell-output.ts'
import { type Sandbox, shellEnvironment } from './shell-sandbox.ts'

/**
 * The wrapper script: closes inherited file descriptors, starts a guard process and then execs the command. The guard
 * reads a pipe from the server; when the pipe closes, the server is gone, and the guard kills the process group.
 */
const guarded = [
  'ulimit -c 0',
  'for open in /proc/self/fd/*; do open=${open##*/}; if (( open > 3 )); then exec {open}>&-; fi; done',
  '{ read -r _ <&3; kill -KILL 0; } >/dev/null 2>&1 & exec "$@" 3<&-',
].join('\n')

/** How long we wait for stdout and stderr to close after the command has ended. */
const pipesMs = 500

export type ShellStart = {
  cmd: string
  sandbox: Sandbox
  /** The open working directory; `directory` is its path. */
  handle: FileHandle
  directory: string
  /** Unique for each process; see `shellEnvironment`. */
  mark: string
  clock: Clock
  onText?: (text: string) => void
}

export class ShellProcess {
  readonly output = new ShellOutput()
  /** Resolves with the exit code when the output is closed; 128 plus the signal's number if a signal ended the command. */
  readonly ended: Promise<number>
  code: number | null = null
  private readonly child: ChildProcess
  private readonly mark: string | null

  constructor({ cmd, sandbox, handle, directory, mark, clock, onText }: ShellStart) {
    // A sandbox has its own process namespace, so no process can outlive it and the mark is not needed.
    this.mark = sandbox.kind === 'none' ? mark : null
    this.child = spawn('/bin/bash', ['-c', guarded, 'polylog', ...sandbox.command(cmd, directory)], {
      // The open directory and not its path, because the path may refer to another directory by now.
      cwd: pathOf(handle),
      env: shellEnvironment(directory, mark),
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
      detached: true,
    })
    for (const from of ['stdout', 'stderr'] as const) {
      this.child[from]?.on('data', (bytes: Uint8Array) => {
        const text = this.output.add(from, bytes)
        onText?.(text)
      })
    }
    // The guard's pipe reports an error when the command is gone; the exit handler covers that.
    this.child.stdio[3]?.on('error', () => {})
    let pipes: Timer | null = null
    this.ended = new Promise<number>((resolve, reject) => {
      this.child.on('error', reject)
      // Background children keep the output pipes open; killing them lets the pipes close.
      this.child.on('exit', () => {
        this.kill()
        // A process that left the group and cleared its mark may still hold the pipes; we stop waiting for it.
        pipes = clock.after(pipesMs, () => {
          this.child.stdout?.destroy()
          this.child.stderr?.destroy()
        })
      })
      this.child.on('close', (code, signal) => {
        pipes?.cancel()
        this.code = code ?? 128 + (signal === null ? 0 : constants.signals[signal])
        resolve(this.code)
      })
    })
    this.ended.catch(() => {})
  }

  /** Kills the process group at once, and all processes with this shell's mark. */
  kill(): void {
    const group = this.child.pid
    if (group === undefined || this.code !== null) return
    try {
      process.kill(-group, 'SIGKILL')
    } catch {
      // The group is already empty.
    }
    if (this.mark !== null) killMarked(this.mark)
  }
}

/** Takes several rounds, because a process may start another one just before it is killed. */
function killMarked(mark: string): void {
  for (let round = 0; round < 5; round += 1) {
    const found = marked(mark)
    if (found.length === 0) return
    for (const pid of found) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // The process has already ended.
      }
    }
  }
}

function marked(mark: string): number[] {
  const line = `\0POLYLOG_SHELL=${mark}\0`
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return `\0${readFileSync(`/proc/${pid}/environ`, 'latin1')}\0`.includes(line)
      } catch {
        return false
      }
    })
    .map(Number)
}
