// `bash_run`: runs a command in the working directory. Its effect is `unsafe`: after a crash
// we cannot know what the command has done, so it is never retried unless a person agrees.
// A command that exceeds its time limit throws, because it did not finish; an exit code
// other than 0 is a normal result with `ok: false`.

import { AppError } from '../../errors/app-error.ts'
import type { Clock } from '../../kit/clock.ts'
import { excerpt, textField } from '../excerpt.ts'
import type { Tool, ToolContext, ToolResult } from '../tool.ts'
import { booleanField, integerField } from './arguments.ts'
import { refused, withRefusalsAsResults } from './refusal.ts'
import { scopeOf } from './session-files.ts'
import { LineProgress } from './shell-output.ts'
import type { Shells } from './shells.ts'
import type { Workspace } from './workspace.ts'
import type { WorkspaceFolders } from './workspaces.ts'

const limitDefaultMs = 120_000
const limitMaxMs = 2 * 60 * 60_000
const backgroundLimitMs = 60 * 60_000

export type BashRunOptions = { folders: WorkspaceFolders; shells: Shells; clock: Clock; confirm: 'always' | 'never' }

export function createBashRunTool({ folders, shells, clock, confirm }: BashRunOptions): Tool {
  return {
    name: 'bash_run',
    description: 'Runs a Bash command in the working directory and gives its output and exit code.',
    effect: 'unsafe',
    confirm,
    howToAllow: 'Set POLYLOG_BASH=allow.',
    needsWorkspace: true,
    inputSchema: {
      type: 'object',
      properties: {
        cmd: { type: 'string', minLength: 1, maxLength: 100_000, description: 'The command.' },
        timeout_ms: {
          type: 'integer',
          minimum: 1,
          maximum: limitMaxMs,
          description: `After so long it is stopped; ${limitDefaultMs} when absent, ${backgroundLimitMs} in the background.`,
        },
        background: { type: 'boolean', description: 'Do not wait for its end; bash_logs shows its output.' },
      },
      required: ['cmd'],
      additionalProperties: false,
    },
    // Longer than any `timeout_ms`, so that the command's own time limit always fires first.
    timeoutMs: limitMaxMs + 30_000,
    outputCharsMax: 30_000,
    describe: (input) => `Run Bash: ${excerpt(textField(input, 'cmd'), 300)}`,
    run: withRefusalsAsResults(async (input, context) => {
      const workspace = await folders.of(context)
      const cmd = textField(input, 'cmd')
      if (cmd.includes('\0')) throw refused('A command must not hold a NUL character.')
      if (booleanField(input, 'background')) {
        const limitMs = integerField(input, 'timeout_ms', backgroundLimitMs)
        const id = await shells.startInBackground(scopeOf(context), cmd, workspace, limitMs)
        const message = `The command runs in the background as ${id}.`
        return { ok: true, output: { background: true, shell_id: id, message }, summary: message }
      }
      return inForeground(cmd, integerField(input, 'timeout_ms', limitDefaultMs), workspace, context, shells, clock)
    }),
  }
}

async function inForeground(
  cmd: string,
  limitMs: number,
  workspace: Workspace,
  context: ToolContext,
  shells: Shells,
  clock: Clock,
): Promise<ToolResult> {
  if (context.signal.aborted) throw context.signal.reason
  const progress = new LineProgress(clock, (message) => context.progress(message))
  const process = await shells.start(cmd, workspace, (text) => progress.add(text))
  let timedOut = false
  const timer = clock.after(limitMs, () => {
    timedOut = true
    process.kill()
  })
  const cancel = () => process.kill()
  context.signal.addEventListener('abort', cancel, { once: true })
  if (context.signal.aborted) cancel()
  try {
    const code = await process.ended
    progress.end()
    if (context.signal.aborted) throw context.signal.reason
    const output = process.output.text()
    if (timedOut) {
      const said = output.trim() === '' ? 'It had no output.' : `Its last output: ${excerpt(output.slice(-1000), 1000)}`
      throw new AppError(
        'tool_timed_out',
        `Command execution timeout: stopped after ${limitMs} ms; what it did until then stays done. ${said}`,
      )
    }
    return { ok: code === 0, output: { background: false, code, output }, summary: summaryOf(code, output) }
  } finally {
    timer.cancel()
    context.signal.removeEventListener('abort', cancel)
  }
}

export function summaryOf(code: number, output: string): string {
  const said = output.trim() === '' ? 'no output' : excerpt(output, 300)
  return code === 0 ? `Command succeeded: ${said}` : `Command failed with exit code ${code}: ${said}`
}
