// Reading and writing vCards: real exports, broken cards, bounds, and the round trip.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { turnsDuring } from '../../test/support/turns-during.ts'
import fc from 'fast-check'
import { draftArbitrary, draftOf } from '../../test/support/contact-drafts.ts'
import type { ContactDraft, FileEntry } from './contact-draft.ts'
import { rawLines } from './vcard-lines.ts'
import { readVCards, vcardLimits, writeVCard } from './vcard.ts'

const bytes = (text: string) => Buffer.from(text)
const read = async (text: string | Uint8Array, limits = vcardLimits) =>
  await Array.fromAsync(readVCards(typeof text === 'string' ? bytes(text) : text, limits))

function contacts(entries: readonly FileEntry[]): ContactDraft[] {
  return entries.map((entry) => (entry.ok ? entry.contact : assert.fail(entry.reason)))
}

const card = (...lines: string[]) => ['BEGIN:VCARD', 'VERSION:3.0', ...lines, 'END:VCARD', ''].join('\r\n')

test('every field of a contact is read from a version 3.0 card', async () => {
  const [contact] = contacts(
    await read(
      card(
        'UID:urn:uuid:1',
        'N:Smith;Anna;;;',
        'FN:Anna Smith',
        'NICKNAME:Ann',
        'item1.EMAIL;type=INTERNET:anna@work.example',
        'EMAIL;TYPE=INTERNET,HOME,pref:anna@home.example',
        'TEL;TYPE=CELL:+1 555 0100',
        'ORG:Example\\, Inc.;Research',
        'TITLE:Engineer',
        'NOTE:line one\\nline two\\; with \\\\ and \\,',
        'CATEGORIES:friends,a\\,b, friends ',
        'BDAY:1985-04-12',
        'PHOTO;ENCODING=b:AAAA',
        ' BBBB',
      ),
    ),
  )

  assert.deepEqual(contact, {
    uid: 'urn:uuid:1',
    name: 'Anna Smith',
    alias: 'Ann',
    email: 'anna@home.example',
    phone: '+1 555 0100',
    company: 'Example, Inc.',
    position: 'Engineer',
    note: 'line one\nline two; with \\ and ,',
    tags: ['friends', 'a,b'],
    birthday: '1985-04-12',
    otherEmails: ['anna@work.example'],
    otherPhones: [],
  })
})

test('a version 4.0 card with URIs, ranks, quoted parameters and a birthday without a year is read', async () => {
  const text = [
    'begin:vcard',
    'version:4.0',
    'fn:李四',
    'email;pref=2:second@example.com',
    'EMAIL;PREF=1:mailto:first@example.com',
    'TEL;VALUE=uri;PREF=1;TYPE="cell,home;x:y":tel:+86-138-0000',
    'BDAY:--0229',
    'end:vcard',
  ].join('\n')

  const [contact] = contacts(await read(text))

  assert.equal(contact?.name, '李四')
  assert.deepEqual([contact?.email, contact?.otherEmails], ['first@example.com', ['second@example.com']])
  assert.equal(contact?.phone, '+86-138-0000')
  assert.equal(contact?.birthday, '--02-29')
})

test('a version 2.1 card in quoted-printable, with soft line breaks and its own charset, is read', async () => {
  const text = [
    'BEGIN:VCARD',
    'VERSION:2.1',
    'N;CHARSET=GBK;ENCODING=QUOTED-PRINTABLE:=D5=C5;=C8=FD',
    'NOTE;ENCODING=QUOTED-PRINTABLE;CHARSET=UTF-8:=E4=BD=A0=',
    '=E5=A5=BD 1=3D1',
    'TEL;CELL;PREF:138',
    'TEL;WORK:139',
    'END:VCARD',
  ].join('\r\n')

  const [contact] = contacts(await read(text))

  assert.equal(contact?.name, '张三')
  assert.equal(contact?.note, '你好 1=1')
  assert.deepEqual([contact?.phone, contact?.otherPhones], ['138', ['139']])
})

