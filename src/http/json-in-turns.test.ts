import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { AppError } from '../errors/app-error.ts'
import { parseInTurns } from './json-in-turns.ts'

const limits = { depth: 20, values: 2_000_000, entries: 1_000_000, keyChars: 1000 }

async function parse(text: string) {
  let turns = 0
  const value = await parseInTurns(text, limits, () => {
    turns += 1
    return Promise.resolve()
  })
  return { value, turns }
}

const refused = (code: string) => (error: unknown) => error instanceof AppError && error.code === code

describe('a large JSON text', () => {
  test('is parsed in many turns, and each parses a limited part of its lists', async (t) => {
    const text = JSON.stringify({ a: 1, events: Array.from({ length: 500_000 }, () => ({})), b: [1, 2] })
    const jsonParse = t.mock.method(JSON, 'parse')

    const { value, turns } = await parse(text)

    const lengths = jsonParse.mock.calls.map(({ arguments: [part] }) => part.length)
    jsonParse.mock.restore()
    assert.ok(Math.max(...lengths) < 300_000, `a part had ${Math.max(...lengths)} characters`)
    assert.ok(turns >= 10, `there were ${turns} turns`)
    assert.deepEqual(value, JSON.parse(text))
  })

  test('has the value that JSON.parse gives', async () => {
    await fc.assert(
      fc.asyncProperty(fc.json({ maxDepth: 5 }), async (text) => {
        assert.deepEqual((await parse(text)).value, JSON.parse(text))
      }),
    )
    const mixed = ' { "a" : [ ] , "b":[[1,"]"],{"c":[2]}], "a":[ 3 ,"\\"," ] } '
    assert.deepEqual((await parse(mixed)).value, JSON.parse(mixed))
  })

  test('that is not JSON is refused, also if the fault is in a list or between two parts of it', async () => {
    const long = '"' + 'x'.repeat(300_000) + '"'
    const texts = ['', '{', '[1,2', '{"a":[1,2}', '{"a":[1,]}', '{"a":[,1]}', '{"a":[1 2]}', '{"a":[1]]}', '{"a":[}]}']
    const cut = [`{"a":[${long},]}`, `{"a":[${long},,${long}]}`, `{"a":[${long},${long}`, `{"a":[1]}{"a":[1]}`]
    for (const text of [...texts, ...cut]) {
      await assert.rejects(parse(text), refused('invalid_json'), text.slice(0, 40))
    }
  })

  test('with too many values in one entry, or outside of lists, is refused before it is parsed', async () => {
    const many = (count: number) => `[${'1,'.repeat(count - 1)}1]`
    await assert.rejects(parse(`{"a":[{"b":${many(700_000)}}]}`), refused('body_too_complex'))
    await assert.rejects(parse(`{"a":{"b":${many(150_000)}}}`), refused('body_too_complex'))
    await assert.rejects(parse(many(150_000)), refused('body_too_complex'))
  })
})
