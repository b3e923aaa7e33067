// GET /v1/feed: one connection on which a user sees everything change, which can be cut
// anywhere and resumed without a loss.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type AbTestServer, calm, startAbTestServer, wild } from '../support/comparisons.ts'
import { sharedMcpServer } from '../support/shared-mcp-server.ts'
import { openStream, type SseFrame, type SseStream } from '../support/sse.ts'
import {
  calls,
  hangsAfter,
  type Json,
  runIdOf,
  says,
  sharedTestServer,
  someone,
  startTestServer,
  toolState,
} from '../support/test-server.ts'

const server = sharedTestServer()

type FeedStream = SseStream & { readonly cursor: string }

async function follow(user: string, query = '', headers: Record<string, string> = {}): Promise<FeedStream> {
  return await followAt(server.polylog.baseUrl, user, query, headers)
}

async function followAt(baseUrl: string, user: string, query = '', headers: Record<string, string> = {}) {
  const url = new URL(`/v1/feed${query}`, baseUrl)
  url.searchParams.set('userId', user)
  const stream = await openStream(url.href, { headers })
  await stream.waitFor(ofType('hello'))
  return Object.defineProperty(stream, 'cursor', {
    get: () => stream.frames.findLast(({ id }) => id !== undefined)?.id,
  }) as FeedStream
}

const frameOf = (frame: SseFrame) => frame.json as unknown as Json
const ofType = (type: string) => (frame: SseFrame) => frameOf(frame).type === type
const runIs = (runId: string, status: string) => (frame: SseFrame) =>
  frameOf(frame).run?.runId === runId && frameOf(frame).run.status === status

/** What the feed says after a cursor, until it has caught up. */
async function rest(user: string, cursor: string, baseUrl = server.polylog.baseUrl): Promise<Json[]> {
  const stream = await followAt(baseUrl, user, `?follow=off&after=${cursor}`)
  await stream.ended()
  return stream.frames.map(frameOf)
}

const typesOf = (frames: Json[]) => frames.map(({ type }) => String(type))

