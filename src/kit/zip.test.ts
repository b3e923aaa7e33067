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

async function refused(zip: Buffer, code: string, limits = zipLimits): Promise<void> {
  await assert.rejects(
    async () => await readZip(zip, limits),
    (error: AppError) => {
      assert.equal(error.code, code, error.message)
      return true
    },
  )
}

describe('a zip archive', () => {
  test('gives back what was packed, whatever the names and contents', async () => {
    const name = fc.stringMatching(/^[a-z][a-z0-9]{0,8}$/)
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.tuple(name, fc.uint8Array({ maxLength: 3000 })), {
          selector: ([path]) => path,
          maxLength: 8,
        }),
        async (files) => {
          const packed = writeZip(files.map(([path, body]) => ({ path: `top/${path}`, body })))
          assert.deepEqual(
            await readZip(packed),
            files.map(([path, body]) => ({ path: `top/${path}`, body: Buffer.from(body) })),
          )
        },
      ),
      { numRuns: 50 },
    )
  })

  test('of another program is read, and ours is read by another program', async (t) => {
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
      assert.deepEqual(await readZip(execFileSync('cat', [theirs])), [
        { path: 'top/é.txt', body: text('x'.repeat(5000)) },
      ])
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  test('with a path that leads out, or that systems read differently, is refused', async () => {
    const paths = ['../x', 'a/../../x', '/etc/x', 'a\\..\\x', 'C:/x', 'a//x', './x', 'a/./x', 'a\0b', 'a\nb', '']
    for (const path of paths) await refused(zipOf({ [path]: 'x' }), 'archive_unsafe_path')
  })

  test('with a link or a device in it is refused', async () => {
    for (const mode of [0o120777, 0o020666, 0o060666, 0o010666]) {
      const zip = zipOf({ 'a/link': '/etc/passwd' })
      const at = directoryOf(zip)
      zip.writeUInt8(3, at + 5)
      zip.writeUInt32LE(mode * 0x10000, at + 38)
      await refused(zip, 'archive_has_links')
    }
  })

  test('that says it is small and is not, is refused without unpacking it', async () => {
    const zip = writeZip([{ path: 'a', body: Buffer.alloc(4_000_000) }])
    zip.writeUInt32LE(10, directoryOf(zip) + 24)
    await refused(zip, 'archive_bomb')
    // Now both headers state the wrong size.
    zip.writeUInt32LE(10, 22)
    await refused(zip, 'archive_bomb')
  })

  test('whose two headers of a file differ is refused, because other programs would read another file', async () => {
    const good = zipOf({ a: 'hello hello hello' })
    const local = { flags: 6, method: 8, crc: 14, packedSize: 18, size: 22 }
    for (const [field, at] of Object.entries(local)) {
      const zip = Buffer.from(good)
      zip.writeUInt8(field === 'flags' ? 0 : zip.readUInt8(at) - 1, field === 'flags' ? at + 1 : at)
      await refused(zip, 'archive_invalid')
    }
  })

  test('with bytes behind the end of a packed file is refused', async () => {
    const good = zipOf({ a: 'hello hello hello' })
    const directory = directoryOf(good)
    const zip = Buffer.concat([good.subarray(0, directory), text('x'), good.subarray(directory)])
    for (const at of [18, directory + 1 + 20]) zip.writeUInt32LE(zip.readUInt32LE(at) + 1, at)
    zip.writeUInt32LE(directory + 1, zip.length - 6)
    await refused(zip, 'archive_invalid')
  })

  test('that was written without knowing the sizes beforehand is read', async () => {
    const good = zipOf({ a: 'hello hello hello' })
    const directory = directoryOf(good)
    const streamed = Buffer.from(good)
    for (const at of [6, directory + 8]) streamed.writeUInt16LE(0x808, at)
    streamed.fill(0, 14, 26)
    // The zip64 field of the local header has the sizes; the directory needs none.
    const extra = Buffer.alloc(20)
    extra.writeUInt16LE(1, 0)
    extra.writeUInt16LE(16, 2)
    extra.writeBigUInt64LE(BigInt(good.readUInt32LE(22)), 4)
    extra.writeBigUInt64LE(BigInt(good.readUInt32LE(18)), 12)
    const zip64 = Buffer.concat([good.subarray(0, 31), extra, good.subarray(31)])
    zip64.fill(0xff, 18, 26)
    zip64.writeUInt16LE(extra.length, 28)
    zip64.writeUInt32LE(directory + extra.length, zip64.length - 6)
    for (const zip of [streamed, zip64])
      assert.deepEqual(await readZip(zip), [{ path: 'a', body: text('hello hello hello') }])

    zip64.writeBigUInt64LE(1n, 35)
    await refused(zip64, 'archive_invalid')
    zip64.writeUInt16LE(2, 31)
    await refused(zip64, 'archive_invalid')
  })

  test('is unpacked while the server does other work', async () => {
    let done = false
    const read = readZip(zipOf({ a: 'hello' })).then(() => {
      done = true
    })
    // Work on the main thread would be done after these; work in another thread is reported in a later turn.
    for (let turn = 0; turn < 1000; turn++) await Promise.resolve()
    assert.equal(done, false)
    await read
    assert.equal(done, true)
  })

  test('that unpacks to far more than its size, or to too much in all, is refused', async () => {
    await refused(writeZip([{ path: 'a', body: Buffer.alloc(4_000_000) }]), 'archive_bomb')
    await refused(zipOf({ a: 'x'.repeat(60), b: 'y'.repeat(60) }), 'archive_bomb', { ...zipLimits, totalBytesMax: 100 })
  })

  test('whose files share bytes is refused', async () => {
    const zip = zipOf({ aa: 'same', ab: 'same' })
    const second = zip.indexOf(Buffer.from([0x50, 0x4b, 1, 2]), directoryOf(zip) + 4)
    // Both entries name the first file's place, and its name.
    zip.writeUInt32LE(0, second + 42)
    await refused(zip, 'archive_invalid')
  })

  test('one of whose files lies inside another is refused', async () => {
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
    await refused(Buffer.concat([header, whole, entryA, entryB, end]), 'archive_bomb')
  })

  test('that was packed on macOS has only the files that its user packed', async () => {
    const packed = zipOf({
      'top/SKILL.md': 'hello',
      'top/.DS_Store': 'window positions',
      '__MACOSX/._top': 'attributes',
      '__MACOSX/top/._SKILL.md': 'attributes',
      'top/__MACOSX.txt': 'mine',
    })

    assert.deepEqual(
      (await readZip(packed)).map(({ path }) => path),
      ['top/SKILL.md', 'top/__MACOSX.txt'],
    )
  })

  test('with too many files is refused', async () => {
    const many = Object.fromEntries(Array.from({ length: 501 }, (_, index) => [`f${index}`, '']))
    await refused(zipOf(many), 'archive_too_many_files')
  })

  test('with the same name twice, also for systems that ignore case, is refused', async () => {
    await refused(
      writeZip([
        { path: 'a', body: text('1') },
        { path: 'a', body: text('2') },
      ]),
      'archive_invalid',
    )
    await refused(zipOf({ 'A/b': '1', 'a/B': '2' }), 'archive_invalid')
    await refused(zipOf({ a: '1', 'a/b': '2' }), 'archive_invalid')
  })

  test('that is encrypted, damaged, cut off, empty or something else is refused', async () => {
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
      await refused(zip, 'archive_invalid')
    }
  })

  test('with any byte changed is refused as an archive, or gives files, and never fails otherwise', async () => {
    const good = zipOf({ 'top/a.txt': 'hello hello hello', 'top/b.txt': 'x' })
    for (let at = 0; at < good.length; at++) {
      for (const change of [0x01, 0x80, 0xff]) {
        const changed = Buffer.from(good)
        changed.writeUInt8((changed.readUInt8(at) ^ change) & 0xff, at)
        try {
          await readZip(changed)
        } catch (error) {
          assert.ok(error instanceof AppError && error.code.startsWith('archive_'), `${at}: ${String(error)}`)
        }
      }
    }
  })
})
