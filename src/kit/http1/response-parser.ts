// Reads the response of an HTTP/1.1 server from the bytes of its connection: no socket, no clock. What the receiver gets
// does not depend on how the bytes are split into reads, except that a body comes in more or fewer pieces.
//
// It is strict: a response that could be understood in two ways is an error.

export type ResponseHead = {
  status: number
  /** By name in lower case. The values of a name that comes more than once are joined with commas. */
  headers: ReadonlyMap<string, string>
}

/** Gets a response while it is read. */
export interface ResponseReceiver {
  head(head: ResponseHead): void
  /** A piece of the body, from one index to before another. The bytes are overwritten after the call. */
  body(bytes: Buffer, from: number, to: number): void
}

/** The server sent something that is not HTTP/1.1, or not an answer to the request. */
export class ProtocolError extends Error {
  readonly code = 'HTTP_PROTOCOL'
}

/** The same limit as Node's. */
const headBytesMax = 16 * 1024
/** Of a line with the size of a chunk, and of all trailers together: what they may hold besides is not used. */
const extraBytesMax = 16 * 1024
/** Fourteen digits are more than a file system can store, and the number stays exact. */
const sizeDigitsMax = 13

/** A connection is given up this long before its server closes it. */
const closingMs = 1_000

const lineFeed = 0x0a
const carriageReturn = 0x0d
const space = 0x20
const tab = 0x09
const semicolon = 0x3b

