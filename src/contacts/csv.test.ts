// Reading and writing CSV files of contacts: exports of known programs, broken rows,
// bounds, formulas, and the round trip.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { turnsDuring } from '../../test/support/turns-during.ts'
import fc from 'fast-check'
import { draftArbitrary, draftOf } from '../../test/support/contact-drafts.ts'
import type { ContactDraft, FileEntry } from './contact-draft.ts'
import { csvHeader, csvLimits, csvRow, readCsv } from './csv.ts'

async function read(file: string | Uint8Array, options: Parameters<typeof readCsv>[1] = {}): Promise<FileEntry[]> {
  return await Array.fromAsync(readCsv(typeof file === 'string' ? Buffer.from(file) : file, options))
}

async function contacts(file: string | Uint8Array): Promise<ContactDraft[]> {
  return (await read(file)).map((entry) => (entry.ok ? entry.contact : assert.fail(entry.reason)))
}

test('an export of Google is read, with its labels and several values in a cell', async () => {
  const file = [
    'First Name,Middle Name,Last Name,Nickname,Organization Name,Organization Title,Birthday,Notes,Labels,E-mail 1 - Label,E-mail 1 - Value,E-mail 2 - Value,Phone 1 - Label,Phone 1 - Value',
    'Anna,M.,Smith,Ann,Example,Engineer,1985-04-12,"a, ""b""\nc",* myContacts ::: friends,Home,a@example.com ::: b@example.com,c@example.com,Mobile,+1 555',
  ].join('\r\n')

  assert.deepEqual(await contacts(file), [
    {
      uid: null,
      name: 'Anna M. Smith',
      alias: 'Ann',
      email: 'a@example.com',
      phone: '+1 555',
      company: 'Example',
      position: 'Engineer',
      note: 'a, "b"\nc',
      tags: ['friends'],
      birthday: '1985-04-12',
      otherEmails: ['b@example.com', 'c@example.com'],
      otherPhones: [],
    },
  ])
})

test('an export of Outlook in Chinese, with semicolons and in GB18030, is read', async () => {
  // 姓;名;公司;职务;电子邮件地址;移动电话;商务电话;类别;生日 and 张;三;示例;经理;…;同事;1990/5/17 in GB18030.
  const header =
    'd0d53bc3fb3bb9abcbbe3bd6b0cef13bb5e7d7d3d3cabcfeb5d8d6b73bd2c6b6afb5e7bbb03bc9cccef1b5e7bbb03bc0e0b1f03bc9fac8d5'
  const row =
    'd5c53bc8fd3bcabec0fd3bbeadc0ed3b7a73406578616d706c652e636f6d3b3133383b3133393bcdaccac23b313939302f352f3137'
  const file = Buffer.from(`${header}0d0a${row}`, 'hex')

  const [entry] = await read(file, { charset: 'gb18030' })

  assert.deepEqual(
    entry?.ok === true && entry.contact,
    draftOf({
      name: '张三',
      company: '示例',
      position: '经理',
      email: 'zs@example.com',
      phone: '138',
      otherPhones: ['139'],
      tags: ['同事'],
      birthday: '1990-05-17',
    }),
  )
  await assert.rejects(read(file), { code: 'contact_file_invalid', message: /not UTF-8 text/ })
  await assert.rejects(read(file, { charset: 'nonsense' }), { code: 'contact_file_invalid', message: /nonsense/ })
})

test('the delimiter is found in the header, or taken from the line with which Excel states it', async () => {
  const files = [
    '姓名,邮箱\n张三,z@example.com',
    '\uFEFFname;"e-mail, first"\n张三;x',
    'name\temail\r张三\tz@example.com',
    'sep=;\r\nname;email\r\n张三;z@example.com',
    'name\n张三',
  ]
  for (const file of files) assert.equal((await contacts(file))[0]?.name, '张三', file)
  assert.equal((await contacts(Buffer.from('\uFEFFname\temail\n张三\tz@example.com', 'utf16le')))[0]?.name, '张三')
})

test('rows are numbered by the lines of the file, with cells of several lines, empty rows and mixed line ends', async () => {
  const file = 'name,note\r\n"a","x\ny"\n\n,,\nb,\r\n,only a note\nc'

  assert.deepEqual(
    (await read(file)).map((entry) => [entry.index, entry.line, entry.ok ? entry.contact.name : entry.reason]),
    [
      [0, 2, 'a'],
      [1, 6, 'b'],
      [2, 7, 'The row has no name, nickname, company or email.'],
      [3, 8, 'c'],
    ],
  )
})