test('a line that is folded inside a UTF-8 character or inside its parameters is joined', async () => {
  const name = bytes('FN:张三')
  const inside = Buffer.concat([name.subarray(0, 4), bytes('\r\n '), name.subarray(4)])
  const file = Buffer.concat([
    bytes('BEGIN:VCARD\r\nVERSION:3.0\r\n'),
    inside,
    bytes('\r\nEMAIL;TYPE=INTERNET;X-LONG=\r\n a:b\r\n\t@example.com\r\nEND:VCARD\r\n'),
  ])

  const [contact] = contacts(await read(file))

  assert.equal(contact?.name, '张三')
  assert.equal(contact?.email, 'b@example.com')
})

test('a card without FN takes its name from N, else from what a list would show instead', async () => {
  const names = contacts(
    await read(
      [
        card('N:Smith;Anna;M.;Dr.;PhD'),
        card('N:欧阳;修;;;'),
        card('FN: ', 'NICKNAME:Annie'),
        card('ORG:Example'),
        card('EMAIL:who@example.com'),
      ].join(''),
    ),
  ).map(({ name }) => name)

  assert.deepEqual(names, ['Dr. Anna M. Smith PhD', '欧阳修', 'Annie', 'Example', 'who@example.com'])
})

test('a birthday that Apple wrote without a year has no year; one without a month is left out', async () => {
  const birthdays = contacts(
    await read(
      [
        card('FN:a', 'BDAY;X-APPLE-OMIT-YEAR=1604:1604-05-17'),
        card('FN:b', 'BDAY:1985'),
        card('FN:c', 'BDAY:19850231'),
        card('FN:d', 'BDAY:1985-04-12T00:00:00Z'),
      ].join(''),
    ),
  ).map(({ birthday }) => birthday)

  assert.deepEqual(birthdays, ['--05-17', null, null, '1985-04-12'])
})

test('files with a byte order mark are read, in UTF-8 and UTF-16', async () => {
  const text = card('FN:张三')
  const names = await Promise.all(
    [Buffer.from(`\uFEFF${text}`), Buffer.from(`\uFEFF${text}`, 'utf16le')].map(
      async (file) => contacts(await read(file))[0]?.name,
    ),
  )

  assert.deepEqual(names, ['张三', '张三'])
})

test('each card that cannot be used is reported with its index, line and reason, and the others are read', async () => {
  const text = [
    card('FN:first'),
    'BEGIN:VCARD\r\nVERSION:3.0\r\nFN:no end\r\n',
    card('TEL:1'),
    card('FN:old').replace('3.0', '1.0'),
    card('FN:strange', 'NOTE;CHARSET=nonsense:x'),
    card('FN:last'),
    'BEGIN:VCARD\r\nFN:torn',
  ].join('')
  const latin = Buffer.concat([bytes(text), bytes('\r\n')])

  const entries = await read(latin)

  assert.deepEqual(
    entries.map((entry) => (entry.ok ? entry.contact.name : [entry.index, entry.line, entry.name, entry.reason])),
    [
      'first',
      [1, 5, 'no end', 'The card has no END:VCARD.'],
      [2, 8, null, 'The card has no name: FN, N, NICKNAME, ORG and EMAIL are missing or empty.'],
      [3, 12, 'old', 'The card has version 1.0. Versions 2.1, 3.0 and 4.0 can be read.'],
      [4, 16, 'strange', 'NOTE is in the unknown charset "nonsense".'],
      'last',
      [6, 25, 'torn', 'The file ends before END:VCARD.'],
    ],
  )
})

test('a value that is not text in its charset is refused, not stored as wrong characters', async () => {
  const file = Buffer.concat([bytes('BEGIN:VCARD\r\nFN:'), Buffer.from([0xd5, 0xc5]), bytes('\r\nEND:VCARD\r\n')])

  const [entry] = await read(file)

  assert.deepEqual(entry, {
    ok: false,
    index: 0,
    line: 1,
    name: null,
    reason: 'FN is not UTF-8 text. Save the file as UTF-8.',
  })
})

