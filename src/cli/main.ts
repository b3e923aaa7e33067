// The command line: `polylog <command>`. bin/polylog.js starts it in the published package.

import { systemClock } from '../kit/clock.ts'
import { Output } from './output.ts'

const all = process.argv.slice(2)
const args = all.filter((argument) => argument !== '--watch')
const serves = args.length === 0 || (args.length === 1 && args[0] === 'serve')
const output = new Output(process.stdout, process.stderr)

if (serves && args.length < all.length) {
  const { watch } = await import('./watch.ts')
  process.exitCode = await watch(new URL(import.meta.url), args)
} else if (serves) {
  // What program.ts would do, without loading all other commands and their client: a server starts faster.
  const { serve } = await import('../app/serve.ts')
  await serve()
} else {
  const { runCommandLine } = await import('./program.ts')
  process.exitCode = await runCommandLine(all, { environment: process.env, clock: systemClock, output })
}
