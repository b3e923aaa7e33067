// Requests through an agent of Node: for connections that only Node knows how to make, such as those through the proxies
// of the environment.

import type * as http from 'node:http'
import type * as https from 'node:https'
import { nodeHttp, nodeHttps } from '../node-http.ts'
import type { Exchange, ExchangeReceiver, ExchangeRequest, Requests } from './exchange.ts'
import { restBytesMax, restIdleMs } from './exchange.ts'

export class AgentRequests implements Requests {
  private readonly url: URL
  private readonly transport: typeof http | typeof https
  private readonly agent: http.Agent | https.Agent

  constructor(url: URL, options: http.AgentOptions) {
    this.url = url
    this.transport = url.protocol === 'https:' ? nodeHttps : nodeHttp
    this.agent = new this.transport.Agent({ keepAlive: true, scheduling: 'lifo', maxFreeSockets: 256, ...options })
  }

  /** An agent opens a connection when there is a request for it. */
  prepare(): void {}

  post({ headers, body }: ExchangeRequest, receiver: ExchangeReceiver): Exchange {
    const request = this.transport.request(this.url, {
      method: 'POST',
      agent: this.agent,
      headers: [...headers.flat(), 'content-length', String(Buffer.byteLength(body))],
    })
    return new AgentExchange(request, body, receiver)
  }
}

class AgentExchange implements Exchange {
  private readonly request: http.ClientRequest
  private response: http.IncomingMessage | undefined
  private receiver: ExchangeReceiver | undefined

  constructor(request: http.ClientRequest, body: string, receiver: ExchangeReceiver) {
    this.request = request
    this.receiver = receiver
    request.on('response', (response) => this.answered(response))
    // Later errors are reported by the response.
    request.on('error', (error) => this.response ?? this.finish(error))
    // If the server answers 101 although the request asked for no upgrade, there is neither a response nor an error.
    request.on('close', () => this.response ?? this.finish(new Error('The server closed the connection.')))
    request.end(body)
  }

  pause(): void {
    this.response?.pause()
  }

  resume(): void {
    this.response?.resume()
  }

  leave(): void {
    this.receiver = undefined
    const { response } = this
    if (response === undefined || response.complete) return
    let bytes = 0
    response.on('data', (piece: Buffer) => {
      bytes += piece.length
      if (bytes > restBytesMax) response.destroy()
    })
    response.setTimeout(restIdleMs, () => {
      if (!response.complete) response.destroy()
    })
    response.resume()
  }

  destroy(): void {
    this.receiver = undefined
    this.request.destroy()
  }

  private answered(response: http.IncomingMessage): void {
    this.response = response
    response.on('data', (piece: Buffer) => this.receiver?.body(piece, 0, piece.length))
    response.on('end', () => this.finish(undefined))
    response.on('error', (error) => this.finish(error))
    response.on('close', () => this.finish(new Error('The server closed the connection.')))
    const headers = Object.entries(response.headers).map(([name, value]) => [name, String(value)] as const)
    this.receiver?.head({ status: response.statusCode ?? 0, headers: new Map(headers) })
  }

  private finish(error: Error | undefined): void {
    const { receiver } = this
    this.receiver = undefined
    receiver?.ended(error)
  }
}
