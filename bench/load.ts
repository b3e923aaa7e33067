// The client side of a measurement, in its own process: opens streams, counts their deltas,
// records when they arrived, and prints one JSON line.

import { Agent, request as httpRequest } from 'node:http'
import { percentile } from './figures.ts'
import type { LoadOptions, LoadResult } from './processes.ts'

const options = JSON.parse(process.argv[2] ?? '{}') as LoadOptions
const { streams, rounds = 1, marker, method = 'POST', body = '', stamped = false } = options
const target = new URL(options.url)
const agent = new Agent({ keepAlive: true, maxSockets: streams })
const mark = Buffer.from(marker)
const stamp = /@(\d+\.\d+)@/g
const stampCharsMax = 32

type Result = { deltas: number; bytes: number; firstMs: number; spreadMs: number; ok: boolean }

const latencies: number[] = []

function one(index: number): Promise<Result> {
  return new Promise((resolve) => {
    const startedAt = performance.now()
    let deltas = 0
    let bytes = 0
    let firstAt = startedAt
    let lastAt = startedAt
    let tail = Buffer.alloc(0)
    const result = (ok: boolean) =>
      resolve({ deltas, bytes, firstMs: firstAt - startedAt, spreadMs: lastAt - firstAt, ok })
    const request = httpRequest(
      {
        host: target.hostname,
        port: target.port,
        path: target.pathname + target.search,
        method,
        agent,
        headers: { 'content-type': 'application/json' },
      },
      (response) => {
        response.on('data', (part: Buffer) => {
          const now = performance.now()
          bytes += part.length
          const data = tail.length === 0 ? part : Buffer.concat([tail, part])
          let at = data.indexOf(mark)
          while (at !== -1) {
            if (deltas === 0) firstAt = now
            lastAt = now
            deltas += 1
            at = data.indexOf(mark, at + mark.length)
          }
          // A marker may be split over two chunks, so the end of each chunk is kept, shorter than a marker.
          tail = Buffer.from(data.subarray(Math.max(0, data.length - mark.length + 1)))
          if (stamped) readStamps(part)
        })
        response.on('end', () => result(response.statusCode === 200))
        response.on('error', () => result(false))
      },
    )
    request.on('error', () => result(false))
    request.end(method === 'POST' ? body.replaceAll('%INDEX%', String(index)) : undefined)
  })
}

/** The provider writes the time into each delta. A stamp that is split over two chunks is not counted. */
function readStamps(part: Buffer): void {
  const now = performance.timeOrigin + performance.now()
  const text = part.toString('latin1')
  // The answer is repeated as a whole at the end of the stream; those stamps are old.
  const repeated = text.search(/event: agent\.(?:message|end)/)
  const live = repeated === -1 ? text : text.slice(0, repeated)
  for (const match of live.matchAll(stamp)) {
    if ((match[0] ?? '').length < stampCharsMax) latencies.push(now - Number(match[1]))
  }
}

async function oneAfterTheOther(index: number): Promise<Result[]> {
  const results: Result[] = []
  for (let round = 0; round < rounds; round++) results.push(await one(index * rounds + round))
  return results
}

const startedAt = performance.now()
const lists = await Promise.all(Array.from({ length: streams }, (_, index) => oneAfterTheOther(index)))
const seconds = (performance.now() - startedAt) / 1000
const results = lists.flat()
const sum = (value: (result: Result) => number) => results.reduce((total, result) => total + value(result), 0)
const first = results.map((result) => result.firstMs)
const result: LoadResult = {
  requests: results.length,
  deltas: sum(({ deltas }) => deltas),
  bytes: sum(({ bytes }) => bytes),
  seconds,
  firstP50: percentile(first, 0.5),
  firstP99: percentile(first, 0.99),
  latencyP50: percentile(latencies, 0.5),
  latencyP99: percentile(latencies, 0.99),
  perStreamSecond: sum(({ deltas }) => Math.max(0, deltas - 1)) / (sum(({ spreadMs }) => spreadMs) / 1000),
  failed: results.filter(({ ok }) => !ok).length,
}
console.log(JSON.stringify(result))
agent.destroy()
