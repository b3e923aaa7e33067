// Streams an OpenAI chat completion of a given length and pace, for benchmarks and for the
// model `bench-<chunks>-<ms between chunks>` of the fake provider. It shares the machine with
// the server that is measured, so it must stay cheap: chunks are encoded once, and one timer
// serves all paced streams.

import type { ServerResponse } from 'node:http'

const words = ['The ', 'quick', ' brown', ' fox ', 'jumps', ' over', ' the ', 'lazy ', 'dog. ']
const chunks = words.map((content) => frame({ choices: [{ index: 0, delta: { content }, finish_reason: null }] }))

type BenchStream = { response: ServerResponse; count: number; written: number; stamped: boolean }
type PacedStream = BenchStream & { everyMs: number; nextAt: number }

/**
 * Sends `count` chunks, one every `everyMs` milliseconds (at most one every 2 ms); 0 means full speed. With `stamped`, the text
 * of each chunk is the time at which it was written, as `@milliseconds@`.
 */
export function streamBenchAnswer(response: ServerResponse, count: number, everyMs: number, stamped = false): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.flushHeaders()
  if (everyMs > 0) streamPaced({ response, count, written: 0, stamped }, everyMs)
  else streamAtFullSpeed({ response, count, written: 0, stamped })
}

const paced = new Set<PacedStream>()
let pacing: NodeJS.Timeout | undefined

function streamPaced(bench: BenchStream, everyMs: number): void {
  // The random start keeps the streams of one load from writing in the same tick.
  const nextAt = performance.now() + Math.random() * everyMs
  const stream = { ...bench, everyMs, nextAt }
  paced.add(stream)
  bench.response.on('close', () => paced.delete(stream))
  pacing ??= setInterval(writePaced, 2)
}

function writePaced(): void {
  const now = performance.now()
  for (const stream of paced) {
    if (now < stream.nextAt) continue
    stream.nextAt += stream.everyMs
    if (writeNext(stream)) paced.delete(stream)
  }
  if (paced.size > 0) return
  clearInterval(pacing)
  pacing = undefined
}

const fast = new Set<BenchStream>()
let turning = false

/**
 * Each stream writes one chunk per turn of the event loop. A real provider sends tokens one by one, and
 * the number of chunks in one packet decides how much a read costs the server.
 */
function streamAtFullSpeed(stream: BenchStream): void {
  fast.add(stream)
  stream.response.on('close', () => fast.delete(stream))
  if (turning) return
  turning = true
  setImmediate(writeFast)
}

function writeFast(): void {
  for (const stream of fast) {
    if (stream.response.writableNeedDrain) continue
    if (writeNext(stream)) fast.delete(stream)
  }
  turning = fast.size > 0
  if (turning) setImmediate(writeFast)
}

/** Writes the next chunk, and the end after the last one. Returns true if the stream has ended. */
function writeNext(stream: BenchStream): boolean {
  stream.response.write(stream.stamped ? stampedChunk() : chunks[stream.written % chunks.length])
  stream.written += 1
  if (stream.written < stream.count) return false
  stream.response.end(ending(stream.count))
  return true
}

const [beforeStamp, afterStamp] = frame({
  choices: [{ index: 0, delta: { content: '@@' }, finish_reason: null }],
})
  .toString()
  .split('@@')

function stampedChunk(): string {
  return `${beforeStamp}@${(performance.timeOrigin + performance.now()).toFixed(2)}@${afterStamp}`
}

function ending(count: number): Buffer {
  const usage = { prompt_tokens: 10, completion_tokens: count, total_tokens: count + 10 }
  return Buffer.concat([
    frame({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
    frame({ choices: [], usage }),
    Buffer.from('data: [DONE]\n\n'),
  ])
}

function frame(body: Record<string, unknown>): Buffer {
  const whole = { id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1700000000, model: 'bench', ...body }
  return Buffer.from(`data: ${JSON.stringify(whole)}\n\n`)
}
