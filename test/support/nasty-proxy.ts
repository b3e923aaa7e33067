// A proxy between a client and the server that does what networks do: it breaks connections at any byte, loses answers,
// answers in place of the server, and cuts bytes into other chunks. The server behind it can be exchanged, so that a
// restarted server keeps its address.

import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Fault = {
  /** Breaks the connection after this many bytes of the body. */
  cutAfterBytes?: number
  /** Ends the response properly after this many bytes, as a server does that shuts down. */
  endAfterBytes?: number
  /** Forwards the request, and breaks the connection instead of answering. */
  losesAnswer?: boolean
  /** Breaks the connection before the request is forwarded. */
  refuses?: boolean
  /** Answers this, and does not forward the request. */
  answers?: { status: number; headers?: Record<string, string>; body?: string }
  /** Forwards the body in pieces of this many bytes. */
  chunkBytes?: number
  /** Forwards the headers and this many bytes, and then nothing, and keeps the connection open. */
  silentAfterBytes?: number
}

export type SeenByProxy = { method: string; url: string; headers: IncomingMessage['headers'] }

export type NastyProxy = {
  readonly baseUrl: string
  /** Files that the proxy serves itself, by path, without faults: a web page of the same origin. */
  readonly files: Map<string, { type: string; body: string }>
  /** Every request so far. */
  readonly seen: SeenByProxy[]
  /** Where requests go from now on. */
  target: string
  /** What happens to the next requests, in this order; afterwards nothing does. */
  faults: Fault[]
  /** How many responses are being sent. */
  openConnections(): number
  /** Breaks all connections that are open. */
  cutAll(): void
  close(): Promise<void>
}

export async function startNastyProxy(target = ''): Promise<NastyProxy> {
  const open = new Set<ServerResponse>()
  const server = createServer((incoming, outgoing) => {
    const file = proxy.files.get(incoming.url ?? '')
    if (file !== undefined) {
      outgoing.writeHead(200, { 'content-type': file.type })
      return void outgoing.end(file.body)
    }
    const fault = proxy.faults.shift() ?? {}
    proxy.seen.push({ method: incoming.method ?? '', url: incoming.url ?? '', headers: incoming.headers })
    open.add(outgoing)
    outgoing.once('close', () => open.delete(outgoing))
    outgoing.on('error', () => {})
    if (fault.refuses === true) return void incoming.socket.destroy()
    if (fault.answers !== undefined) {
      incoming.resume()
      outgoing.writeHead(fault.answers.status, fault.answers.headers)
      return void outgoing.end(fault.answers.body)
    }
    forward(proxy.target, incoming, outgoing, fault)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const proxy: NastyProxy = {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    files: new Map(),
    seen: [],
    target,
    faults: [],
    openConnections: () => open.size,
    cutAll() {
      for (const response of open) response.destroy()
    },
    async close() {
      proxy.cutAll()
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
  return proxy
}

function forward(target: string, incoming: IncomingMessage, outgoing: ServerResponse, fault: Fault): void {
  const url = new URL(incoming.url ?? '/', target)
  const upstream = httpRequest(
    url,
    { method: incoming.method, headers: incoming.headers, agent: false },
    (response) => {
      if (fault.losesAnswer === true) {
        // The first bytes of the answer prove that the server has accepted the request.
        outgoing.destroy()
        return void response.destroy()
      }
      outgoing.writeHead(response.statusCode ?? 502, response.headers)
      outgoing.flushHeaders()
      relay(response, outgoing, fault)
    },
  )
  upstream.on('error', () => outgoing.destroy())
  outgoing.once('close', () => upstream.destroy())
  incoming.pipe(upstream)
}

function relay(response: IncomingMessage, outgoing: ServerResponse, fault: Fault): void {
  const limit = fault.cutAfterBytes ?? fault.endAfterBytes ?? fault.silentAfterBytes ?? Infinity
  let sent = 0
  const stop = () => {
    if (fault.silentAfterBytes !== undefined) return
    if (fault.endAfterBytes !== undefined) outgoing.end()
    // The bytes that were written have to leave before the connection breaks.
    else outgoing.write('', () => outgoing.socket?.destroySoon())
    response.destroy()
  }
  if (limit === 0) {
    stop()
    return
  }
  response.on('data', (part: Buffer) => {
    if (sent >= limit) return
    const allowed = part.subarray(0, limit - sent)
    sent += allowed.length
    for (let at = 0; at < allowed.length; at += fault.chunkBytes ?? allowed.length) {
      outgoing.write(allowed.subarray(at, at + (fault.chunkBytes ?? allowed.length)))
    }
    if (sent >= limit) stop()
  })
  response.on('end', () => {
    if (sent < limit || fault.silentAfterBytes === undefined) outgoing.end()
  })
  response.on('error', () => outgoing.destroy())
  response.on('close', () => {
    if (!response.complete && sent < limit) outgoing.destroy()
  })
}