describe('the feed', () => {
  test('begins with hello, and tells how a conversation is created, renamed and deleted', async () => {
    const user = someone()
    const feed = await follow(user)
    const made = await server.call('POST', '/v1/conversations', { user, body: { title: 'Tea' } })
    const created = await feed.waitFor(ofType('conversation.changed'))
    const listed = await server.call('GET', '/v1/conversations', { user })
    await server.call('PATCH', `/v1/conversations/${made.body.id}`, { user, body: { title: 'Coffee' } })
    await feed.waitFor((frame) => frameOf(frame).conversation?.title === 'Coffee')
    await server.call('DELETE', `/v1/conversations/${made.body.id}`, { user })
    const deleted = await feed.waitFor(ofType('conversation.deleted'))
    feed.leave()

    assert.equal(feed.headers['content-type'], 'text/event-stream; charset=utf-8')
    assert.equal(feed.frames[0]?.id, frameOf(feed.frames[0] as SseFrame).cursor)
    assert.deepEqual(frameOf(created).conversation, (listed.body as unknown as Json[])[0])
    assert.equal(frameOf(deleted).conversationId, made.body.id)
    assert.equal(new Set(feed.frames.map(({ id }) => id)).size, feed.frames.length)
  })

  test('tells the states of a run, with the view of the run, and no tokens', async () => {
    const user = someone()
    const feed = await follow(user)
    await server.provider.script([says('one ', 'two ', 'three')], user)
    const chat = await server.chat(user, { input: user, conversationId: `conv-${user}` })
    await chat.ended()
    const ended = frameOf(await feed.waitFor(runIs(runIdOf(chat), 'succeeded')))
    feed.leave()

    const run = await server.call('GET', `/v1/agent/runs/${runIdOf(chat)}`, { user })
    const { family, skillId, waitingFor, ...view } = ended.run
    assert.deepEqual(view, run.body)
    assert.deepEqual([family, skillId, waitingFor], ['agent', null, []])
    assert.equal(ended.run.conversationId, `conv-${user}`)
    assert.doesNotMatch(feed.text(), /two/)
  })

  test('is of one user: nothing of others, and their cursors are of no use', async () => {
    const [user, other] = [someone(), someone()]
    const feed = await follow(user)
    const theirs = await follow(other)
    await server.call('POST', '/v1/conversations', { user: other, body: { title: 'secret' } })
    await theirs.waitFor(ofType('conversation.changed'))
    await server.call('POST', '/v1/conversations', { user, body: { title: 'mine' } })
    await feed.waitFor(ofType('conversation.changed'))
    const foreign = await rest(user, theirs.cursor)
    feed.leave()
    theirs.leave()

    assert.doesNotMatch(feed.text(), /secret/)
    assert.deepEqual(typesOf(foreign), ['hello', 'reset'])
    assert.deepEqual([foreign[0]?.resumed, foreign[1]?.reason], [false, 'unknown'])
    assert.deepEqual(typesOf(await rest(user, foreign[1]?.cursor)), ['hello'])
  })

  test('a cursor that is none is refused with a sentence', async () => {
    for (const cursor of ['12', 'x-y', '0'.repeat(200), 'aaaaaaaaaaaa-']) {
      const answer = await server.call('GET', `/v1/feed?after=${cursor}`, { user: someone() })
      assert.deepEqual([answer.status, answer.body.code], [400, 'unknown_cursor'], cursor)
      assert.match(answer.body.message, /last frame/)
    }
  })

  test('resumes after any frame, by Last-Event-ID or after, with the last state of everything', async () => {
    const user = someone()
    const feed = await follow(user)
    const ids: string[] = []
    for (const title of ['a', 'b', 'c', 'd']) {
      const { body } = await server.call('POST', '/v1/conversations', { user, body: { title } })
      ids.push(body.id)
      await feed.waitFor((frame) => frameOf(frame).conversation?.title === title)
    }
    await server.call('PATCH', `/v1/conversations/${ids[1]}`, { user, body: { title: 'b again' } })
    await feed.waitFor((frame) => frameOf(frame).conversation?.title === 'b again')
    feed.leave()

    const expected = [
      ['a', 'c', 'd', 'b again'],
      ['c', 'd', 'b again'],
      ['c', 'd', 'b again'],
      ['d', 'b again'],
      ['b again'],
      [],
    ]
    for (const [index, { id }] of feed.frames.entries()) {
      assert.ok(id !== undefined)
      const byQuery = await rest(user, id)
      const byHeader = await follow(user, '?follow=off&after=aaaaaaaaaaaa-1', { 'last-event-id': id })
      await byHeader.ended()
      for (const frames of [byQuery, byHeader.frames.map(frameOf)]) {
        assert.deepEqual(frames[0], { type: 'hello', cursor: id, resumed: true })
        assert.deepEqual(
          frames.slice(1).map(({ conversation }) => conversation.title),
          expected[index],
        )
      }
    }
  })

  test('two tabs get the same, and a cancel and a queued run are seen', async () => {
    const user = someone()
    const [one, two] = [await follow(user), await follow(user)]
    await server.provider.script([hangsAfter('so')], user)
    const chat = await server.chat(user, { input: user, conversationId: `conv-${user}` })
    const queued = await server.chat(user, { input: `${user} next`, conversationId: `conv-${user}` })
    for (const tab of [one, two]) {
      await tab.waitFor(runIs(runIdOf(chat), 'running'))
      await tab.waitFor(runIs(runIdOf(queued), 'queued'))
    }
    for (const stream of [queued, chat]) {
      await server.call('POST', `/v1/agent/runs/${runIdOf(stream)}/cancel`, { user, body: {} })
    }
    for (const tab of [one, two]) {
      await tab.waitFor(runIs(runIdOf(chat), 'cancelled'))
      await tab.waitFor(runIs(runIdOf(queued), 'cancelled'))
      tab.leave()
    }
  })

  test('a run without a conversation that is deleted is told', async () => {
    const user = someone()
    const body = { model: 'chat_conversation', input: 'hi' }
    const answer = await server.call('POST', '/v1/responses', { user, body })
    assert.equal(answer.status, 200, answer.text)
    const feed = await follow(user)
    const gone = await server.call('DELETE', `/v1/responses/${answer.body.id}`, { user })
    assert.equal(gone.status, 200, gone.text)
    const deleted = frameOf(await feed.waitFor(ofType('run.deleted')))
    feed.leave()

    assert.equal(answer.body.id, `resp_${deleted.runId}`)
  })
})

