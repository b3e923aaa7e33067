// The line syntax of vCard files: folded lines, quoted-printable soft breaks, parameters,
// charsets, escapes. It works on bytes (a string with one character per byte), because some
// writers fold in the middle of a UTF-8 character. Each byte is looked at a constant number
// of times.

import { charsetIsKnown, decodeText } from './file-text.ts'

export type ContentLine = {
  /** Upper case, without the group (`item1.`). */
  name: string
  /** Upper-case names. A parameter without a name (vCard 2.1) is a TYPE or an ENCODING. */
  parameters: Map<string, string[]>
  /** Text; its escapes are not resolved. */
  value: string
}

/** A joined line before its value is decoded. */
export type RawLine = {
  name: string
  parameters: string
  /** One character per byte; null if it is too long. */
  value: string | null
  /** The first line of the file that belongs to it, counted from 1. */
  line: number
}

/** Longer lines are refused. Photos are longer, but the reader skips the properties that it does not use. */
const lineCharsMax = 64 * 1024
/** The part before the colon: name and parameters. A line without a colon in it is skipped. */
const headCharsMax = 4 * 1024

/** After this much of the file the reader offers its caller a pause. */
const charsBetweenPauses = 64 * 1024
/** A line takes as much work as this many characters, also if it is empty. */
const charsPerLine = 64

/** Yields the lines whose property is in `wanted`, and null where the caller may pause. `bytes` has one character per byte. */
export function* rawLines(bytes: string, wanted: ReadonlySet<string>): Generator<RawLine | null> {
  const lines = physicalLines(bytes)
  let unpaused = 0
  const isPause = (text: string): boolean => {
    unpaused += text.length + charsPerLine
    if (unpaused < charsBetweenPauses) return false
    unpaused = 0
    return true
  }
  let current = lines.next()
  while (!current.done) {
    const { text: first, line } = current.value
    const begun = splitHead(first)
    // The head itself may be folded. In that case the property is not known yet, and the line is kept.
    const skip = begun !== undefined && !wanted.has(begun.name)
    const printable = !skip && begun !== undefined && encodingOf(parametersOf(begun.parameters)) === quotedPrintable
    let joins = printable && first.endsWith('=')
    const parts = [joins ? first.slice(0, -1) : first]
    let size = first.length
    current = lines.next()
    while (!current.done && (joins || isContinuation(current.value.text))) {
      const next: string = joins ? current.value.text : current.value.text.slice(1)
      joins = printable && next.endsWith('=')
      size += next.length
      if (!skip && size <= lineCharsMax) parts.push(joins ? next.slice(0, -1) : next)
      if (isPause(next)) yield null
      current = lines.next()
    }
    if (isPause(first)) yield null
    if (skip) continue
    const whole = parts.join('')
    const head = splitHead(whole)
    if (head === undefined || !wanted.has(head.name)) continue
    const { name, parameters } = head
    yield { name, parameters, line, value: size > lineCharsMax ? null : whole.slice(head.valueAt) }
  }
}

function isContinuation(text: string): boolean {
  return text.startsWith(' ') || text.startsWith('\t')
}

const lineFeed = 10
const carriageReturn = 13

/** Lines end with CRLF, LF or CR. */
function* physicalLines(bytes: string): Generator<{ text: string; line: number }> {
  let start = 0
  let line = 1
  for (let at = 0; at < bytes.length; at += 1) {
    const code = bytes.charCodeAt(at)
    if (code !== lineFeed && code !== carriageReturn) continue
    yield { text: bytes.slice(start, at), line }
    if (code === carriageReturn && bytes.charCodeAt(at + 1) === lineFeed) at += 1
    start = at + 1
    line += 1
  }
  if (start < bytes.length) yield { text: bytes.slice(start), line }
}

type Head = { name: string; parameters: string; valueAt: number }

/** `group.name;parameters:value`. A colon inside a quoted parameter does not end the head. */
function splitHead(text: string): Head | undefined {
  let quoted = false
  let nameEnd = -1
  const end = Math.min(text.length, headCharsMax)
  for (let at = 0; at < end; at += 1) {
    const char = text[at]
    if (char === '"') quoted = !quoted
    else if (quoted) continue
    else if (char === ';' && nameEnd < 0) nameEnd = at
    else if (char === ':') {
      const full = text.slice(0, nameEnd < 0 ? at : nameEnd)
      const name = full.slice(full.lastIndexOf('.') + 1)
      const parameters = nameEnd < 0 ? '' : text.slice(nameEnd + 1, at)
      return { name: name.trim().toUpperCase(), parameters, valueAt: at + 1 }
    }
  }
  return undefined
}

