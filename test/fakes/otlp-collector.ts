// An OpenTelemetry collector in a process of its own: takes spans over OTLP as protobuf, and shows
// them as JSON. It decodes the wire format itself, so that a test sees what really was sent.
//
//   POST /v1/traces
//   GET  /control/wait?spans=n   all spans, as soon as there are that many

import * as http from 'node:http'
import type { AddressInfo } from 'node:net'
import { type CollectedSpan, decodeSpans } from './otlp-decoder.ts'

let spans: CollectedSpan[] = []
let waiters: (() => void)[] = []

const server = http.createServer((request, response) => {
  void handle(request, response).catch((error: unknown) => {
    process.stderr.write(`collector: ${String(error instanceof Error ? error.stack : error)}\n`)
    response.destroy()
  })
})
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`)
})
// The parent holds the other end of stdin: when it is gone, so are we.
process.stdin.on('end', () => process.exit(0))
process.stdin.resume()

async function handle(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://fake')
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  const send = (status: number, body: string | Buffer, type: string) => {
    response.writeHead(status, { 'content-type': type })
    response.end(body)
  }
  if (url.pathname === '/v1/traces') {
    if (request.headers['content-type'] !== 'application/x-protobuf') return send(415, '', 'text/plain')
    if (request.headers['x-team'] !== 'walks & talks') return send(401, '', 'text/plain')
    spans = [...spans, ...decodeSpans(Buffer.concat(parts))]
    send(200, Buffer.alloc(0), 'application/x-protobuf')
    const due = waiters
    waiters = []
    for (const check of due) check()
    return
  }
  if (url.pathname === '/control/wait') {
    const wanted = Number(url.searchParams.get('spans'))
    const check = () => {
      if (spans.length >= wanted) send(200, JSON.stringify(spans), 'application/json')
      else waiters.push(check)
    }
    return check()
  }
  send(404, '', 'text/plain')
}