test('a wrong quote is read as a character, and a quote that is never closed is reported', async () => {
  const entries = await read('name,email\n"a"x,1\nb,2\n"c,3\n')

  assert.deepEqual(
    entries.map((entry) => [entry.line, entry.ok ? entry.contact.name : entry.reason]),
    [
      [2, '"a"x'],
      [3, 'b'],
      [4, 'A quote is opened and never closed. The rows after it could not be read.'],
    ],
  )
})

test('a file is refused if it is empty, or if no column can be a name', async () => {
  await assert.rejects(read(''), { code: 'contact_file_invalid', message: /empty/ })
  await assert.rejects(read('phone,notes\n1,2'), {
    code: 'contact_file_invalid',
    details: { columns: ['phone', 'notes'] },
  })
})

test('files, rows, columns and cells beyond the bounds are refused', async () => {
  const limits = { bytes: 1000, rows: 2, columns: 3, rowChars: 100 }
  const reasons = async (file: string) =>
    (await read(file, { limits })).map((entry) => (entry.ok ? entry.contact.name : entry.reason))

  await assert.rejects(read('x'.repeat(1001), { limits }), { code: 'body_too_large' })
  await assert.rejects(read('name,a,b,c\n', { limits }), { code: 'contact_file_invalid', message: /3 columns/ })
  assert.match((await reasons('name\na\nb\nc\nd'))[2] ?? '', /more than 2 rows/)
  assert.equal((await reasons('name\na\nb\nc\nd')).length, 3)
  assert.match((await reasons(`name\n${'x'.repeat(200)}\nb`))[0] ?? '', /longer than 100/)
  assert.deepEqual(await reasons('name,a\nx,1,2,3,4,5'), ['x'])
})

test('a cell that a spreadsheet would run as a formula gets an apostrophe, which the reader removes', async () => {
  const draft = draftOf({ name: '=1+1', company: '@x', position: "'=y", phone: '+86 138', note: '-', alias: "'plain" })
  const text = csvRow(draft)

  assert.equal(text, ",'=1+1,'plain,,'+86 138,'@x,''=y,,'-,,,\r\n")
  assert.deepEqual(await contacts(csvHeader() + text), [draft])
})

test('any contact that is written is read back the same', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(draftArbitrary, { maxLength: 4 }), async (drafts) => {
      // Google's separator and the mark of its own groups are understood on reading, so they are not kept in lists.
      const google = (text: string) => text.includes(':::') || text.startsWith('* ')
      fc.pre(
        !drafts.some(({ tags, email, otherEmails, phone, otherPhones }) =>
          [...tags, email ?? '', ...otherEmails, phone ?? '', ...otherPhones].some(google),
        ),
      )
      assert.deepEqual(await contacts(csvHeader() + drafts.map(csvRow).join('')), drafts)
    }),
    { numRuns: 200 },
  )
})

test('any text gives rows or a clear refusal, never another error', async () => {
  const piece = fc.constantFrom(
    'name',
    'email',
    ',',
    ';',
    '\t',
    '"',
    '""',
    "'",
    '=',
    '\n',
    '\r\n',
    '\r',
    'sep=;',
    ' ',
    '张',
    '\0',
    '😀',
  )
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 40 }), async (pieces) => {
      const file = pieces.join('')
      try {
        const lines = (await read(`name,email\n${file}`)).map(({ line }) => line)
        assert.deepEqual(
          lines,
          lines.toSorted((left, right) => left - right),
        )
        await read(file)
      } catch (error) {
        assert.equal((error as { code?: string }).code, 'contact_file_invalid', String(error))
      }
    }),
    { numRuns: 300 },
  )
})

test('a large file leaves time for other work while it is read', async () => {
  const file = `name\n${'a\n'.repeat(40_000)}`
  const entries = readCsv(Buffer.from(file), { limits: { ...csvLimits, rows: 100_000 } })
  const { result, turns } = await turnsDuring(Array.fromAsync(entries))

  assert.ok(result.every(({ ok }) => ok))
  // One turn for each piece of 16 KiB, at least.
  assert.ok(turns >= Math.floor(file.length / (16 * 1024)), `${turns} turns`)
})

test('a row with very many cells leaves time for other work, too', async () => {
  const cells = 200_000
  const file = Buffer.from(`name\n${','.repeat(cells)}x\n${','.repeat(cells)}\nBob\n`)
  const { result: rows, turns } = await turnsDuring(Array.fromAsync(readCsv(file)))

  assert.deepEqual(
    rows.map(({ ok, line }) => [ok, line]),
    [
      [false, 2],
      [true, 4],
    ],
  )
  const pieces = Math.ceil((2 * cells) / (16 * 1024))
  // Ten for the check of each row, besides those for the pieces of the file.
  assert.ok(turns >= pieces + 20, `${turns} turns, ${pieces} pieces`)
})
