#!/usr/bin/env node
// The command of the published package. It stays plain JavaScript that an old Node reads, so that an
// old Node gets a sentence and not a syntax error; then it starts the server that scripts/build.ts built.
// `polylog --watch` leaves that to Node's own watcher, which stops the server in order and starts it
// again when polylog.config.ts, or a file that it imports, has changed.

import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const oldest = 24

if (Number(process.versions.node.split('.')[0]) < oldest) {
  process.stderr.write(
    `Polylog cannot start. It needs Node ${oldest} or later, and this is Node ${process.versions.node}.\n`,
  )
  process.exit(1)
}
if (process.argv.includes('--watch')) watch()
else await import('../dist/app/main.js')

function watch() {
  const main = fileURLToPath(new URL('../dist/app/main.js', import.meta.url))
  const watcher = spawn(process.execPath, ['--watch', '--watch-preserve-output', main], { stdio: 'inherit' })
  // A terminal signals both processes; a supervisor signals only this one.
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => watcher.kill(signal))
  watcher.once('exit', (code, signal) => process.exit(code ?? (signal === null ? 1 : 0)))
}
