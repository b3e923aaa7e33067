// Starts commands and keeps the background ones, each visible to its own session only.
// A background command ends at its time limit, by `bash_kill`, or with the server. It is
// not part of a run, and a restart does not start it again.

import type { Clock } from '../../kit/clock.ts'
import type { Ids } from '../../kit/ids.ts'
import { refused } from './refusal.ts'
import type { Sandbox } from './shell-sandbox.ts'
import { ShellProcess } from './shell-process.ts'
import type { Workspace } from './workspace.ts'

export type BackgroundShell = { id: string; scope: string; cmd: string; process: ShellProcess; timedOut: boolean }

const runningMax = 8
/** Ended commands of a session that are kept so that their output can be read; the oldest are dropped first. */
const endedMax = 32
/** Limits for all sessions together, because each command is a process and its output stays in memory. */
const serverLimits = { running: 64, kept: 256 }

export type ShellsOptions = {
  clock: Clock
  ids: Ids
  sandbox: Sandbox
  serverLimits?: { running: number; kept: number }
}

export class Shells {
  private readonly options: ShellsOptions
  private readonly background = new Map<string, BackgroundShell>()
  private readonly foreground = new Set<ShellProcess>()
  /** Background commands that were admitted and have no process yet. They count as running: calls of one step are parallel. */
  private readonly starting = new Set<{ scope: string }>()

  constructor(options: ShellsOptions) {
    this.options = options
  }

  /** Starts a command in the working directory; the caller enforces its time limit. */
  async start(cmd: string, workspace: Workspace, onText?: (text: string) => void): Promise<ShellProcess> {
    const { clock, ids, sandbox } = this.options
    return workspace.inDirectory(workspace.locate('.'), async (handle) => {
      const process = new ShellProcess({
        cmd,
        sandbox,
        handle,
        directory: workspace.directory,
        mark: ids(),
        clock,
        ...(onText === undefined ? {} : { onText }),
      })
      this.foreground.add(process)
      const forget = () => void this.foreground.delete(process)
      process.ended.then(forget, forget)
      return process
    })
  }

  async startInBackground(scope: string, cmd: string, workspace: Workspace, limitMs: number): Promise<string> {
    const running = [...this.background.values()].filter(({ process }) => process.code === null)
    const taken = [...running, ...this.starting]
    if (taken.filter((one) => one.scope === scope).length >= runningMax) {
      throw refused(`This session has ${runningMax} commands in the background already. End one first.`)
    }
    if (taken.length >= (this.options.serverLimits ?? serverLimits).running) {
      throw refused('Too many commands are in the background on this server. Try again later.')
    }
    const slot = { scope }
    this.starting.add(slot)
    const process = await this.start(cmd, workspace).finally(() => this.starting.delete(slot))
    const shell: BackgroundShell = { id: `sh-${this.options.ids()}`, scope, cmd, process, timedOut: false }
    this.background.set(shell.id, shell)
    const timer = this.options.clock.after(limitMs, () => {
      shell.timedOut = true
      process.kill()
    })
    const ended = () => {
      timer.cancel()
      this.dropOldest(scope)
    }
    process.ended.then(ended, ended)
    return shell.id
  }

  /** Undefined if there is no such command, or if it belongs to another session. */
  find(scope: string, id: string): BackgroundShell | undefined {
    const shell = this.background.get(id)
    return shell?.scope === scope ? shell : undefined
  }

  remove(shell: BackgroundShell): void {
    shell.process.kill()
    this.background.delete(shell.id)
  }

  async close(): Promise<void> {
    const all = [...this.foreground]
    for (const process of all) process.kill()
    await Promise.allSettled(all.map((process) => process.ended))
  }

  private dropOldest(scope: string): void {
    const ended = [...this.background.values()].filter((one) => one.scope === scope && one.process.code !== null)
    for (const shell of ended.slice(0, Math.max(0, ended.length - endedMax))) this.background.delete(shell.id)
    for (const shell of this.background.values()) {
      if (this.background.size <= (this.options.serverLimits ?? serverLimits).kept) break
      if (shell.process.code !== null) this.background.delete(shell.id)
    }
  }
}
