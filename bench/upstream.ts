// A provider for measurements: speaks OpenAI chat completions as SSE, as cheaply
// as it can, so that the server under test is what is measured. The model's name
// says what to stream: `bench-<chunks>-<ms between chunks>`, 0 for full speed;
// `bench-stall` never says anything.

import { createServer, type ServerResponse } from 'node:http'

function chunk(content: string): string {
  return `data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,"model":"bench","choices":[{"index":0,"delta":{"content":"${content}"},"finish_reason":null}]}\n\n`
}

const words = ['The ', 'quick', ' brown', ' fox ', 'jumps', ' over', ' the ', 'lazy ', 'dog. ']
const chunks = words.map((word) => Buffer.from(chunk(word)))
const end = Buffer.from(
  'data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,"model":"bench","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
)

type Paced = { response: ServerResponse; left: number; everyMs: number; nextAt: number; index: number }
const paced = new Set<Paced>()
// One timer for all streams: a timer per stream would be most of this process.
setInterval(() => {
  const now = performance.now()
  for (const stream of paced) {
    if (now < stream.nextAt) continue
    stream.nextAt += stream.everyMs
    stream.response.write(chunks[stream.index++ % chunks.length])
    stream.left -= 1
    if (stream.left > 0) continue
    paced.delete(stream)
    stream.response.end(end)
  }
}, 2)

const server = createServer((request, response) => {
  let body = ''
  request.on('data', (part: Buffer) => (body += part.toString('latin1')))
  request.on('end', () => {
    const [, count, delay] = /"model":\s*"bench-(\w+)-?(\d*)"/.exec(body) ?? []
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.flushHeaders()
    if (count === 'stall') return
    const left = Number(count ?? 10)
    const everyMs = Number(delay ?? 0)
    if (everyMs > 0) {
      const stream = { response, left, everyMs, nextAt: performance.now() + Math.random() * everyMs, index: 0 }
      paced.add(stream)
      response.on('close', () => paced.delete(stream))
      return
    }
    full(response, left)
  })
})

/**
 * One chunk a stream in each turn of the event loop: a provider sends a token when it has one, never a
 * thousand in one packet, and how many chunks share a read decides what a read costs.
 */
const fast = new Set<{ response: ServerResponse; left: number; index: number }>()
let turning = false

function full(response: ServerResponse, left: number): void {
  const stream = { response, left, index: 0 }
  fast.add(stream)
  response.on('close', () => fast.delete(stream))
  if (!turning) {
    turning = true
    setImmediate(turn)
  }
}

function turn(): void {
  for (const stream of fast) {
    if (stream.response.writableNeedDrain) continue
    stream.response.write(chunks[stream.index++ % chunks.length])
    stream.left -= 1
    if (stream.left > 0) continue
    fast.delete(stream)
    stream.response.end(end)
  }
  turning = fast.size > 0
  if (turning) setImmediate(turn)
}

server.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ port: (server.address() as { port: number }).port })))
