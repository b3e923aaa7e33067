// A TCP proxy between a program and a server that can take the server away: connections are cut
// and refused, or stay open and carry nothing, as after a cable was pulled.

import { connect, createServer, type Socket } from 'node:net'

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

export async function startTcpGate(target: { host: string; port: number }): Promise<TcpGate> {
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
      one.pipe(other)
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
export async function gateOf(databaseUrl: string): Promise<TcpGate & { url: string }> {
  const url = new URL(databaseUrl)
  const gate = await startTcpGate({ host: url.hostname, port: Number(url.port) })
  url.hostname = '127.0.0.1'
  url.port = String(gate.port)
  return Object.assign(gate, { url: url.href })
}
