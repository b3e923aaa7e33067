// `client.feed` against the real server, with a proxy between them that breaks things.

import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import fc from 'fast-check'
import { type Conversation, createClient, type FeedFrame, PolylogError } from '../../client/src/index.ts'
import { clientTimers } from '../support/client-timers.ts'
import { type Fault, type NastyProxy, startNastyProxy } from '../support/nasty-proxy.ts'
import { onPostgres } from '../support/test-database.ts'
import { sharedTestServer, someone } from '../support/test-server.ts'

const server = sharedTestServer()
let proxy: NastyProxy

before(async () => {
  proxy = await startNastyProxy()
})
after(() => proxy.close())
beforeEach(() => {
  proxy.target = server.polylog.baseUrl
})

const clientOf = (userId: string) => createClient({ baseUrl: proxy.baseUrl, userId, ...clientTimers() })

/** Reads the feed until a frame fits. */
async function readUntil(feed: AsyncIterable<FeedFrame>, fits: (frame: FeedFrame) => boolean): Promise<FeedFrame[]> {
  const frames: FeedFrame[] = []
  for await (const frame of feed) {
    frames.push(frame)
    if (fits(frame)) return frames
  }
  throw new Error('the feed ended')
}

/** Without repetitions: a cursor on PostgreSQL may be behind changes that came while an older transaction was open. */
function newOf(seen: readonly Conversation[], made: readonly Conversation[]): Conversation[] {
  const ids = new Set(made.map(({ id }) => id))
  return [...new Map(seen.map((one) => [one.id, one])).values()].filter(({ id }) => ids.has(id))
}

describe('the feed of the client', () => {
  test('shows a run from its acceptance to its end, typed', async () => {
    const user = someone()
    const client = clientOf(user)
    const feed = client.feed()
    const [hello] = await readUntil({ [Symbol.asyncIterator]: () => ({ next: () => feed.next() }) }, () => true)
    assert.equal(hello?.type, 'hello')
    await (await client.chat({ input: user })).result()
    const frames = await readUntil(feed, (frame) => frame.type === 'run.changed' && frame.run.status === 'succeeded')
    assert.ok(frames.some((frame) => frame.type === 'conversation.changed'))
  })

  test('loses nothing, over any sequence of faults', async () => {
    const user = someone()
    const client = clientOf(user)
    let cursor = ((await client.feed().next()).value as FeedFrame).cursor ?? ''
    const anyFault: fc.Arbitrary<Fault> = fc.oneof(
      fc.record({ cutAfterBytes: fc.nat(3000), chunkBytes: fc.integer({ min: 1, max: 700 }) }),
      fc.record({ endAfterBytes: fc.nat(3000) }),
      fc.constant({ refuses: true }),
      fc.constant({ losesAnswer: true }),
      fc.constantFrom(429, 502, 503, 504).map((status) => ({ answers: { status, body: 'busy' } })),
    )
    let round = 0
    await fc.assert(
      fc.asyncProperty(fc.array(anyFault, { maxLength: 6 }), fc.integer({ min: 1, max: 8 }), async (faults, count) => {
        round += 1
        const made: Conversation[] = []
        for (let number = 1; number <= count; number += 1) {
          made.push(await client.conversations.create({ title: `${round}/${number}` }))
        }
        proxy.faults = [...faults]
        const frames = await readUntil(
          client.feed({ after: cursor }),
          (frame) => frame.type === 'conversation.changed' && frame.conversation.id === made.at(-1)?.id,
        )
        proxy.faults = []
        cursor = frames.at(-1)?.cursor ?? cursor
        const seen = frames.flatMap((frame) => (frame.type === 'conversation.changed' ? [frame.conversation] : []))
        assert.deepEqual(onPostgres ? newOf(seen, made) : seen, made)
      }),
      { numRuns: 40 },
    )
  })

  test('says that a cursor is wrong, and ends with its signal', async () => {
    const client = clientOf(someone())
    await assert.rejects(client.feed({ after: 'nonsense' }).next(), (error: unknown) => {
      assert.ok(error instanceof PolylogError)
      return error.code === 'unknown_cursor'
    })
    const controller = new AbortController()
    const feed = client.feed({ signal: controller.signal })
    await feed.next()
    const next = feed.next()
    controller.abort(new Error('enough'))
    await assert.rejects(next, /enough/)
  })
})
