// A provider for measurements: speaks OpenAI chat completions as SSE. The model name
// says what to stream: `bench-<chunks>-<ms between chunks>`, 0 for full speed;
// `stamped-<chunks>-<ms between chunks>` writes the time into each chunk; `bench-stall` sends
// only the response headers.

import { createServer } from 'node:http'
import { streamBenchAnswer } from '../test/fakes/openai-bench.ts'

const server = createServer((request, response) => {
  let body = ''
  request.on('data', (part: Buffer) => (body += part.toString('latin1')))
  request.on('end', () => {
    const [, kind, count, delay] = /"model":\s*"(bench|stamped)-(\w+)-?(\d*)"/.exec(body) ?? []
    if (count === 'stall') {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.flushHeaders()
      return
    }
    streamBenchAnswer(response, Number(count ?? 10), Number(delay ?? 0), kind === 'stamped')
  })
})

// Longer than any measurement: the bare proxy does not repeat a request that meets a connection which is being closed.
server.keepAliveTimeout = 600_000
server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ port: (server.address() as { port: number }).port })))
