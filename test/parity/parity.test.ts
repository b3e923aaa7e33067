// docs/parity.md, the transcripts and the READMEs of the dialects are what the dialects say now.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { formatDialects } from '../../src/http/formats.ts'
import { scenarios } from '../scenarios/scenarios.ts'
import { facts } from './facts.ts'
import { formatsOfDialects, readmeOf, readmePath } from './not-told.ts'
import { parityPage } from './parity-table.ts'
import { transcripts } from './transcripts.ts'

const root = join(import.meta.dirname, '../..')
const folder = join(import.meta.dirname, 'transcripts')
const renew = 'run `npm run parity` and look at what changed'

describe('parity', () => {
  it('docs/parity.md is up to date', () => {
    assert.equal(readFileSync(join(root, 'docs/parity.md'), 'utf8'), parityPage(), renew)
  })

  for (const folder of Object.keys(formatsOfDialects)) {
    it(`the README of ${folder} lists what its frames do not tell`, () => {
      assert.equal(readFileSync(readmePath(folder), 'utf8'), readmeOf(folder), renew)
    })
  }

  it('every format has such a README', () => {
    assert.deepEqual(Object.values(formatsOfDialects).flat().toSorted(), Object.keys(formatDialects).toSorted())
  })

  const written = transcripts()
  for (const [format, text] of written) {
    it(`the transcript of ${format} is up to date`, () => {
      assert.equal(readFileSync(join(folder, `${format}.txt`), 'utf8'), text, renew)
    })
  }

  it('every format has a transcript, and every transcript a format', () => {
    assert.deepEqual(
      readdirSync(folder).toSorted(),
      Object.keys(formatDialects)
        .map((format) => `${format}.txt`)
        .toSorted(),
    )
  })

  it('every fact occurs in a scenario, so that none is only claimed', () => {
    const missing = facts.filter((fact) => scenarios.every(({ events }) => fact.probe(events) === null))

    assert.deepEqual(
      missing.map(({ name }) => name),
      [],
    )
  })
})

/** What a user of any wire has to learn. A dialect that does not tell one of these is broken. */
const essential = ['the text of the answer', 'how the run ended', 'what a person is asked']

describe('no format hides', () => {
  for (const name of essential) {
    it(name, () => {
      const row = parityPage()
        .split('\n')
        .find((line) => line.startsWith(`| ${name} |`))

      assert.ok(row !== undefined)
      assert.doesNotMatch(row, /·/)
    })
  }
})
