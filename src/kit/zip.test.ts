import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { AppError } from '../errors/app-error.ts'
import { readZip, zipLimits } from './zip-reader.ts'
import { writeZip } from './zip-writer.ts'

const text = (value: string) => Buffer.from(value)
const zipOf = (files: Record<string, string>) =>
  writeZip(Object.entries(files).map(([path, body]) => ({ path, body: text(body) })))
const directoryOf = (zip: Buffer) => zip.indexOf(Buffer.from([0x50, 0x4b, 1, 2]))

function refused(zip: Buffer, code: string, limits = zipLimits): void {
  assert.throws(
    () => readZip(zip, limits),
    (error: AppError) => {
      assert.equal(error.code, code, error.message)
      return true
    },
  )
}

describe('a zip archive', () => {
  test('gives back what was packed, whatever the names and contents', () => {
    const name = fc.stringMatching(/^[a-z][a-z0-9]{0,8}$/)
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.tuple(name, fc.uint8Array({ maxLength: 3000 })), {
          selector: ([path]) => path,
          maxLength: 8,
        }),
        (files) => {
          const packed = writeZip(files.map(([path, body]) => ({ path: `top/${path}`, body })))
          assert.deepEqual(
            readZip(packed),
            files.map(([path, body]) => ({ path: `top/${path}`, body: Buffer.from(body) })),
          )
        },
      ),
      { numRuns: 50 },
    )
  })

  test('of another program is read, and ours is read by another program', (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'polylog-zip-'))
    try {
      const ours = join(folder, 'ours.zip')
      writeFileSync(ours, zipOf({ 'a/b.txt': 'hello', 'c.txt': '' }))
      const script = [
        'import sys, zipfile',
        'print(zipfile.ZipFile(sys.argv[1]).testzip(), zipfile.ZipFile(sys.argv[1]).read("a/b.txt").decode())',
        'made = zipfile.ZipFile(sys.argv[2], "w", zipfile.ZIP_DEFLATED)',
        'made.writestr("top/é.txt", "x" * 5000)',
        'made.close()',
      ].join('\n')
      const theirs = join(folder, 'theirs.zip')
      let said: string
      try {
        said = execFileSync('python3', ['-c', script, ours, theirs], { encoding: 'utf8' })
      } catch {
        t.skip('there is no other program here')
        return
      }

      assert.equal(said, 'None hello\n')
      assert.deepEqual(readZip(execFileSync('cat', [theirs])), [{ path: 'top/é.txt', body: text('x'.repeat(5000)) }])
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  test('with a path that leads out, or that systems read differently, is refused', () => {
    const paths = ['../x', 'a/../../x', '/etc/x', 'a\\..\\x', 'C:/x', 'a//x', './x', 'a/./x', 'a\0b', 'a\nb', '']
    for (const path of paths) refused(zipOf({ [path]: 'x' }), 'archive_unsafe_path')
  })

  test('with a link or a device in it is refused', () => {
    for (const mode of [0o120777, 0o020666, 0o060666, 0o010666]) {
      const zip = zipOf({ 'a/link': '/etc/passwd' })
      const at = directoryOf(zip)
      zip.writeUInt8(3, at + 5)
      zip.writeUInt32LE(mode * 0x10000, at + 38)
      refused(zip, 'archive_has_links')
    }
  })

  test('that says it is small and is not, is refused without unpacking it', () => {
    const zip = writeZip([{ path: 'a', body: Buffer.alloc(4_000_000) }])
    zip.writeUInt32LE(10, directoryOf(zip) + 24)
    refused(zip, 'archive_bomb')
  })

  test('that unpacks to far more than its size, or to too much in all, is refused', () => {
    refused(writeZip([{ path: 'a', body: Buffer.alloc(4_000_000) }]), 'archive_bomb')
    refused(zipOf({ a: 'x'.repeat(60), b: 'y'.repeat(60) }), 'archive_bomb', { ...zipLimits, totalBytesMax: 100 })
  })

  test('whose files share bytes is refused', () => {
    const zip = zipOf({ aa: 'same', ab: 'same' })
    const second = zip.indexOf(Buffer.from([0x50, 0x4b, 1, 2]), directoryOf(zip) + 4)
    // Both entries name the first file's place, and its name.
    zip.writeUInt32LE(0, second + 42)
    refused(zip, 'archive_invalid')
  })

  test('one of whose files lies inside another is refused', () => {
    // `a` is stored and holds the whole of `b`, header and all; the directory lists both.
    const inner = writeZip([{ path: 'b', body: text('small') }])
    const innerDirectory = directoryOf(inner)
    const whole = inner.subarray(0, innerDirectory)
    const outer = writeZip([{ path: 'a', body: whole }])
    const header = Buffer.from(outer.subarray(0, 31))
    header.writeUInt16LE(0, 8)
    header.writeUInt32LE(whole.length, 18)
    const entryA = Buffer.from(outer.subarray(directoryOf(outer), directoryOf(outer) + 47))
    entryA.writeUInt16LE(0, 10)
    entryA.writeUInt32LE(whole.length, 20)
    const entryB = Buffer.from(inner.subarray(innerDirectory, innerDirectory + 47))
    entryB.writeUInt32LE(header.length, 42)
    const end = Buffer.from(outer.subarray(-22))
    end.writeUInt16LE(2, 8)
    end.writeUInt16LE(2, 10)
    end.writeUInt32LE(entryA.length + entryB.length, 12)
    end.writeUInt32LE(header.length + whole.length, 16)
    refused(Buffer.concat([header, whole, entryA, entryB, end]), 'archive_bomb')
  })

  test('with too many files is refused', () => {
    const many = Object.fromEntries(Array.from({ length: 501 }, (_, index) => [`f${index}`, '']))
    refused(zipOf(many), 'archive_too_many_files')
  })

  test('with the same name twice, also for systems that ignore case, is refused', () => {
    refused(
      writeZip([
        { path: 'a', body: text('1') },
        { path: 'a', body: text('2') },
      ]),
      'archive_invalid',
    )
    refused(zipOf({ 'A/b': '1', 'a/B': '2' }), 'archive_invalid')
    refused(zipOf({ a: '1', 'a/b': '2' }), 'archive_invalid')
  })

  test('that is encrypted, damaged, cut off, empty or something else is refused', () => {
    const good = zipOf({ a: 'hello hello hello' })
    const encrypted = Buffer.from(good)
    encrypted.writeUInt16LE(0x801, directoryOf(good) + 8)
    const damaged = Buffer.from(good)
    damaged.writeUInt32LE(1, directoryOf(good) + 16)
    const bzip = Buffer.from(good)
    bzip.writeUInt16LE(12, directoryOf(good) + 10)
    const zip64 = Buffer.from(good)
    zip64.writeUInt32LE(0xffffffff, directoryOf(good) + 24)
    const otherName = Buffer.from(good)
    otherName.write('b', 30)
    for (const zip of [
      encrypted,
      damaged,
      bzip,
      zip64,
      otherName,
      good.subarray(0, -1),
      Buffer.alloc(0),
      text('hello'),
      Buffer.concat([good, text('x')]),
    ]) {
      refused(zip, 'archive_invalid')
    }
  })

  test('with any byte changed is refused as an archive, or gives files, and never fails otherwise', () => {
    const good = zipOf({ 'top/a.txt': 'hello hello hello', 'top/b.txt': 'x' })
    for (let at = 0; at < good.length; at++) {
      for (const change of [0x01, 0x80, 0xff]) {
        const changed = Buffer.from(good)
        changed.writeUInt8((changed.readUInt8(at) ^ change) & 0xff, at)
        try {
          readZip(changed)
        } catch (error) {
          assert.ok(error instanceof AppError && error.code.startsWith('archive_'), `${at}: ${String(error)}`)
        }
      }
    }
  })
})
