import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sniffMediaType } from './sniff.ts'

const bytes = (...values: (number | string)[]) =>
  Buffer.concat(values.map((value) => (typeof value === 'string' ? Buffer.from(value) : Buffer.from([value]))))

const png = bytes(0x89, 'PNG\r\n', 0x1a, '\n', 0, 0)

function sniffed(content: Uint8Array, declared?: string, name?: string): string | undefined {
  return sniffMediaType(content, { declared, name })
}

test('the bytes decide, whatever the sender says', () => {
  assert.equal(sniffed(png, 'text/html'), 'image/png')
  assert.equal(sniffed(png, 'image/jpeg', 'x.jpg'), 'image/png')
  assert.equal(sniffed(bytes(0xff, 0xd8, 0xff, 0xe0)), 'image/jpeg')
  assert.equal(sniffed(bytes('GIF89a', 0, 0)), 'image/gif')
  assert.equal(sniffed(bytes('RIFF', 1, 0, 0, 0, 'WEBPVP8 ')), 'image/webp')
  assert.equal(sniffed(bytes('RIFF', 1, 0, 0, 0, 'WAVEfmt ')), 'audio/wav')
  assert.equal(sniffed(bytes('%PDF-1.7\n', 0)), 'application/pdf')
  assert.equal(sniffed(bytes(0, 0, 0, 0x18, 'ftypM4A ')), 'audio/mp4')
  assert.equal(sniffed(bytes(0, 0, 0, 0x18, 'ftypisom')), 'video/mp4')
})

test('text has the type that the sender says, or that its name tells', () => {
  assert.equal(sniffed(bytes('a,b\n'), 'text/csv; charset=utf-8'), 'text/csv')
  assert.equal(sniffed(bytes('{}'), 'APPLICATION/JSON'), 'application/json')
  assert.equal(sniffed(bytes('<svg/>'), 'image/svg+xml'), 'image/svg+xml')
  assert.equal(sniffed(bytes('# hi'), 'application/octet-stream', 'README.MD'), 'text/markdown')
  assert.equal(sniffed(bytes('hi 你好')), 'text/plain')
  assert.equal(sniffed(bytes('hi'), 'nonsense'), 'text/plain')
  assert.equal(sniffed(bytes('a,b'), 'application/x-www-form-urlencoded', 'a.csv'), 'text/csv')
  assert.equal(sniffed(bytes('print(1)'), 'application/x-python'), 'text/plain')
})

test('bytes that are neither a known format nor text are refused, and text that claims to be an image', () => {
  assert.equal(sniffed(bytes('PK', 3, 4, 0xff, 0)), undefined)
  assert.equal(sniffed(bytes('hi', 0)), undefined)
  assert.equal(sniffed(bytes(0xff, 0xfe, 'h', 0, 'i', 0)), undefined)
  assert.equal(sniffed(bytes('<html>'), 'image/png'), undefined)
  assert.equal(sniffed(bytes('hello'), 'application/pdf'), undefined)
  assert.equal(sniffed(bytes('hello'), 'image/bmp'), undefined)
})
