// The command line: `polylog <command>`. bin/polylog.js starts it in the published package.

import { systemClock } from '../kit/clock.ts'
import { Output } from './output.ts'

const args = process.argv.slice(2)
const output = new Output(process.stdout, process.stderr)

if (args.length === 0 || (args.length === 1 && args[0] === 'serve')) {
  // What program.ts would do, without loading all other commands and their client: a server starts faster.
  const { serve } = await import('../app/serve.ts')
  await serve()
} else {
  const { runCommandLine } = await import('./program.ts')
  process.exitCode = await runCommandLine(args, { environment: process.env, clock: systemClock, output })
}
