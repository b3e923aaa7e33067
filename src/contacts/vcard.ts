// Reads and writes contacts as vCards: 2.1 (read only), 3.0 and 4.0. The reader pauses
// regularly, so that a large file does not block the event loop. A card that cannot be
// used is reported with its index and the reason; the other cards are still read. No npm
// package reads all three versions and reports each broken card, so it is done here.

import { AppError } from '../errors/app-error.ts'
import { nextTurn } from '../kit/turns.ts'
import {
  type ContactDraft,
  distinctTrimmed,
  type FileEntry,
  joinedName,
  listItemsMax,
  normalBirthday,
} from './contact-draft.ts'
import { charsetOfMark, decodeFile } from './file-text.ts'
import {
  type ContentLine,
  decodeLine,
  escaped,
  folded,
  type RawLine,
  rawLines,
  splitEscaped,
  unescaped,
} from './vcard-lines.ts'

export type VCardVersion = '3.0' | '4.0'
export type VCardLimits = { bytes: number; cards: number; linesOfCard: number }

export const vcardLimits: VCardLimits = { bytes: 8 * 1024 * 1024, cards: 20_000, linesOfCard: 1_000 }

const used = new Set('BEGIN END VERSION FN N NICKNAME EMAIL TEL ORG TITLE NOTE CATEGORIES BDAY UID'.split(' '))
const readVersions = new Set(['2.1', '3.0', '4.0'])

type OpenCard = { index: number; line: number; lines: ContentLine[]; problem: string | null }

/** The cards of a file, in its order. */
export async function* readVCards(file: Uint8Array, limits: VCardLimits = vcardLimits): AsyncGenerator<FileEntry> {
  if (file.byteLength > limits.bytes) {
    throw new AppError('body_too_large', `The file is larger than ${limits.bytes} bytes. Split it.`)
  }
  let count = 0
  for (const card of openCards(file, limits)) {
    if (card === null) {
      await nextTurn()
      continue
    }
    if (card.index >= limits.cards) {
      const reason = `The file has more than ${limits.cards} cards. This card and the following ones were not read: split the file.`
      yield { ok: false, index: card.index, line: card.line, name: null, reason }
      return
    }
    count += 1
    yield readCard(card)
  }
  if (count === 0) {
    yield { ok: false, index: 0, line: 1, name: null, reason: 'The file has no vCard: no line says BEGIN:VCARD.' }
  }
}

/** Null where the caller may pause. */
function* openCards(file: Uint8Array, limits: VCardLimits): Generator<OpenCard | null> {
  let open: OpenCard | undefined
  let index = 0
  for (const line of rawLines(bytesOf(file), used)) {
    if (line === null) {
      yield null
      continue
    }
    const marks = line.value?.trim().toUpperCase() === 'VCARD' ? line.name : ''
    if (marks === 'BEGIN') {
      if (open !== undefined) yield { ...open, problem: open.problem ?? 'The card has no END:VCARD.' }
      open = { index, line: line.line, lines: [], problem: null }
      index += 1
    } else if (marks === 'END') {
      if (open !== undefined) yield open
      open = undefined
    } else if (open !== undefined && open.problem === null) addLine(open, line, limits)
    // Text between cards is skipped, and so is the rest of a card that is already refused.
  }
  if (open !== undefined) yield { ...open, problem: open.problem ?? 'The file ends before END:VCARD.' }
}

function addLine(card: OpenCard, line: RawLine, limits: VCardLimits): void {
  if (card.lines.length >= limits.linesOfCard) {
    card.problem = `The card has more than ${limits.linesOfCard} lines.`
    return
  }
  const decoded = decodeLine(line)
  if ('problem' in decoded) card.problem = decoded.problem
  else card.lines.push(decoded)
}

/** The file as a string with one character per byte, in UTF-8 if its byte order mark says UTF-16. */
function bytesOf(file: Uint8Array): string {
  const buffer = Buffer.from(file.buffer, file.byteOffset, file.byteLength)
  const mark = charsetOfMark(file)
  if (mark === undefined) return buffer.toString('latin1')
  return mark === 'utf-8' ? buffer.toString('latin1', 3) : Buffer.from(decodeFile(file, undefined)).toString('latin1')
}

function readCard(card: OpenCard): FileEntry {
  const { index, line, lines } = card
  const name = cardName(lines)
  const refuse = (reason: string): FileEntry => ({ ok: false, index, line, name: name?.slice(0, 200) ?? null, reason })
  if (card.problem !== null) return refuse(card.problem)
  const version = firstText(lines, 'VERSION')
  if (version !== null && !readVersions.has(version)) {
    return refuse(`The card has version ${version.slice(0, 20)}. Versions 2.1, 3.0 and 4.0 can be read.`)
  }
  if (name === null) return refuse('The card has no name: FN, N, NICKNAME, ORG and EMAIL are missing or empty.')
  const emails = addresses(lines, 'EMAIL', 'mailto:')
  const phones = addresses(lines, 'TEL', 'tel:')
  return {
    ok: true,
    index,
    line,
    contact: {
      uid: firstText(lines, 'UID'),
      name,
      alias: all(lines, 'NICKNAME').flatMap(({ value }) => distinctTrimmed(splitEscaped(value, ',')))[0] ?? null,
      email: emails[0] ?? null,
      phone: phones[0] ?? null,
      company: companyOf(lines),
      position: firstText(lines, 'TITLE'),
      note:
        all(lines, 'NOTE')
          .map(textOf)
          .filter((text) => text !== '')
          .join('\n') || null,
      tags: distinctTrimmed(all(lines, 'CATEGORIES').flatMap(({ value }) => splitEscaped(value, ','))),
      birthday: birthdayOf(lines),
      otherEmails: emails.slice(1),
      otherPhones: phones.slice(1),
    },
  }
}

