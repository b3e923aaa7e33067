// A client that writes HTTP by hand, for requests that no HTTP library would send.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

export function dialServer(baseUrl: string): Socket {
  const { hostname, port } = new URL(baseUrl)
  return connect(Number(port), hostname)
}

/** Resolves when the socket has taken the bytes, or is gone. */
export async function write(socket: Socket, bytes: Buffer | string): Promise<void> {
  if (socket.destroyed) return
  await new Promise<void>((resolve) => {
    const done = () => {
      socket.off('close', done)
      resolve()
    }
    socket.once('close', done)
    socket.write(bytes, done)
  })
}

export type Received = {
  text(): string
  error(): Error | undefined
  /** Resolves when the server has closed the connection. */
  closed(): Promise<void>
  /** Resolves when what came so far fits; throws if the server closes before. */
  until(pattern: RegExp): Promise<void>
}

/** Reads everything that comes. */
export function collect(socket: Socket): Received {
  let text = ''
  let failure: Error | undefined
  socket.on('data', (part: Buffer) => {
    text += part.toString('latin1')
  })
  socket.on('error', (error) => {
    failure = error
  })
  const closed = new Promise<void>((resolve) => {
    socket.on('end', () => resolve())
    socket.on('close', () => resolve())
  })
  return {
    text: () => text,
    error: () => failure,
    closed: () => closed,
    async until(pattern) {
      while (!pattern.test(text)) {
        if (socket.destroyed) throw new Error(`the connection was closed before ${String(pattern)} came: ${text}`)
        await Promise.race([once(socket, 'data').catch(() => undefined), closed])
        if (socket.readableEnded && !pattern.test(text))
          throw new Error(`the server closed before ${String(pattern)} came: ${text}`)
      }
    },
  }
}