const quotedPrintable = 'QUOTED-PRINTABLE'
const plainEncodings = new Set([quotedPrintable, 'BASE64', 'B', '7BIT', '8BIT'])

function parametersOf(text: string): Map<string, string[]> {
  const parameters = new Map<string, string[]>()
  for (const piece of splitOutsideQuotes(text, ';')) {
    const equals = piece.indexOf('=')
    const bare = piece.trim().toUpperCase()
    const name =
      equals >= 0 ? piece.slice(0, equals).trim().toUpperCase() : plainEncodings.has(bare) ? 'ENCODING' : 'TYPE'
    const values = splitOutsideQuotes(equals >= 0 ? piece.slice(equals + 1) : piece, ',').flatMap((value) =>
      // `TYPE="cell,voice"` is one quoted value that means two.
      value.replaceAll('"', '').split(','),
    )
    const known = parameters.get(name) ?? []
    known.push(...values.map((value) => value.trim()).filter((value) => value !== ''))
    parameters.set(name, known)
  }
  return parameters
}

function splitOutsideQuotes(text: string, separator: string): string[] {
  const pieces: string[] = []
  let quoted = false
  let start = 0
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === '"') quoted = !quoted
    else if (!quoted && text[at] === separator) {
      pieces.push(text.slice(start, at))
      start = at + 1
    }
  }
  pieces.push(text.slice(start))
  return pieces.filter((piece) => piece !== '')
}

function encodingOf(parameters: ReadonlyMap<string, string[]>): string {
  return parameters.get('ENCODING')?.[0]?.toUpperCase() ?? ''
}

/** From bytes to text: the encoding first, then the charset. Returns the problem if there is one. */
export function decodeLine({ name, parameters: head, value: raw }: RawLine): ContentLine | { problem: string } {
  if (raw === null) return { problem: `${name} is longer than ${lineCharsMax} bytes.` }
  const parameters = parametersOf(head)
  const encoding = encodingOf(parameters)
  const bytes =
    encoding === quotedPrintable
      ? printableBytes(raw)
      : Buffer.from(raw, encoding === 'B' || encoding === 'BASE64' ? 'base64' : 'latin1')
  const charset = parameters.get('CHARSET')?.[0] ?? 'utf-8'
  if (!charsetIsKnown(charset)) return { problem: `${name} is in the unknown charset "${charset.slice(0, 40)}".` }
  const value = decodeText(bytes, charset)
  if (value === undefined) return { problem: `${name} is not ${charset.toUpperCase()} text. Save the file as UTF-8.` }
  return { name, parameters, value }
}

/** `=E5` is a byte. Soft line breaks have been removed. */
function printableBytes(value: string): Buffer {
  const text = value.replaceAll(/=([0-9A-Fa-f]{2})/g, (_match, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
  return Buffer.from(text, 'latin1')
}

/** Splits at separators that are not escaped, and resolves the escapes of each piece. */
export function splitEscaped(value: string, separators: ';' | ',' | ';,'): string[] {
  const pieces: string[] = []
  let start = 0
  for (let at = 0; at < value.length; at += 1) {
    if (value[at] === '\\') at += 1
    else if (separators.includes(value[at] ?? '')) {
      pieces.push(unescaped(value.slice(start, at)))
      start = at + 1
    }
  }
  pieces.push(unescaped(value.slice(start)))
  return pieces
}

/** A backslash before any other character stays: vCard 2.1 does not escape backslashes. */
export function unescaped(value: string): string {
  return value.replaceAll(/\\([nN,;:\\])/g, (_match, char: string) => (char === 'n' || char === 'N' ? '\n' : char))
}

/** Backslash, comma, semicolon and line break; the form of a text value in vCard 3.0 and 4.0. */
export function escaped(text: string): string {
  return text.replaceAll(/[\\,;]/g, String.raw`\$&`).replaceAll('\n', String.raw`\n`)
}

/** Octets on a line without its line break, as RFC 6350 section 3.2 asks for. */
const lineBytesMax = 75

/** A line with its CRLF, folded between characters, never inside one. Linear in its length. */
export function folded(line: string): string {
  if (Buffer.byteLength(line) <= lineBytesMax) return `${line}\r\n`
  const parts: string[] = []
  let part = ''
  let size = 0
  for (const char of line) {
    const bytes = Buffer.byteLength(char)
    if (size + bytes > lineBytesMax) {
      parts.push(part)
      part = ' '
      size = 1
    }
    part += char
    size += bytes
  }
  return `${[...parts, part].join('\r\n')}\r\n`
}
