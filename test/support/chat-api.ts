// A client of the chat API, over a real socket.

import assert from 'node:assert/strict'
import type { Answer, TestServer, Json } from './test-server.ts'
import { openStream, type SseStream } from './sse.ts'

export type Chunk = Json & { type: string }

export type ChunkStream = {
  readonly raw: SseStream
  readonly traceId: string
  readonly conversationId: string
  frames(): Chunk[]
  /** The first frame of this type (that fits), now or later. */
  waitFor(type: string, fits?: (frame: Chunk) => boolean): Promise<Chunk>
  /** All frames, when the server has ended the stream. */
  toEnd(): Promise<Chunk[]>
}

export async function ask(
  server: TestServer,
  client: string,
  body: string | Json,
  headers: Record<string, string> = {},
): Promise<ChunkStream> {
  const fields = typeof body === 'string' ? { message: body } : body
  const raw = await openStream(`${server.polylog.baseUrl}/api/get_chat_response_stream`, {
    method: 'POST',
    body: { client_id: client, ...fields },
    headers,
  })
  if (raw.status !== 200) await raw.ended()
  assert.equal(raw.status, 200, raw.text())
  return chunkStream(raw)
}

export function chunkStream(raw: SseStream): ChunkStream {
  const frames = () => raw.frames.map((frame) => frame.json as unknown as Chunk)
  return {
    raw,
    traceId: String(raw.headers['x-trace-id']),
    conversationId: decodeURIComponent(String(raw.headers['x-conversation-id'])),
    frames,
    async waitFor(type, fits = () => true) {
      const found = await raw.waitFor(
        (frame) => (frame.json as unknown as Chunk).type === type && fits(frame.json as unknown as Chunk),
      )
      return found.json as unknown as Chunk
    },
    async toEnd() {
      const { cut } = await raw.ended()
      assert.equal(cut, false)
      return frames()
    },
  }
}

/** POST under /api, as this client. */
export function post(server: TestServer, path: string, client: string, body: Json = {}): Promise<Answer> {
  return server.call('POST', `/api/${path}`, { body: { client_id: client, ...body } })
}

/** GET under /api, as this client. */
export function get(server: TestServer, path: string, client: string): Promise<Answer> {
  return server.call('GET', `/api/${path}${path.includes('?') ? '&' : '?'}client_id=${encodeURIComponent(client)}`)
}

export function textOf(frames: readonly Chunk[]): string {
  return frames.map((frame) => (frame.type === 'chunk' ? String(frame.content) : '')).join('')
}

export function typesOf(frames: readonly Chunk[]): string[] {
  return frames.map((frame) => frame.type)
}
