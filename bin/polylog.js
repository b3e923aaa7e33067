#!/usr/bin/env node
// The command of the package. It stays plain JavaScript that an old Node reads, so that an old Node
// gets a sentence and not a syntax error; then it starts the command line: in a clone the TypeScript
// of src/, in the published package what scripts/build.ts built. `--watch` leaves the rest to Node's
// own watcher, which stops the server in order and starts it again when polylog.config.ts, or a file
// that it imports, has changed.

import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const oldest = 24

if (Number(process.versions.node.split('.')[0]) < oldest) {
  process.stderr.write(
    `Polylog cannot start. It needs Node ${oldest} or later, and this is Node ${process.versions.node}.\n`,
  )
  process.exit(1)
}

const source = new URL('../src/cli/main.ts', import.meta.url)
const main = existsSync(source) ? source : new URL('../dist/cli/main.js', import.meta.url)
const args = process.argv.slice(2)
if (args.includes('--watch') && ['--watch', 'serve'].includes(args[0])) watch()
else await import(main.href)

function watch() {
  const rest = args.filter((argument) => argument !== '--watch')
  const command = ['--watch', '--watch-preserve-output', fileURLToPath(main), ...rest]
  const watcher = spawn(process.execPath, command, { stdio: 'inherit' })
  // A terminal signals both processes; a supervisor signals only this one.
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => watcher.kill(signal))
  watcher.once('exit', (code, signal) => process.exit(code ?? (signal === null ? 1 : 0)))
}