describe('over restarts', () => {
  test('a cursor leads on after the server was stopped and started', async () => {
    const user = someone()
    const first = await startTestServer()
    const feed = await followAt(first.polylog.baseUrl, user)
    await first.call('POST', '/v1/conversations', { user, body: { title: 'before' } })
    await feed.waitFor(ofType('conversation.changed'))
    const { cursor } = feed
    await first.call('POST', '/v1/conversations', { user, body: { title: 'meanwhile' } })
    await first.polylog.stop()
    const second = await first.restart()
    try {
      await second.call('POST', '/v1/conversations', { user, body: { title: 'after' } })
      const frames = await rest(user, cursor, second.polylog.baseUrl)
      assert.deepEqual(
        frames.slice(1).map(({ conversation }) => conversation.title),
        ['meanwhile', 'after'],
      )
      assert.equal(frames[0]?.resumed, true)
    } finally {
      await second.close()
    }
  })
})

describe('questions', () => {
  const { server: asking } = sharedMcpServer()

  test('are told when they open and when they are decided, with what the run waits for', async () => {
    const user = someone()
    const feed = await followAt(asking.polylog.baseUrl, user)
    await asking.provider.script([calls(['charge', { amount: 7001 }]), says('Done.')], user)
    const chat = await asking.chat(user, { input: user, conversationId: `conv-${user}` })
    const { json } = await chat.waitFor(toolState('awaiting_input'))
    const id = json.data.confirmationId
    const opened = frameOf(await feed.waitFor(ofType('interaction.opened')))
    const waiting = frameOf(await feed.waitFor(runIs(runIdOf(chat), 'awaiting_input')))
    await asking.call('POST', `/v1/tool-confirmations/${id}/reject`, { user, body: { reason: 'no' } })
    const decided = frameOf(await feed.waitFor(ofType('interaction.decided')))
    await feed.waitFor(runIs(runIdOf(chat), 'succeeded'))
    feed.leave()

    assert.deepEqual(
      [opened.interaction.id, opened.interaction.kind, opened.interaction.status, opened.interaction.payload],
      [id, 'confirmation', 'pending', { amount: 7001 }],
    )
    assert.deepEqual(waiting.run.waitingFor, [{ interactionId: id, kind: 'confirmation', toolName: 'charge' }])
    assert.deepEqual(
      [decided.interaction.id, decided.interaction.status, decided.interaction.reason],
      [id, 'rejected', 'no'],
    )
  })
})

describe('comparisons', () => {
  let ab: AbTestServer
  before(async () => {
    ab = await startAbTestServer()
  })
  after(() => ab.close())

  test('reveal nothing before the vote, and everything with it', async () => {
    const user = someone()
    const feed = await followAt(ab.polylog.baseUrl, user)
    await ab.script(user, says('calmly'), says('wildly'))
    const { id } = await ab.compareToEnd(user, user)
    await feed.waitFor((frame) => frameOf(frame).comparison?.state === 'ready')
    const blind = feed.text()
    const opened = frameOf(await feed.waitFor(ofType('comparison.opened')))
    await ab.vote(user, id, 'a')
    const voted = frameOf(await feed.waitFor(ofType('comparison.voted')))
    const revealed = feed.frames.length
    await feed.waitFor((frame) => frameOf(frame).run?.usage != null)
    feed.leave()

    assert.doesNotMatch(blind, new RegExp(`${calm.name}|${wild.name}|${calm.model}|${wild.model}`))
    assert.doesNotMatch(blind, /"usage":\{|"engine":"/)
    assert.deepEqual([opened.comparison.comparison_id, opened.comparison.config_a_id], [id, null])
    assert.equal(voted.comparison.preference, 'a')
    assert.ok([calm.name, wild.name].includes(voted.comparison.side_a_config))
    assert.ok(revealed > 0)
  })
})
