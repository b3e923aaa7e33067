// The command line as a process.

import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { compileCache } from './polylog-process.ts'

export const commandLine = join(import.meta.dirname, '../../bin/polylog.js')

export type CommandResult = { code: number | null; stdout: string; stderr: string }

export type CommandOptions = { environment?: Record<string, string>; input?: string; cwd?: string }

export type RunningCommand = { stdout(): string; stderr(): string; ended: Promise<CommandResult> }

/** Starts a command. It sees no variable of this process but PATH. */
export function spawnCommand(args: readonly string[], options: CommandOptions = {}): RunningCommand {
  const child = spawn(process.execPath, [commandLine, ...args], {
    cwd: options.cwd,
    env: { PATH: process.env.PATH ?? '', NO_COLOR: '1', ...compileCache(), ...options.environment },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (part: string) => (stdout += part))
  child.stderr.setEncoding('utf8').on('data', (part: string) => (stderr += part))
  child.stdin.end(options.input ?? '')
  const ended = new Promise<CommandResult>((resolve) =>
    child.once('close', (code) => resolve({ code, stdout, stderr })),
  )
  return { stdout: () => stdout, stderr: () => stderr, ended }
}

/** Runs a command to its end. */
export async function polylog(args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  return await spawnCommand(args, options).ended
}
