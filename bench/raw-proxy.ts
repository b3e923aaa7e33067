// The baseline of the measurements: a bare node:http server that stores nothing.
//
//   POST /           forwards the bytes of the upstream
//   GET  /join       waits for a broadcast and gets its bytes
//   POST /broadcast  like POST /, and sends the same bytes to everyone who joined
//   GET  /file       the file that FILE names

import { createReadStream } from 'node:fs'
import { Agent, createServer, request as httpRequest, type ServerResponse } from 'node:http'

const upstream = new URL(process.env.UPSTREAM ?? 'http://127.0.0.1:1')
const agent = new Agent({ keepAlive: true })
const joined = new Set<ServerResponse>()

function openStream(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.flushHeaders()
}

const server = createServer((request, response) => {
  if (request.url === '/file') {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    createReadStream(process.env.FILE ?? '').pipe(response)
    return
  }
  if (request.url === '/join') {
    openStream(response)
    joined.add(response)
    response.on('close', () => joined.delete(response))
    return
  }
  const readers = request.url === '/broadcast' ? joined : []
  const forwarded = httpRequest(
    {
      host: upstream.hostname,
      port: upstream.port,
      path: '/v1/chat/completions',
      method: 'POST',
      agent,
      headers: { 'content-type': 'application/json' },
    },
    (answer) => {
      openStream(response)
      answer.on('data', (part: Buffer) => {
        for (const reader of readers) reader.write(part)
        if (!response.write(part)) {
          answer.pause()
          response.once('drain', () => answer.resume())
        }
      })
      answer.on('end', () => {
        for (const reader of readers) reader.end()
        response.end()
      })
    },
  )
  request.pipe(forwarded)
  response.on('close', () => forwarded.destroy())
})

server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ port: (server.address() as { port: number }).port })))
