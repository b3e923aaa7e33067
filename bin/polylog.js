#!/usr/bin/env node
// The command of the published package. It stays plain JavaScript that an old Node reads, so that an
// old Node gets a sentence and not a syntax error; then it starts the server that scripts/build.ts built.

const oldest = 24

if (Number(process.versions.node.split('.')[0]) < oldest) {
  process.stderr.write(
    `Polylog cannot start. It needs Node ${oldest} or later, and this is Node ${process.versions.node}.\n`,
  )
  process.exit(1)
}
await import('../dist/app/main.js')
