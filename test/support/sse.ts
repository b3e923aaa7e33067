// Reading a stream as a client does: over a real socket, frame by frame, and able
// to leave in the middle. Keeps the raw text too, since resumed streams are
// compared byte for byte.

import { request as httpRequest, type IncomingMessage } from 'node:http'

export type SseFrame = {
  id: string | undefined
  event: string | undefined
  data: string
  // oxlint-disable-next-line typescript/no-explicit-any -- whatever the server sent; each test asserts what it needs of it
  json: { event: string; data: Record<string, any> }
}

export type SseStream = {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  /** Frames so far, pings included. */
  readonly frames: SseFrame[]
  /** All bytes so far. */
  text(): string
  /** The first frame that fits, now or later; rejects when the stream ends without it. */
  waitFor(fits: (frame: SseFrame) => boolean, what?: string): Promise<SseFrame>
  /** Resolves when the server ended the stream. `cut` is true if the connection broke. */
  ended(): Promise<{ cut: boolean }>
  /** Closes the connection from the client's side. */
  leave(): void
}

export type StreamRequest = { method?: 'GET' | 'POST'; headers?: Record<string, string>; body?: unknown }

export async function openStream(url: string, options: StreamRequest = {}): Promise<SseStream> {
  const body = options.body === undefined ? undefined : JSON.stringify(options.body)
  return await new Promise((resolve, reject) => {
    const request = httpRequest(
      url,
      {
        method: options.method ?? (body === undefined ? 'GET' : 'POST'),
        agent: false,
        headers: {
          accept: 'text/event-stream',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...options.headers,
        },
      },
      (response) => resolve(follow(response, () => request.destroy())),
    )
    request.on('error', reject)
    request.end(body)
  })
}

function follow(response: IncomingMessage, leave: () => void): SseStream {
  const frames: SseFrame[] = []
  const listeners = new Set<() => void>()
  let text = ''
  let parsed = 0
  let end: { cut: boolean } | undefined
  const tell = () => {
    for (const listener of Array.from(listeners)) listener()
  }
  response.setEncoding('utf8')
  response.on('data', (part: string) => {
    text += part
    for (;;) {
      const at = text.indexOf('\n\n', parsed)
      if (at === -1) break
      const frame = parseFrame(text.slice(parsed, at))
      parsed = at + 2
      if (frame !== undefined) frames.push(frame)
    }
    tell()
  })
  const finish = (cut: boolean) => {
    end ??= { cut }
    tell()
  }
  response.on('end', () => finish(false))
  response.on('error', () => finish(true))
  response.on('close', () => finish(!response.complete))

  const until = <T>(check: () => T | undefined): Promise<T> =>
    new Promise((resolve, reject) => {
      const listener = () => {
        const found = check()
        if (found !== undefined) {
          listeners.delete(listener)
          resolve(found)
        } else if (end !== undefined) {
          listeners.delete(listener)
          reject(new Error(`the stream ended first; it said:\n${text}`))
        }
      }
      listeners.add(listener)
      listener()
    })

  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    frames,
    text: () => text,
    waitFor: (fits) => until(() => frames.find(fits)),
    ended: () => until(() => end),
    leave,
  }
}

function parseFrame(block: string): SseFrame | undefined {
  const fields = new Map(
    block.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
  )
  const data = fields.get('data')
  if (data === undefined) return undefined
  return { id: fields.get('id'), event: fields.get('event'), data, json: data === '[DONE]' ? null : JSON.parse(data) }
}

/** The frames that come from the journal: all frames except keep-alives. */
export function journaled(frames: readonly SseFrame[]): SseFrame[] {
  return frames.filter((frame) => frame.id !== undefined)
}

export function eventNames(frames: readonly SseFrame[]): string[] {
  return journaled(frames).map((frame) => frame.json.event)
}
