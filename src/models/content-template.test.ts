// The content that is cut out of a chunk is the content that parsing it gives, whatever a server writes around it.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type ContentTemplate, contentTemplate } from './content-template.ts'

type Chunk = { choices?: { delta?: { content?: unknown } }[] }

function readContent(chunk: unknown): string | undefined {
  const content = (chunk as Chunk)?.choices?.[0]?.delta?.content
  return typeof content === 'string' ? content : undefined
}

/** A chunk as a server might write it: `pad` is white space, `more` are fields around the content. */
function chunkOf(content: string, { pad, more, name }: Style): string {
  const field = `"content"${pad}:${pad}${JSON.stringify(content)}`
  return `{${pad}"id":${JSON.stringify(name)},${pad}"choices":[{"delta":{${more[0]}${field}${more[1]}}}]${more[2]}}`
}

type Style = { pad: string; more: [string, string, string]; name: string }

const style: fc.Arbitrary<Style> = fc.record({
  pad: fc.constantFrom('', ' ', '  '),
  more: fc.tuple(
    fc.constantFrom('', '"role":"assistant",', '"note":"the \\"content\\": \\"x\\"",', '"content":"first",'),
    fc.constantFrom('', ',"refusal":null', ',"meta":{"content":"same"}'),
    fc.constantFrom('', ',"usage":null', ',"content":"outside"', ',"content":{"content":"same"}'),
  ),
  name: fc.string(),
})
const content = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.constantFrom('same', '', '"', '\\', '\u2028'))

function learn(first: string, style: Style): ContentTemplate | undefined {
  return contentTemplate(chunkOf(first, style), first, readContent)
}

describe('the template of a chunk', () => {
  test('finds the content of every chunk that differs in it alone', () => {
    fc.assert(
      fc.property(style, content, content, (style, first, next) => {
        const template = learn(first, style)
        assert.ok(template !== undefined)
        assert.equal(template.contentOf(chunkOf(next, style)), next)
      }),
    )
  })

  test('never finds anything but what parsing the chunk gives, also in other chunks and in damaged ones', () => {
    const damage = fc.record({
      at: fc.nat(200),
      drop: fc.nat(3),
      put: fc.constantFrom('', '"', '\\', '","content":"', '\n', '\t', '}', ' '),
    })
    let found = 0
    fc.assert(
      fc.property(
        style,
        style,
        content,
        content,
        damage,
        fc.boolean(),
        (style, other, first, next, damage, isOther) => {
          const text = chunkOf(next, isOther ? other : style)
          const { at, drop, put } = damage
          const damaged = text.slice(0, at) + put + text.slice(at + drop)
          const cut = learn(first, style)?.contentOf(damaged)
          if (cut === undefined) return
          found += 1
          assert.equal(cut, readContent(JSON.parse(damaged)))
        },
      ),
      { numRuns: 2000 },
    )
    assert.ok(found > 50, `the content was found in ${found} damaged chunks`)
  })

  test('does not exist for a chunk whose content is not a string of its own', () => {
    assert.equal(contentTemplate('{"choices":[{"delta":{"content":["a"]}}]}', 'a', readContent), undefined)
    assert.equal(contentTemplate('not JSON, "content":"a"', 'a', readContent), undefined)
    const many = '"content":"a",'.repeat(50)
    assert.equal(contentTemplate(`{${many}"choices":[{"delta":{"content":"a"}}]}`, 'a', readContent), undefined)
  })
})
