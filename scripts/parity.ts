// Writes docs/parity.md and the transcripts again, after a change of a dialect or a scenario. Look at
// what changed before you commit it.

import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parityPage } from '../test/parity/parity-table.ts'
import { transcripts } from '../test/parity/transcripts.ts'

const root = join(import.meta.dirname, '..')
const folder = join(root, 'test/parity/transcripts')

writeFileSync(join(root, 'docs/parity.md'), parityPage())
mkdirSync(folder, { recursive: true })
for (const file of readdirSync(folder)) rmSync(join(folder, file))
for (const [format, text] of transcripts()) writeFileSync(join(folder, `${format}.txt`), text)
