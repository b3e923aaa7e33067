// `bash_kill`: ends a background command and every process that it started.
// Idempotent: ending the same command twice has no further effect.

import { excerpt, textField } from '../excerpt.ts'
import type { Tool } from '../tool.ts'
import { shellSchema, unknownShell } from './bash-logs.ts'
import { refusalResult } from './refusal.ts'
import { scopeOf } from './session-files.ts'
import type { Shells } from './shells.ts'

export function createBashKillTool(shells: Shells): Tool {
  return {
    name: 'bash_kill',
    description: 'Ends a command that bash_run started in the background.',
    effect: 'idempotent',
    confirm: 'never',
    needsWorkspace: true,
    inputSchema: shellSchema,
    timeoutMs: 10_000,
    outputCharsMax: 1_000,
    describe: (input) => `Run Bash: end ${excerpt(textField(input, 'shell_id'))}`,
    async run(input, context) {
      const shell = shells.find(scopeOf(context), textField(input, 'shell_id'))
      if (shell === undefined) return refusalResult(unknownShell(textField(input, 'shell_id')))
      shells.remove(shell)
      await shell.process.ended
      const message = 'The command has ended, and all that it started.'
      return { ok: true, output: { ok: true, shell_id: shell.id, message }, summary: message }
    },
  }
}
