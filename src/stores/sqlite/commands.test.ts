// Commands on their way to the writer thread: what is unpacked is what was packed.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { packCommand, unpackCommand } from './commands.ts'

const long = 'x"\n'.repeat(20_000)

test('a command is unpacked as it was packed, whatever texts it holds', () => {
  const text = fc.oneof(fc.string(), fc.constantFrom(long, '\u0001', '\u00010', '\u0001x', ''))
  fc.assert(
    fc.property(
      fc.record({ a: text, list: fc.array(text), deep: fc.dictionary(text, text), none: fc.constant(null) }),
      (input) => {
        const { json, texts } = packCommand(input)
        assert.deepEqual(unpackCommand(json, texts), JSON.parse(JSON.stringify(input)))
      },
    ),
  )
})

test('a long text is passed beside the JSON, once for each time that it stands in the command', () => {
  const body = { id: 1, lastSeq: 2, body: long }
  const { json, texts } = packCommand({ journal: body, messages: [{ content: long }], short: 'short' })

  assert.ok(json.length < 200)
  assert.deepEqual(texts, [long, long])
})

test('a short append is one text, also when it holds the mark of a long one', () => {
  const input = { journal: { id: 1, lastSeq: 2, body: 'short' }, reason: '\u00010' }
  const { json, texts } = packCommand(input)

  assert.deepEqual(texts, [])
  assert.deepEqual(unpackCommand(json, texts), input)
})
