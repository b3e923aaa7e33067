// A citation of something that the model was not given is an error, and so is a statement
// without a citation if the agent requires one.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonValue } from '../journal/event.ts'
import { citationErrors } from './citations.ts'
import type { Citable } from './sources/source.ts'

const citable: Citable[] = [
  { source: 'f1', type: 'fact' },
  { source: 'e1', type: 'event' },
  { source: 'm1', type: 'message' },
  { source: 'c1', type: 'contact' },
]
const errorsOf = (answer: JsonValue, required = true, records = citable) => citationErrors(answer, records, required)

describe('citations', () => {
  it('are accepted if every statement cites records that were given', () => {
    const answer = {
      summary: 'words',
      risks: [{ title: 'silence', citations: ['f1', 'e1'] }],
      actions: [],
      openingLines: ['Hello'],
      citations: [{ source: 'f1', type: 'fact', reference: 'a fact' }],
    }
    assert.deepEqual(errorsOf(answer), [])
  })

  const wrong: [what: string, answer: JsonValue, error: RegExp][] = [
    ['an unknown record', { citations: ['f9'] }, /^citations\.0 cites "f9", which is not the id of a record/],
    ['an unknown record, as an object', { citations: [{ source: 'f9' }] }, /^citations\.0 cites "f9"/],
    ['a record of another type', { citations: [{ source: 'f1', type: 'todo' }] }, /"f1" as todo, but it is fact$/],
    ['a message as a record', { citations: ['m1'] }, /^citations\.0 cites "m1"/],
    ['an unknown message', { citations: [{ messageId: 'm9' }] }, /the message "m9", which is not in the data/],
    ['an unknown contact', { citations: ['f1'], contactId: 'c9' }, /^contactId names the contact "c9"/],
    ['one of several contacts', { citations: ['f1'], contacts: ['c1', 'c9'] }, /^contacts\.1 names the contact "c9"/],
    ['a statement without citations', { citations: ['f1'], risks: [{ title: 'x' }] }, /^risks\.0 cites no record/],
    ['an empty list', { citations: ['f1'], a: { risks: [{ citations: [] }] } }, /^a\.risks\.0 cites no record/],
    ['an answer without citations', { text: 'x' }, /^the answer cites no record/],
    ['a nested statement', { citations: ['f1'], risks: [{ citations: ['nope'] }] }, /^risks\.0\.citations\.0 cites/],
  ]
  for (const [what, answer, error] of wrong) {
    it(`name what is wrong: ${what}`, () => {
      const errors = errorsOf(answer)
      assert.equal(errors.length, 1, errors.join('; '))
      assert.match(errors[0] ?? '', error)
    })
  }

  it('may be missing if they are optional, but must exist if they are there', () => {
    assert.deepEqual(errorsOf({ risks: [{ title: 'x' }] }, false), [])
    assert.equal(errorsOf({ risks: [{ title: 'x', citations: ['nope'] }] }, false).length, 1)
  })

  it('are not required of an empty answer, but any statement still needs one', () => {
    assert.deepEqual(errorsOf({ risks: [], citations: [] }, true, []), [])
    assert.equal(errorsOf({ risks: [{ title: 'x' }], citations: [] }, true, []).length, 1)
  })

  it('do not check messages and contacts that the source does not list', () => {
    const records: Citable[] = [{ source: 'f1', type: 'fact' }]
    const answer = { citations: ['f1', { messageId: 'any' }], contactId: 'any' }
    assert.deepEqual(errorsOf(answer, true, records), [])
  })

  it('give a bounded list of errors, in the order of the answer', () => {
    const errors = errorsOf({ citations: Array.from({ length: 1000 }, (_, index) => `x${index}`) })
    assert.equal(errors.length, 5)
    assert.match(errors[0] ?? '', /"x0"/)
  })

  it('are checked in a deeply nested answer without a stack overflow', () => {
    let answer: JsonValue = { citations: ['nope'] }
    for (let depth = 0; depth < 20_000; depth++) answer = [answer]
    assert.equal(errorsOf(answer, false).length, 1)
  })
})
