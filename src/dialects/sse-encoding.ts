// Encodes a frame as SSE text. JSON escapes every newline, so one `data:` line is always
// enough.

export function sseFrame(id: string | null, event: string | null, json: string): string {
  return `${id === null ? '' : `id: ${id}\n`}${event === null ? '' : `event: ${event}\n`}data: ${json}\n\n`
}

/** The headers of every stream; they stop proxies from buffering or caching it. */
export const sseHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  connection: 'keep-alive',
  'x-accel-buffering': 'no',
} as const
