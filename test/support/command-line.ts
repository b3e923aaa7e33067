// The command line as a process.

import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { compileCache } from './polylog-process.ts'

const main = join(import.meta.dirname, '../../bin/polylog.js')

export type CommandResult = { code: number | null; stdout: string; stderr: string }

export type CommandOptions = { environment?: Record<string, string>; input?: string; cwd?: string }

/** Runs a command to its end. It sees no variable of this process but PATH. */
export async function polylog(args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  const child = spawn(process.execPath, [main, ...args], {
    cwd: options.cwd,
    env: { PATH: process.env.PATH ?? '', NO_COLOR: '1', ...compileCache(), ...options.environment },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (part: Buffer) => (stdout += part.toString()))
  child.stderr.on('data', (part: Buffer) => (stderr += part.toString()))
  child.stdin.end(options.input ?? '')
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  return { code, stdout, stderr }
}
