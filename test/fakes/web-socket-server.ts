// The server side of WebSocket (RFC 6455), as much of it as a fake needs: text frames both
// ways, pings answered, and sockets that can be destroyed at any byte.

import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'

export type ServerSocket = {
  send(text: string): void
  close(): void
  /** As a crash would: no close frame. */
  destroy(): void
}

export function acceptWebSocket(
  request: IncomingMessage,
  socket: Duplex,
  on: { message(text: string): void; closed(): void },
): ServerSocket {
  const key = String(request.headers['sec-websocket-key'])
  const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`,
  )
  let unread: Buffer = Buffer.alloc(0)
  let parts: Buffer[] = []
  socket.on('data', (bytes: Buffer) => {
    unread = Buffer.concat([unread, bytes])
    for (let frame = readFrame(unread); frame !== undefined; frame = readFrame(unread)) {
      unread = unread.subarray(frame.length)
      if (frame.opcode === 8) socket.end(frameOf(8, Buffer.alloc(0)))
      else if (frame.opcode === 9) socket.write(frameOf(10, frame.payload))
      else if (frame.opcode <= 2) {
        parts.push(frame.payload)
        if (!frame.final) continue
        const text = Buffer.concat(parts).toString('utf8')
        parts = []
        on.message(text)
      }
    }
  })
  socket.on('error', () => {})
  socket.on('close', () => on.closed())
  return {
    send(text) {
      if (socket.writable) socket.write(frameOf(1, Buffer.from(text)))
    },
    close: () => void socket.end(frameOf(8, Buffer.alloc(0))),
    destroy: () => void socket.destroy(),
  }
}

type Frame = { opcode: number; final: boolean; payload: Buffer; length: number }

/** Frames of a client are always masked. */
function readFrame(bytes: Buffer): Frame | undefined {
  if (bytes.length < 6) return undefined
  const first = bytes.readUInt8(0)
  let size = bytes.readUInt8(1) & 0x7f
  let at = 2
  if (size === 126) {
    size = bytes.readUInt16BE(2)
    at = 4
  } else if (size === 127) {
    if (bytes.length < 14) return undefined
    size = Number(bytes.readBigUInt64BE(2))
    at = 10
  }
  if (bytes.length < at + 4 + size) return undefined
  const mask = bytes.subarray(at, at + 4)
  const payload = Buffer.from(bytes.subarray(at + 4, at + 4 + size))
  for (let index = 0; index < payload.length; index += 1)
    payload[index] = (payload[index] ?? 0) ^ (mask[index % 4] ?? 0)
  return { opcode: first & 0x0f, final: (first & 0x80) !== 0, payload, length: at + 4 + size }
}

function frameOf(opcode: number, payload: Buffer): Buffer {
  const size = payload.length
  const head = Buffer.alloc(size < 126 ? 2 : size < 65_536 ? 4 : 10)
  head.writeUInt8(0x80 | opcode, 0)
  if (size < 126) head.writeUInt8(size, 1)
  else if (size < 65_536) {
    head.writeUInt8(126, 1)
    head.writeUInt16BE(size, 2)
  } else {
    head.writeUInt8(127, 1)
    head.writeBigUInt64BE(BigInt(size), 2)
  }
  return Buffer.concat([head, payload])
}
