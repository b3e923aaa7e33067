// Writes docs/parity.md, the transcripts and the lists in the READMEs of the dialects again, after a change
// of a dialect or a scenario. Look at what changed before you commit it.

import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { formatsOfDialects, readmeOf, readmePath } from '../test/parity/not-told.ts'
import { parityPage } from '../test/parity/parity-table.ts'
import { transcripts } from '../test/parity/transcripts.ts'

const root = join(import.meta.dirname, '..')
const folder = join(root, 'test/parity/transcripts')

writeFileSync(join(root, 'docs/parity.md'), parityPage())
mkdirSync(folder, { recursive: true })
for (const file of readdirSync(folder)) rmSync(join(folder, file))
for (const [format, text] of transcripts()) writeFileSync(join(folder, `${format}.txt`), text)
for (const folder of Object.keys(formatsOfDialects)) writeFileSync(readmePath(folder), readmeOf(folder))