test('a file without a card says so, and cards beyond the bounds are not read', async () => {
  assert.match(reasonOf((await read('hello'))[0]), /no vCard/)
  const three = card('FN:a') + card('FN:b') + card('FN:c')
  const counted = await read(three, { ...vcardLimits, cards: 2 })
  assert.equal(counted.length, 3)
  assert.match(reasonOf(counted[2]), /more than 2 cards/)
  const long = card('FN:a', ...Array.from({ length: 5 }, () => 'TEL:1'))
  assert.match(reasonOf((await read(long, { ...vcardLimits, linesOfCard: 4 }))[0]), /more than 4 lines/)
  assert.match(reasonOf((await read(card('FN:a', `NOTE:${'x'.repeat(70_000)}`)))[0]), /NOTE is longer than/)
  await assert.rejects(read(three, { ...vcardLimits, bytes: 10 }), { code: 'body_too_large' })
  // A photo is longer than any line that is read, and is skipped.
  assert.equal((await read(card('FN:a', `PHOTO:${'x'.repeat(200_000)}`)))[0]?.ok, true)
})

function reasonOf(entry: FileEntry | undefined): string {
  return entry?.ok === false ? entry.reason : assert.fail('a refused entry was expected')
}

test('a written card has CRLF line ends and no line above 75 bytes, folded between characters', async () => {
  const text = writeVCard(draftOf({ name: '张三', note: '好'.repeat(100) }), '4.0')

  const lines = text.split('\r\n')
  assert.ok(lines.every((line) => Buffer.byteLength(line) <= 75))
  assert.ok(!text.replaceAll('\r\n', '').includes('\n'))
  assert.ok(lines.every((line) => !line.includes('\uFFFD') && line.isWellFormed()))
})

for (const version of ['3.0', '4.0'] as const) {
  test(`any contact that is written as version ${version} is read back the same`, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(draftArbitrary, { maxLength: 4 }), async (drafts) => {
        const file = drafts.map((draft) => writeVCard(draft, version)).join('')
        if (drafts.length > 0) assert.deepEqual(contacts(await read(file)), drafts)
      }),
      { numRuns: 300 },
    )
  })
}

test('any bytes are read without an exception, and each entry has an index of its own', async () => {
  const pieces = fc.constantFrom(
    'BEGIN:VCARD\r\n',
    'END:VCARD\r\n',
    'FN:x\r\n',
    ' fold',
    '\n',
    '=',
    'N;ENCODING=QUOTED-PRINTABLE:=E5=',
    ':',
    ';',
    '"',
    '\\',
    'é',
  )
  await fc.assert(
    fc.asyncProperty(fc.array(pieces, { maxLength: 60 }), async (parts) => {
      const entries = await read(parts.join(''))
      assert.deepEqual(
        entries.map(({ index }) => index),
        entries.map((_entry, at) => at),
      )
    }),
    { numRuns: 300 },
  )
})

test('a large file leaves time for other work while it is read', async () => {
  const lines = 50_000
  // Folded lines, skipped lines and lines of a card that is already refused.
  const card = `BEGIN:VCARD\n${' x\n'.repeat(lines)}${'A:b\n'.repeat(lines)}${'FN:x\n'.repeat(lines)}END:VCARD\n`
  const { turns } = await turnsDuring(read(card))

  assert.ok(turns >= (3 * lines) / 1000 - 1, `${turns} turns`)
})

test('the reader pauses after so many bytes, also if the lines are long, and after so many lines, also if they are empty', () => {
  const pauses = (text: string) => [...rawLines(text, new Set(['NOTE']))].filter((line) => line === null).length

  assert.equal(pauses(`NOTE:${'x'.repeat(50_000)}\n`.repeat(40)), 20)
  assert.equal(pauses('\n'.repeat(20_480)), 20)
  assert.equal(pauses(`NOTE:a\n${` ${'x'.repeat(50_000)}\n`.repeat(40)}`), 20)
})
