// The client side of a measurement, in its own process: opens streams, counts their
// deltas, records when the first one arrived, and prints one JSON line.

import { Agent, request as httpRequest } from 'node:http'

const { url, streams, body, marker } = JSON.parse(process.argv[2] ?? '{}') as {
  url: string
  streams: number
  body: string
  marker: string
}
const target = new URL(url)
const agent = new Agent({ keepAlive: true, maxSockets: streams })
const mark = Buffer.from(marker)

type Result = { deltas: number; firstMs: number; ok: boolean }

function one(index: number): Promise<Result> {
  return new Promise((resolve) => {
    const startedAt = performance.now()
    let deltas = 0
    let firstMs = 0
    let tail = Buffer.alloc(0)
    const request = httpRequest(
      {
        host: target.hostname,
        port: target.port,
        path: target.pathname + target.search,
        method: 'POST',
        agent,
        headers: { 'content-type': 'application/json' },
      },
      (response) => {
        response.on('data', (part: Buffer) => {
          const data = tail.length === 0 ? part : Buffer.concat([tail, part])
          let at = data.indexOf(mark)
          while (at !== -1) {
            if (deltas === 0) firstMs = performance.now() - startedAt
            deltas += 1
            at = data.indexOf(mark, at + mark.length)
          }
          // A marker may be split over two chunks, so the end of each chunk is kept, shorter than a marker.
          tail = Buffer.from(data.subarray(Math.max(0, data.length - mark.length + 1)))
        })
        response.on('end', () => resolve({ deltas, firstMs, ok: response.statusCode === 200 }))
        response.on('error', () => resolve({ deltas, firstMs, ok: false }))
      },
    )
    request.on('error', () => resolve({ deltas, firstMs, ok: false }))
    request.end(body.replaceAll('%INDEX%', String(index)))
  })
}

const startedAt = performance.now()
const results = await Promise.all(Array.from({ length: streams }, (_, index) => one(index)))
const seconds = (performance.now() - startedAt) / 1000
const first = results.map((result) => result.firstMs).sort((left, right) => left - right)
const deltas = results.reduce((sum, result) => sum + result.deltas, 0)
console.log(
  JSON.stringify({
    deltas,
    seconds,
    firstP50: first[Math.floor(first.length / 2)],
    firstP99: first[Math.floor(first.length * 0.99)],
    failed: results.filter((result) => !result.ok).length,
  }),
)
agent.destroy()
