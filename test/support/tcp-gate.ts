// A TCP proxy between a program and a server that can take the server away: connections are cut
// and refused, or stay open and carry nothing, as after a cable was pulled.

import { connect, createServer, type Socket } from 'node:net'
import { Transform } from 'node:stream'

export type TcpGate = {
  readonly port: number
  /** How many connections were tried. */
  readonly attempts: number
  /** Cuts all connections and every new one. */
  shut(): void
  /** Existing connections carry nothing more and are not closed. New ones work. */
  freeze(): void
  open(): void
  close(): Promise<void>
}

export type TcpGateOptions = {
  /** A stream that the answers of the server go through, new for each connection. */
  answers?: () => Transform
}

export async function startTcpGate(
  target: { host: string; port: number },
  { answers }: TcpGateOptions = {},
): Promise<TcpGate> {
  const sockets = new Set<Socket>()
  let isShut = false
  let attempts = 0
  const server = createServer((client) => {
    attempts += 1
    client.on('error', () => {})
    if (isShut) {
      client.destroy()
      return
    }
    const upstream = connect(target)
    upstream.on('error', () => {})
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(one)
      if (one === upstream && answers !== undefined) one.pipe(answers()).pipe(other)
      else one.pipe(other)
      one.once('close', () => {
        sockets.delete(one)
        other.destroy()
      })
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const cutAll = () => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    port: (server.address() as { port: number }).port,
    get attempts() {
      return attempts
    },
    shut() {
      isShut = true
      cutAll()
    },
    freeze() {
      for (const socket of sockets) socket.unpipe().pause()
    },
    open() {
      isShut = false
    },
    async close() {
      cutAll()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** A gate in front of a database, and the URL through it. */
export async function gateOf(databaseUrl: string, options?: TcpGateOptions): Promise<TcpGate & { url: string }> {
  const url = new URL(databaseUrl)
  const gate = await startTcpGate({ host: url.hostname, port: Number(url.port) }, options)
  url.hostname = '127.0.0.1'
  url.port = String(gate.port)
  return Object.assign(gate, { url: url.href })
}

/** Leaves out what PostgreSQL says because of NOTIFY, as connection poolers do that hand out a connection per transaction. */
export function withoutNotifications(): Transform {
  const notification = 'A'.charCodeAt(0)
  /** The type of a message is one byte; its length follows, counts itself and not the type. */
  const headBytes = 5
  let rest = Buffer.alloc(0)
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      rest = Buffer.concat([rest, chunk])
      while (rest.length >= headBytes) {
        const length = 1 + rest.readInt32BE(1)
        if (rest.length < length) break
        if (rest[0] !== notification) this.push(rest.subarray(0, length))
        rest = rest.subarray(length)
      }
      done()
    },
  })
}
