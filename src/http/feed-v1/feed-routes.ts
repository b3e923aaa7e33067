// GET /v1/feed: everything of a user that changes, over one connection: conversations, runs,
// questions that wait for a decision, and votes. The contents of a run are not part of it; they
// come from the stream of the run.

import { z } from 'zod'
import { sseFrame, sseHeaders } from '../../dialects/sse-encoding.ts'
import type { FeedReader } from '../../feed/feed-service.ts'
import { callerOf, errorBody, optionalFilter, type Server, type Services, userIdQuery } from '../routes.ts'
import type { ByteSource } from '../stream-reply.ts'
import { encodeChanges } from './feed-frames.ts'

export function feedRoutes(server: Server, services: Services): void {
  server.get(
    '/v1/feed',
    {
      schema: {
        tags: ['Feed'],
        summary: 'Everything of yours that changes: conversations, runs, open questions, votes',
        description:
          'A stream of frames, each with the whole state of one thing. Without a cursor it begins now: read the lists after the frame `hello`, then apply the frames. Resume with `Last-Event-ID` or `after`.',
        querystring: userIdQuery.extend({
          after: optionalFilter().describe(
            'The `id` of the last frame that you got; the same as Last-Event-ID, which wins.',
          ),
          follow: z
            .enum(['on', 'off'])
            .default('on')
            .describe('off: the stream ends when you have everything, instead of waiting for more.'),
        }),
        response: { 400: errorBody },
      },
    },
    async (request, reply) => {
      const { userId } = callerOf(request, services)
      const header = request.headers['last-event-id']
      const given = Array.isArray(header) ? header.at(-1) : header
      const cursor = given === undefined || given === '' ? request.query.after : given
      const reader = await services.feed.open(userId, cursor)
      const source = new FeedSource(reader, services, cursor === undefined, request.query.follow === 'on')
      await services.streams.send(
        reply,
        source,
        {
          name: 'feed',
          headers: sseHeaders,
          // Carries the cursor, so that a client to whom nothing happens does not fall behind what the server keeps.
          keepAlive: () => sseFrame(source.cursor, null, '{"type":"ping"}'),
          keepAliveTiming: { interval: 'pingMs', whenIdle: true },
        },
        {},
      )
      return reply
    },
  )
}

class FeedSource implements ByteSource {
  /** The client has everything up to here. */
  cursor: string
  private readonly reader: FeedReader
  private readonly services: Services
  private readonly fresh: boolean
  private readonly follows: boolean
  private greeted = false

  /** `fresh`: the client had no cursor. */
  constructor(reader: FeedReader, services: Services, fresh: boolean, follows: boolean) {
    this.reader = reader
    this.services = services
    this.fresh = fresh
    this.follows = follows
    this.cursor = reader.cursor
  }

  async next(): Promise<{ text: string; over: boolean } | null> {
    const { reader } = this
    if (!this.greeted) {
      this.greeted = true
      const hello = JSON.stringify({ type: 'hello', cursor: reader.cursor, resumed: reader.resumed })
      // No id if the client has a cursor: it may have to learn of a reset first.
      return { text: sseFrame(this.fresh ? reader.cursor : null, null, hello), over: false }
    }
    const part = await reader.next({ wait: this.follows })
    if (part === null) return null
    const text =
      'reset' in part
        ? sseFrame(reader.cursor, null, JSON.stringify({ type: 'reset', reason: part.reset, cursor: reader.cursor }))
        : await encodeChanges(part.changes, this.services)
    this.cursor = reader.cursor
    return { text, over: false }
  }

  close(): void {
    this.reader.close()
  }
}
