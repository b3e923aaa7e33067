// Converts between the requests and responses of Node and those of the web, which the server
// package of MCP uses.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { Readable } from 'node:stream'

export async function toRequest(incoming: IncomingMessage, outgoing: ServerResponse): Promise<Request> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  const gone = new AbortController()
  outgoing.on('close', () => gone.abort())
  return new Request(`http://127.0.0.1${incoming.url}`, {
    method: incoming.method ?? 'GET',
    headers: Object.entries(incoming.headers).map(([name, value]): [string, string] => [name, String(value)]),
    ...(chunks.length === 0 ? {} : { body: Buffer.concat(chunks) }),
    signal: gone.signal,
  })
}

export async function writeResponse(response: Response, outgoing: ServerResponse): Promise<void> {
  outgoing.writeHead(response.status, Object.fromEntries(response.headers))
  outgoing.flushHeaders()
  if (response.body === null) outgoing.end()
  else
    Readable.fromWeb(response.body)
      .on('error', () => outgoing.destroy())
      .pipe(outgoing)
}
