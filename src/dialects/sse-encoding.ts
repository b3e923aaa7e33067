// Frame → SSE text. The only place that knows the blank line. JSON escapes every
// newline, so one `data:` line is always enough.

export function sseFrame(id: string | null, event: string | null, json: string): string {
  return `${id === null ? '' : `id: ${id}\n`}${event === null ? '' : `event: ${event}\n`}data: ${json}\n\n`
}

/** What every stream sends, so that no proxy on the way holds it back. */
export const sseHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  connection: 'keep-alive',
  'x-accel-buffering': 'no',
} as const
