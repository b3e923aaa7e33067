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

test('the events of a short append are passed beside the JSON, also when it holds the mark of a long text', () => {
  const input = { journal: { id: 1, lastSeq: 2, body: '{"seq":2}' }, reason: '\u00010' }
  const { json, texts } = packCommand(input)

  assert.deepEqual(texts, ['{"seq":2}'])
  assert.deepEqual(unpackCommand(json, texts), input)
  assert.equal(input.journal.body, '{"seq":2}', 'the command itself is not changed')
})

test('any command with events is unpacked as it was packed', () => {
  const text = fc.oneof(fc.string(), fc.constantFrom(long, '\u0001', '\u00010', '\u0001events', ''))
  fc.assert(
    fc.property(fc.record({ body: text, reason: text, contents: fc.array(text) }), ({ body, reason, contents }) => {
      const input = { journal: { id: 1, lastSeq: 2, body }, reason, messages: contents.map((content) => ({ content })) }
      const { json, texts } = packCommand(input)
      assert.deepEqual(unpackCommand(json, texts), JSON.parse(JSON.stringify(input)))
    }),
  )
})