const statusLine = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: .*)?$/
const headerName = /^[!#$%&'*+.^_`|~0-9a-z-]+$/

/** What the next byte belongs to. */
type Place =
  | 'nothing'
  | 'head'
  /** A body whose length is known. */
  | 'sized body'
  /** A body that ends with the connection. */
  | 'open body'
  | 'chunk size'
  | 'chunk extension'
  | 'chunk'
  | 'end of chunk'
  | 'trailers'

export class ResponseParser {
  /** How long the connection can take another request after the response, as far as the server says. */
  usableMs = 0
  private place: Place = 'nothing'
  private receiver: ResponseReceiver | undefined
  private headText = ''
  /** Bytes of the body or of the chunk that are still to come. */
  private left = 0
  private sizeDigits = 0
  private extraBytes = 0
  /** The byte before this one was a carriage return. */
  private afterReturn = false
  private trailerBytes = 0

  /** A request was sent, and the next bytes are its response. */
  begin(receiver: ResponseReceiver): void {
    this.receiver = receiver
    this.place = 'head'
  }

  /** The rest of the response goes to another receiver. */
  redirect(receiver: ResponseReceiver): void {
    this.receiver = receiver
  }

  /** True from `begin` to the end of the response. */
  get isReading(): boolean {
    return this.place !== 'nothing'
  }

  /** Stops reading. The connection cannot be used again. */
  stop(): void {
    this.place = 'nothing'
    this.receiver = undefined
    this.usableMs = 0
  }

  /** Returns how many of the bytes belong to the response: fewer than there are if it has ended. Throws a `ProtocolError`. */
  feed(bytes: Buffer, length: number): number {
    let at = 0
    while (at < length && this.place !== 'nothing') at = this.step(bytes, at, length)
    // The connection may wait for its next request for long, and the receiver may hold much.
    if (this.place === 'nothing') this.receiver = undefined
    return at
  }

  /** The server closed the connection. Returns true if this ends the response, and false if the response is incomplete. */
  endOfConnection(): boolean {
    const isComplete = this.place === 'open body'
    this.stop()
    return isComplete
  }

  private step(bytes: Buffer, at: number, length: number): number {
    switch (this.place) {
      case 'head':
        return this.readHead(bytes, at, length)
      case 'open body':
        this.receiver?.body(bytes, at, length)
        return length
      case 'sized body':
      case 'chunk':
        return this.readBody(bytes, at, length)
      case 'chunk size':
        return this.readSize(bytes, at, length)
      case 'end of chunk':
        if (this.endsLine(bytes, at)) this.place = 'chunk size'
        return at + 1
      default:
        this.readExtra(bytes[at] ?? 0)
        return at + 1
    }
  }

  private readHead(bytes: Buffer, at: number, length: number): number {
    const known = this.headText.length
    this.headText += bytes.toString('latin1', at, length)
    const end = this.headText.indexOf('\r\n\r\n', Math.max(0, known - 3))
    if (end > headBytesMax || (end === -1 && this.headText.length > headBytesMax)) {
      throw new ProtocolError(`The head of the response is longer than ${headBytesMax / 1024} KiB.`)
    }
    if (end === -1) return length
    const text = this.headText.slice(0, end)
    this.headText = ''
    this.understand(text)
    return at + end + 4 - known
  }

  private understand(text: string): void {
    const [first = '', ...lines] = text.split('\r\n')
    const status = statusLine.exec(first)
    if (status === null) throw new ProtocolError('The response does not begin with a status line of HTTP/1.1.')
    const code = Number(status[2])
    if (code === 101) throw new ProtocolError('The server switched to another protocol, which it was not asked for.')
    // An interim response; the real one follows.
    if (code < 200) return
    const headers = readHeaders(lines)
    this.chooseBody(code, headers)
    this.usableMs = this.place === 'open body' ? 0 : usableMsOf(status[1] === '1', headers)
    // The receiver may stop the parser.
    const isOver = this.place === 'sized body' && this.left === 0
    this.receiver?.head({ status: code, headers })
    if (isOver) this.place = 'nothing'
  }

  private chooseBody(status: number, headers: ReadonlyMap<string, string>): void {
    const encoding = headers.get('transfer-encoding')
    const length = headers.get('content-length')
    this.left = 0
    if (status === 204 || status === 304) this.place = 'sized body'
    else if (encoding !== undefined) {
      if (encoding.toLowerCase() !== 'chunked')
        throw new ProtocolError('The response has a transfer encoding besides chunks.')
      if (length !== undefined) throw new ProtocolError('The response has both a length and chunks.')
      this.beginSize()
    } else if (length !== undefined) {
      if (!/^\d{1,15}$/.test(length)) throw new ProtocolError('The length of the response is not a number.')
      this.left = Number(length)
      this.place = 'sized body'
    } else this.place = 'open body'
  }

  private readBody(bytes: Buffer, at: number, length: number): number {
    const end = Math.min(length, at + this.left)
    this.left -= end - at
    if (this.left === 0) this.place = this.place === 'chunk' ? 'end of chunk' : 'nothing'
    this.receiver?.body(bytes, at, end)
    return end
  }

  private beginSize(): void {
    this.place = 'chunk size'
    this.left = 0
    this.sizeDigits = 0
    this.extraBytes = 0
  }

  private readSize(bytes: Buffer, from: number, length: number): number {
    for (let at = from; at < length; at++) {
      const byte = bytes[at] ?? 0
      const digit = hexDigit(byte)
      if (this.afterReturn || (byte === carriageReturn && this.sizeDigits > 0)) {
        if (!this.endsLine(bytes, at)) continue
        this.endSize()
        return at + 1
      }
      if (digit !== -1) {
        this.sizeDigits += 1
        if (this.sizeDigits > sizeDigitsMax) throw new ProtocolError('The size of a chunk is too large.')
        this.left = this.left * 16 + digit
      } else if (this.sizeDigits > 0 && (byte === semicolon || byte === space || byte === tab)) {
        this.place = 'chunk extension'
        return at + 1
      } else throw new ProtocolError('A chunk of the response has no size.')
    }
    return length
  }

  private endSize(): void {
    this.place = this.left === 0 ? 'trailers' : 'chunk'
    this.trailerBytes = 0
    this.sizeDigits = 0
    this.extraBytes = 0
  }

  /** Skips a byte of an extension or of the trailers, and finds the end of its line. */
  private readExtra(byte: number): void {
    this.extraBytes += 1
    if (this.extraBytes > extraBytesMax) throw new ProtocolError('The response has too much besides its body.')
    if (byte === carriageReturn && !this.afterReturn) this.afterReturn = true
    else if (this.afterReturn) {
      if (byte !== lineFeed) throw new ProtocolError('A line of the response ends in a way that HTTP does not have.')
      this.afterReturn = false
      this.endExtraLine()
    } else if (byte === lineFeed)
      throw new ProtocolError('A line of the response ends in a way that HTTP does not have.')
    else this.trailerBytes += 1
  }

  private endExtraLine(): void {
    if (this.place === 'chunk extension') this.endSize()
    else if (this.trailerBytes === 0) this.place = 'nothing'
    else this.trailerBytes = 0
  }

  /** True if the byte is the second one of a line's end, false if it is the first one. */
  private endsLine(bytes: Buffer, at: number): boolean {
    const byte = bytes[at]
    if (byte !== (this.afterReturn ? lineFeed : carriageReturn)) {
      throw new ProtocolError('A line of the response ends in a way that HTTP does not have.')
    }
    this.afterReturn = !this.afterReturn
    return !this.afterReturn
  }
}

function readHeaders(lines: readonly string[]): Map<string, string> {
  const headers = new Map<string, string>()
  for (const line of lines) {
    const colon = line.indexOf(':')
    const name = line.slice(0, Math.max(0, colon)).toLowerCase()
    if (!headerName.test(name) || /[\0\r\n]/.test(line))
      throw new ProtocolError('The response has a header that HTTP does not allow.')
    const value = line.slice(colon + 1).trim()
    const earlier = headers.get(name)
    headers.set(name, earlier === undefined ? value : `${earlier}, ${value}`)
  }
  return headers
}

function usableMsOf(isKeptByDefault: boolean, headers: ReadonlyMap<string, string>): number {
  const connection = tokensOf(headers.get('connection'))
  const isKept = isKeptByDefault ? !connection.includes('close') : connection.includes('keep-alive')
  if (!isKept) return 0
  const seconds = /(?:^|[ ,;])timeout=(\d{1,9})/i.exec(headers.get('keep-alive') ?? '')?.[1]
  // A request that is sent while the server closes the connection would be lost.
  return seconds === undefined ? Infinity : Number(seconds) * 1000 - closingMs
}

function tokensOf(value = ''): string[] {
  return value
    .toLowerCase()
    .split(',')
    .map((token) => token.trim())
}

/** -1 if it is none. */
function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const lower = byte | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}
