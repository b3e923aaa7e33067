// Writes the body of a streamed response. Node frames each write of a response as a chunk and
// sends the frame in several pieces, for each reader anew. Here a text is framed once, and its
// bytes go to the sockets of all readers as they are.

import type { ServerResponse } from 'node:http'

/** A text that several readers may get. Its bytes are made for the first of them. */
export type BodyText = { readonly text: string; chunk?: Buffer | undefined }

export class ChunkedBody {
  private readonly raw: ServerResponse
  private headIsSent = false
  /** Decided with the first bytes: the two ways cannot be mixed. */
  private isDirect: boolean | undefined

  /** The head of the response must have been written, but not flushed. */
  constructor(raw: ServerResponse) {
    this.raw = raw
    // The head goes with the first bytes in one packet, if they come at once.
    setImmediate(() => {
      if (!raw.destroyed && !raw.writableEnded) this.sendHead()
    })
  }

  /** `isLast`: the response is ended in this turn, and its end goes with these bytes. Returns false if the reader is behind: wait for `drained`. */
  write(body: BodyText, isLast = false): boolean {
    const { raw } = this
    const { socket } = raw
    // Without a socket, an earlier response of the connection is not finished. Clients of HTTP/1.0 get no chunks.
    this.isDirect ??= socket !== null && raw.chunkedEncoding
    if (!this.isDirect || socket === null) return raw.write(body.text)
    body.chunk ??= chunkOf(body.text)
    if (this.headIsSent && !isLast) return socket.write(body.chunk)
    socket.cork()
    this.sendHead()
    const hasRoom = socket.write(body.chunk)
    // The end of a response uncorks its socket.
    if (!isLast) socket.uncork()
    return hasRoom
  }

  private sendHead(): void {
    if (!this.headIsSent) this.raw.flushHeaders()
    this.headIsSent = true
  }

  get isFull(): boolean {
    return this.raw.writableNeedDrain || this.raw.socket?.writableNeedDrain === true
  }

  /** Calls `done` once, when the reader has taken what was written. Returns how to stop listening. */
  onDrained(done: () => void): () => void {
    const { raw } = this
    const source = this.isDirect === true ? (raw.socket ?? raw) : raw
    source.on('drain', done)
    return () => source.off('drain', done)
  }
}

function chunkOf(text: string): Buffer {
  const length = Buffer.byteLength(text)
  const head = `${length.toString(16)}\r\n`
  const chunk = Buffer.allocUnsafe(head.length + length + 2)
  chunk.write(head, 0, 'latin1')
  chunk.write(text, head.length, 'utf8')
  chunk.write('\r\n', head.length + length, 'latin1')
  return chunk
}
