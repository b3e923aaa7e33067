// The fake provider's answers for benchmarks. The provider shares its machine with
// what is measured, so it must cost next to nothing: the bytes are built once, and
// one timer serves all paced streams.

import type { ServerResponse } from 'node:http'

const pieces = ['Lore', 'm ip', 'sum ', 'dolo', 'r si', 't am', 'et, ', 'cons', 'ecte', 'tur ']
const frames = pieces.map((content) => frame({ choices: [{ index: 0, delta: { content }, finish_reason: null }] }))

/** Unpaced streams write this many chunks at once: about what one socket read takes. */
const burst = 64

export function benchAnswer(response: ServerResponse, chunks: number, delayMs: number): void {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' })
  response.flushHeaders()
  if (delayMs > 0) pace(response, chunks, delayMs)
  else pour(response, chunks)
}

function pour(response: ServerResponse, chunks: number): void {
  let written = 0
  const next = (): void => {
    while (written < chunks) {
      if (response.destroyed) return
      const end = Math.min(written + burst, chunks)
      const batch: Buffer[] = []
      for (; written < end; written += 1) batch.push(frameAt(written))
      if (!response.write(Buffer.concat(batch))) {
        response.once('drain', next)
        return
      }
    }
    response.end(ending(chunks))
  }
  next()
}

type Paced = { response: ServerResponse; chunks: number; written: number }

const paces = new Map<number, { timer: NodeJS.Timeout; streams: Set<Paced> }>()

function pace(response: ServerResponse, chunks: number, delayMs: number): void {
  let group = paces.get(delayMs)
  if (group === undefined) {
    const streams = new Set<Paced>()
    group = { streams, timer: setInterval(() => tick(delayMs, streams), delayMs) }
    paces.set(delayMs, group)
  }
  group.streams.add({ response, chunks, written: 0 })
}

function tick(delayMs: number, streams: Set<Paced>): void {
  for (const stream of streams) {
    if (stream.response.destroyed) {
      streams.delete(stream)
    } else if (stream.written >= stream.chunks) {
      stream.response.end(ending(stream.chunks))
      streams.delete(stream)
    } else {
      stream.response.write(frameAt(stream.written))
      stream.written += 1
    }
  }
  if (streams.size > 0) return
  clearInterval(paces.get(delayMs)?.timer)
  paces.delete(delayMs)
}

function frameAt(position: number): Buffer {
  return frames[position % frames.length] as Buffer
}

function ending(chunks: number): Buffer {
  const usage = { prompt_tokens: 10, completion_tokens: chunks, total_tokens: chunks + 10 }
  return Buffer.concat([
    frame({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
    frame({ choices: [], usage }),
    Buffer.from('data: [DONE]\n\n'),
  ])
}

function frame(body: Record<string, unknown>): Buffer {
  const whole = { id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1, model: 'bench', ...body }
  return Buffer.from(`data: ${JSON.stringify(whole)}\n\n`)
}
