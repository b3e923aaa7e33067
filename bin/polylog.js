#!/usr/bin/env node
// The command of the package. It stays plain JavaScript that an old Node reads, so that an old Node
// gets a sentence and not a syntax error; then it starts the command line: in a clone the TypeScript
// of src/, in the published package what scripts/build.ts built.

import { existsSync } from 'node:fs'

const oldest = 24

if (Number(process.versions.node.split('.')[0]) < oldest) {
  process.stderr.write(
    `Polylog cannot start. It needs Node ${oldest} or later, and this is Node ${process.versions.node}.\n`,
  )
  process.exit(1)
}

const source = new URL('../src/cli/main.ts', import.meta.url)
const main = existsSync(source) ? source : new URL('../dist/cli/main.js', import.meta.url)
await import(main.href)
