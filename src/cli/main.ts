// The command line: `polylog <command>`. bin/polylog.js starts it in the published package.

import { systemClock } from '../kit/clock.ts'
import { Output } from './output.ts'
import { runCommandLine } from './program.ts'

process.exitCode = await runCommandLine(process.argv.slice(2), {
  environment: process.env,
  clock: systemClock,
  output: new Output(process.stdout, process.stderr),
})