function all(lines: readonly ContentLine[], name: string): ContentLine[] {
  return lines.filter((line) => line.name === name)
}

function textOf(line: ContentLine): string {
  return unescaped(line.value).replaceAll(/\r\n?/g, '\n').trim()
}

function firstText(lines: readonly ContentLine[], name: string): string | null {
  for (const line of all(lines, name)) {
    const text = textOf(line)
    if (text !== '') return text
  }
  return null
}

/** FN, else the parts of N, else what a list of contacts would show instead. */
function cardName(lines: readonly ContentLine[]): string | null {
  const full = firstText(lines, 'FN')
  if (full !== null) return full
  for (const { value } of all(lines, 'N')) {
    const [family = '', given = '', middle = '', prefix = '', suffix = ''] = splitEscaped(value, ';').map((part) =>
      part.trim(),
    )
    const joined = joinedName({ family, given, middle, prefix, suffix })
    if (joined !== null) return joined
  }
  return firstText(lines, 'NICKNAME') ?? companyOf(lines) ?? addresses(lines, 'EMAIL', 'mailto:')[0] ?? null
}

/** The organisation without its departments, because contacts of one company are found by it. */
function companyOf(lines: readonly ContentLine[]): string | null {
  return all(lines, 'ORG').flatMap(({ value }) => distinctTrimmed(splitEscaped(value, ';').slice(0, 1)))[0] ?? null
}

/** The preferred one first, else the order of the card. */
function addresses(lines: readonly ContentLine[], name: string, scheme: string): string[] {
  const ranked = all(lines, name).map((line, order) => {
    const text = textOf(line)
    const address = text.toLowerCase().startsWith(scheme) ? text.slice(scheme.length) : text
    return { address, rank: preference(line), order }
  })
  ranked.sort((left, right) => left.rank - right.rank || left.order - right.order)
  return distinctTrimmed(ranked.map(({ address }) => address))
}

/** `PREF=1` is the most preferred of vCard 4.0, `TYPE=pref` says the same in 2.1 and 3.0. 101: not preferred. */
function preference(line: ContentLine): number {
  const rank = Number(line.parameters.get('PREF')?.[0] ?? Number.NaN)
  if (Number.isInteger(rank) && rank >= 1 && rank <= 100) return rank
  return line.parameters.get('TYPE')?.some((type) => type.toLowerCase() === 'pref') === true ? 1 : 101
}

/** Apple writes a birthday without a year with a year that its parameter says to leave out. */
function birthdayOf(lines: readonly ContentLine[]): string | null {
  for (const line of all(lines, 'BDAY')) {
    const date = normalBirthday(line.value)
    if (date === null) continue
    return line.parameters.get('X-APPLE-OMIT-YEAR')?.[0] === date.slice(0, 4) ? `--${date.slice(5)}` : date
  }
  return null
}

/** One card, with CRLF line ends. What the reader makes of it is the same contact. */
export function writeVCard(contact: ContactDraft, version: VCardVersion): string {
  const name = clean(contact.name)
  const lastSpace = name.lastIndexOf(' ')
  const given = lastSpace < 0 ? '' : name.slice(0, lastSpace)
  const text = (property: string, value: string | null) => {
    const cleaned = value === null ? '' : clean(value)
    return cleaned === '' ? [] : [`${property}:${escaped(cleaned)}`]
  }
  const several = (property: string, first: string | null, others: readonly string[]) => {
    const preferred = version === '4.0' ? ';PREF=1' : ';TYPE=PREF'
    const rest = others.slice(0, listItemsMax)
    return [
      ...text(rest.length > 0 ? `${property}${preferred}` : property, first),
      ...rest.flatMap((value) => text(property, value)),
    ]
  }
  const tags = distinctTrimmed(contact.tags.map(clean)).map(escaped)
  const lines = [
    'BEGIN:VCARD',
    `VERSION:${version}`,
    ...text('UID', contact.uid),
    `FN:${escaped(name)}`,
    `N:${escaped(name.slice(lastSpace + 1))};${escaped(given)};;;`,
    ...text('NICKNAME', contact.alias),
    ...several('EMAIL', contact.email, contact.otherEmails),
    ...several('TEL', contact.phone, contact.otherPhones),
    ...text('ORG', contact.company),
    ...text('TITLE', contact.position),
    ...text('NOTE', contact.note),
    ...(tags.length === 0 ? [] : [`CATEGORIES:${tags.join(',')}`]),
    ...birthdayLine(contact.birthday, version),
    'END:VCARD',
  ]
  return lines.map(folded).join('')
}

function birthdayLine(birthday: string | null, version: VCardVersion): string[] {
  const date = birthday === null ? null : normalBirthday(birthday)
  if (date === null) return []
  if (version === '4.0')
    return [`BDAY:${date.startsWith('--') ? `--${date.slice(2).replace('-', '')}` : date.replaceAll('-', '')}`]
  return date.startsWith('--') ? [`BDAY;X-APPLE-OMIT-YEAR=1604:1604-${date.slice(2)}`] : [`BDAY:${date}`]
}

const control = /(?![\n\t])\p{Cc}/gu

/** Without control characters, which a vCard cannot hold, and without spaces at its ends. */
function clean(text: string): string {
  return text.toWellFormed().replaceAll(/\r\n?/g, '\n').replaceAll(control, '').trim()
}
