import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { embeddedJson, wholeJson } from './embedded-json.ts'

const textsOf = (text: string) => embeddedJson(text).map((found) => found.text)

test('a whole answer is JSON with blanks around it, or with one code fence around all of it', () => {
  assert.deepEqual(wholeJson(' {"a":1}\n')?.value, { a: 1 })
  assert.deepEqual(wholeJson('```json\n{"a":1}\n```')?.value, { a: 1 })
  assert.deepEqual(wholeJson('```\n[1]\n```\n')?.value, [1])
  assert.deepEqual(wholeJson('"text"')?.value, 'text')
  for (const text of ['', 'Here: {"a":1}', '```json\n{"a":1}\n``` done', '```\n1\n```\n```\n2\n```', '``````', '```'])
    assert.equal(wholeJson(text), undefined, text)
})

test('objects and arrays between other words are found, each once, longest first', () => {
  assert.deepEqual(textsOf('Here it is: {"a":1}. Good?'), ['{"a":1}'])
  assert.deepEqual(textsOf('Sure!\n```json\n{"a": [1, 2]}\n```\nAnything else?'), ['{"a": [1, 2]}'])
  assert.deepEqual(textsOf('First [1], then {"long":"enough"}, then [1].'), ['{"long":"enough"}', '[1]'])
  assert.deepEqual(textsOf('{"brackets in text":"}] \\" {"}'), ['{"brackets in text":"}] \\" {"}'])
})

test('brackets that are not JSON, or never closed, do not hide what is', () => {
  assert.deepEqual(textsOf('Use {name} and [x]. {"a":1}'), ['{"a":1}'])
  assert.deepEqual(textsOf('A stray { and a quote " before {"a":1} here'), ['{"a":1}'])
  assert.deepEqual(textsOf('Cut off: {"a":[1,'), [])
  assert.deepEqual(textsOf('no JSON'), [])
})

test('a fenced block counts as a whole, also inside brackets that are not JSON; a fence that is never closed ends the search', () => {
  assert.deepEqual(textsOf('Use {this:\n```json\n{"a":1}\n```\n}'), ['{"a":1}'])
  assert.deepEqual(textsOf('{x\n```json\n{"a":1}\n```\nor\n```\n{"b":22}\n```}'), ['{"b":22}', '{"a":1}'])
  assert.deepEqual(textsOf('Well: ```json\n{"a":1}'), ['{"a":1}'])
  assert.deepEqual(textsOf('A value:\n```\nnull\n```\nand ```[1]``` there'), ['[1]'])
})

test('of many candidates the eight longest are looked at, wherever they stand', () => {
  const short = Array.from({ length: 20 }, (_, index) => `[${index}]`).join(' ')
  assert.equal(textsOf(short).length, 8)
  assert.equal(textsOf(`${short} {"the":"answer"}`)[0], '{"the":"answer"}')
  assert.equal(textsOf(`{"the":"answer"} ${short}`)[0], '{"the":"answer"}')
})

test('any JSON object in any words without brackets and fences is found', () => {
  const words = fc.string().map((text) => text.replaceAll(/[{}[\]`]/g, ''))
  fc.assert(
    fc.property(words, fc.dictionary(fc.string(), fc.jsonValue()), words, (before, value, after) => {
      const json = JSON.stringify(value)
      assert.ok(textsOf(`${before}${json}${after}`).includes(json))
    }),
  )
})

test('a text made to be slow is read a bounded number of times', () => {
  let reads = 0
  const counting = (text: string) =>
    new Proxy(new String(text), {
      get(target, name) {
        if (typeof name === 'string' && /^\d+$/.test(name)) reads += 1
        const value: unknown = Reflect.get(target, name)
        return typeof value === 'function' ? value.bind(target) : value
      },
    }) as unknown as string
  for (const text of ['{'.repeat(20_000), '['.repeat(20_000) + ']', '{"'.repeat(10_000), '{}'.repeat(10_000)]) {
    reads = 0
    embeddedJson(counting(text))
    assert.ok(reads <= 20 * text.length, `${reads} characters read of ${text.length}`)
  }
})
