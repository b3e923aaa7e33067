// The baseline of the measurements: a bare node:http proxy that forwards the bytes of the
// upstream and stores nothing.

import { Agent, createServer, request as httpRequest } from 'node:http'

const upstream = new URL(process.env.UPSTREAM ?? 'http://127.0.0.1:1')
const agent = new Agent({ keepAlive: true })

const server = createServer((request, response) => {
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
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.flushHeaders()
      answer.on('data', (part: Buffer) => {
        if (!response.write(part)) {
          answer.pause()
          response.once('drain', () => answer.resume())
        }
      })
      answer.on('end', () => response.end())
    },
  )
  request.pipe(forwarded)
  response.on('close', () => forwarded.destroy())
})

server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ port: (server.address() as { port: number }).port })))
