// One command as a process group of its own. However it ends (by itself, at its
// time limit, by a cancel, or because the server died), nothing of it stays: the
// whole group is killed, and then whatever left the group but still carries the
// mark of this shell in its environment.

import { type ChildProcess, spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { constants } from 'node:os'
import type { FileHandle } from 'node:fs/promises'
import type { Clock, Timer } from '../../kit/clock.ts'
import { pathOf } from './descriptors.ts'
import { ShellOutput } from './shell-output.ts'
import { type Sandbox, shellEnvironment } from './shell-sandbox.ts'

/**
 * Closes what the server itself had inherited. Leaves a guard in the group that holds a pipe from the server; when that
 * closes, the server is gone, and the group goes too. Then becomes the command.
 */
const guarded = [
  'ulimit -c 0',
  'for open in /proc/self/fd/*; do open=${open##*/}; if (( open > 3 )); then exec {open}>&-; fi; done',
  '{ read -r _ <&3; kill -KILL 0; } >/dev/null 2>&1 & exec "$@" 3<&-',
].join('\n')

/** How long the output of a command that has ended is waited for. */
const pipesMs = 500

export type ShellStart = {
  cmd: string
  sandbox: Sandbox
  /** The open working directory, and its name. */
  handle: FileHandle
  directory: string
  /** Nobody else has it. */
  mark: string
  clock: Clock
  onText?: (text: string) => void
}

export class ShellProcess {
  readonly output = new ShellOutput()
  /** The exit code when all of it is gone; 128 and more where a signal ended it. */
  readonly ended: Promise<number>
  code: number | null = null
  private readonly child: ChildProcess
  private readonly mark: string | null

  constructor({ cmd, sandbox, handle, directory, mark, clock, onText }: ShellStart) {
    // In a process namespace of its own nothing can stay behind.
    this.mark = sandbox.kind === 'none' ? mark : null
    this.child = spawn('/bin/bash', ['-c', guarded, 'polylog', ...sandbox.command(cmd, directory)], {
      // The open directory, not its name, which may mean another by now.
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
    // Writing to a command that is gone is no news.
    this.child.stdio[3]?.on('error', () => {})
    let pipes: Timer | null = null
    this.ended = new Promise<number>((resolve, reject) => {
      this.child.on('error', reject)
      // Children that were left in the background hold the pipes open: end them, then the pipes end.
      this.child.on('exit', () => {
        this.kill()
        // One that left the group and has lost its mark may still hold them; nobody waits for it.
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

  /** All of it, at once. */
  kill(): void {
    const group = this.child.pid
    if (group === undefined || this.code !== null) return
    try {
      process.kill(-group, 'SIGKILL')
    } catch {
      // Nobody is left in the group.
    }
    if (this.mark !== null) killMarked(this.mark)
  }
}

/** Several rounds, since one that is about to be killed may just have started another. */
function killMarked(mark: string): void {
  for (let round = 0; round < 5; round += 1) {
    const found = marked(mark)
    if (found.length === 0) return
    for (const pid of found) {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // Gone by itself.
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
