// The chunks of one answer differ in little more than their content, and each repeats ids, names and
// times around it. So the text around the content is remembered, and the content of the chunks that
// follow is cut out of them without parsing the rest again.

/** The text before and after the content of a chunk, which is a JSON string. */
export class ContentTemplate {
  readonly #before: string
  readonly #after: string
  /** The same for an event of a stream that is one line of data and a blank line. */
  readonly #eventStart: string
  readonly #eventEnd: string
  /** The index after the event that `contentAt` read last. */
  end = 0

  constructor(before: string, after: string) {
    this.#before = before
    this.#after = after
    this.#eventStart = `data: ${before}`
    this.#eventEnd = `${after}\n\n`
  }

  /**
   * The content of the event that begins at an index of the stream. Undefined if it differs from the first one in more than its content, or
   * is not complete. The end that is found may be that of a later event; then there are line ends between, which no JSON string has.
   */
  contentAt(stream: string, at: number): string | undefined {
    if (!stream.startsWith(this.#eventStart, at)) return undefined
    const start = at + this.#eventStart.length
    const end = stream.indexOf(this.#eventEnd, start)
    if (end === -1) return undefined
    this.end = end + this.#eventEnd.length
    return contentOfLiteral(stream.slice(start, end))
  }

  /** The content of a chunk that differs from the first one in its content alone. Undefined for every other chunk. */
  contentOf(chunk: string): string | undefined {
    if (!chunk.startsWith(this.#before) || !chunk.endsWith(this.#after)) return undefined
    return contentOfLiteral(chunk.slice(this.#before.length, chunk.length - this.#after.length))
  }
}

function contentOfLiteral(literal: string): string | undefined {
  return literal.length < copiedCharsMax && plainString.test(literal) ? literal.slice(1, -1) : parsedString(literal)
}

/**
 * V8 copies a short slice. A longer one refers to the whole text that it was cut from, which is some ten times as long and would be held
 * as long as the run holds the content, so the parser makes a copy of it.
 */
const copiedCharsMax = 15

/** A JSON string in which each character stands for itself: no quote, backslash or control character. */
const plainString = /^"[ !#-[\]-\uffff]*"$/

/** Undefined if it is not exactly one JSON string. White space around it would be part of the text around the content. */
function parsedString(literal: string): string | undefined {
  const value = literal.startsWith('"') && literal.endsWith('"') ? parsed(literal) : undefined
  return typeof value === 'string' ? value : undefined
}

/** Undefined if the text is not JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Where a content may be: its name, and the beginning of a string. Servers differ in their white space. */
const contentStart = /"content"\s*:\s*(?=")/g

/** More places than a chunk has that holds nothing but content. */
const placesMax = 4

/**
 * The template of a chunk with this content. `readContent` returns the content of a chunk if it has nothing else to tell. It is
 * asked about a chunk with another content, so that a name which only looks like that of the content is not taken for it.
 */
export function contentTemplate(
  chunk: string,
  content: string,
  readContent: (chunk: unknown) => string | undefined,
): ContentTemplate | undefined {
  let places = 0
  for (const { 0: found, index } of chunk.matchAll(contentStart)) {
    if (++places > placesMax) return undefined
    const start = index + found.length
    const end = endOfString(chunk, start)
    if (parsedString(chunk.slice(start, end)) !== content) continue
    const [before, after] = [chunk.slice(0, start), chunk.slice(end)]
    const probe = `${content}?`
    const other = parsed(before + JSON.stringify(probe) + after)
    if (other !== undefined && readContent(other) === probe) return new ContentTemplate(before, after)
  }
  return undefined
}

/** The index after the JSON string that begins at `start`. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1
    else if (text[at] === '"') return at + 1
  }
  return text.length
}
