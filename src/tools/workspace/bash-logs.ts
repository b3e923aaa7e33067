// `bash_logs`: the output of a background command so far, and whether it is still running.

import { excerpt, textField } from '../excerpt.ts'
import type { Tool } from '../tool.ts'
import { summaryOf } from './bash-run.ts'
import { refusalResult } from './refusal.ts'
import { scopeOf } from './session-files.ts'
import type { Shells } from './shells.ts'

export function createBashLogsTool(shells: Shells): Tool {
  return {
    name: 'bash_logs',
    description: 'Shows the output so far of a command that bash_run started in the background.',
    effect: 'read',
    confirm: 'never',
    needsWorkspace: true,
    inputSchema: shellSchema,
    timeoutMs: 10_000,
    outputCharsMax: 30_000,
    describe: (input) => `Run Bash: show the output of ${excerpt(textField(input, 'shell_id'))}`,
    async run(input, context) {
      const shell = shells.find(scopeOf(context), textField(input, 'shell_id'))
      if (shell === undefined) return refusalResult(unknownShell(textField(input, 'shell_id')))
      const { code } = shell.process
      const output = shell.process.output.text()
      const summary = shell.timedOut
        ? 'The command was stopped at its time limit.'
        : code === null
          ? `The command is running: ${output.trim() === '' ? 'no output' : excerpt(output.slice(-1000), 300)}`
          : summaryOf(code, output)
      const running = code === null
      return { ok: true, output: { ok: true, shell_id: shell.id, running, code, output }, summary }
    },
  }
}

export const shellSchema = {
  type: 'object',
  properties: { shell_id: { type: 'string', minLength: 1, maxLength: 200, description: 'As bash_run gave it.' } },
  required: ['shell_id'],
  additionalProperties: false,
}

export function unknownShell(id: string): string {
  return `There is no command ${excerpt(id)} in the background. Commands do not survive a restart of the server, nor the move of a session to another server.`
}
