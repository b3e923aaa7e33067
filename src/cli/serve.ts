// `polylog serve`, and `polylog` without a command.

import type { Command } from 'commander'
import type { CliContext } from './context.ts'

export function registerServe(program: Command, _context: CliContext): void {
  program
    .command('serve', { isDefault: true })
    .description('serve the HTTP API and run agents, until SIGTERM or Ctrl-C')
    .option('--watch', 'start again when polylog.config.ts, or a file that it imports, changes')
    .addHelpText(
      'after',
      `
Settings come from the environment and from polylog.config.ts in the working directory.

Examples:
  $ polylog serve
  $ PORT=8080 POLYLOG_DATA=/var/lib/polylog polylog serve
  $ OPENAI_API_KEY=… polylog serve`,
    )
    .action(async () => {
      const { serve } = await import('../app/serve.ts')
      await serve()
    })
}
