// One run at a time in a conversation (queue, reject or cancel), and admission: a number of runs
// work, a number wait, and the others are refused and leave nothing behind.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  calls,
  endOf,
  hangsAfter,
  type TestServer,
  type Json,
  messagesOf,
  named,
  runIdOf,
  says,
  someone,
  startTestServer,
  toolState,
  sharedTestServers,
} from '../support/test-server.ts'
import { eventNames } from '../support/sse.ts'

const [shared, small] = sharedTestServers({}, { POLYLOG_CONCURRENCY: '1', POLYLOG_QUEUE_MAX: '1' })

/** A run that speaks a word and then hangs, in a conversation of its own. */
async function busyConversation(server: TestServer = shared) {
  const user = someone()
  const conversationId = `conv-${user}`
  await shared.provider.script(
    [[{ text: ['First'] }, { stall: true }, { text: [' answer.'] }, { finish: 'stop' }]],
    `first ${user}`,
  )
  const first = await server.chat(user, { input: `first ${user}`, conversationId })
  await first.waitFor(named('agent.delta'))
  return { user, conversationId, first }
}

const statusOf = async (server: TestServer, user: string, runId: string) =>
  (await server.call('GET', `/v1/agent/runs/${runId}`, { user })).body.status as string

describe('a conversation that is busy', () => {
  test('queue (the default): the next run waits its turn, and then knows what the first one said', async () => {
    const { user, conversationId, first } = await busyConversation()

    const second = await shared.chat(user, { input: `second ${user}`, conversationId })
    await second.waitFor(named('agent.start'))
    const waiting = await statusOf(shared, user, runIdOf(second))
    const askedBefore = (await shared.asked(`second ${user}`)).length
    await shared.provider.release()
    await Promise.all([first.ended(), second.ended()])

    assert.equal(waiting, 'queued')
    assert.equal(askedBefore, 0)
    const [asked] = await shared.asked(`second ${user}`)
    assert.deepEqual(
      messagesOf(asked)
        .filter(({ role }) => role !== 'system')
        .map(({ content }) => content),
      [`first ${user}`, 'First answer.', `second ${user}`],
    )
    assert.equal(endOf(second.frames).status, 'succeeded')
    const { body } = await shared.call('GET', `/v1/agent/runs/${runIdOf(second)}/timeline`, { user })
    const note = (body.events as Json[]).find(({ event }) => event === 'diagnostic')
    assert.deepEqual([note?.payload.code, note?.payload.details.runId], ['conversation_busy', runIdOf(first)])
  })

  test('five in a row are answered in the order in which they were accepted', async () => {
    const { user, conversationId, first } = await busyConversation()
    const queued = []
    for (const name of ['b', 'c', 'd', 'e']) {
      const stream = await shared.chat(user, { input: `${name} ${user}`, conversationId })
      await stream.waitFor(named('agent.start'))
      queued.push(stream)
    }

    await shared.provider.release()
    await Promise.all([first, ...queued].map((stream) => stream.ended()))

    const ends = [first, ...queued].map((stream) => endOf(stream.frames))
    assert.deepEqual([...new Set(ends.map(({ status }) => status))], ['succeeded'])
    const { body } = await shared.call('GET', `/v1/conversations/${conversationId}/messages`, { user })
    const said = (body as unknown as Json[])
      .filter(({ role }) => role === 'user')
      .map(({ content }) => content.slice(0, 1))
    assert.deepEqual(said, ['f', 'b', 'c', 'd', 'e'])
    const [last] = await shared.asked(`e ${user}`)
    const roles = messagesOf(last)
      .filter(({ role }) => role !== 'system')
      .map(({ role }) => role)
    assert.deepEqual(roles, [
      'user',
      'assistant',
      'user',
      'assistant',
      'user',
      'assistant',
      'user',
      'assistant',
      'user',
    ])
  })

  test('reject: 409 that names the run, and nothing is stored', async () => {
    const { user, conversationId, first } = await busyConversation()

    const answer = await shared.call('POST', '/v1/agent/chat', {
      user,
      body: { input: 'me too', conversationId, whenBusy: 'reject' },
    })

    assert.equal(answer.status, 409)
    assert.equal(answer.body.code, 'conversation_busy')
    assert.equal(answer.body.details.runId, runIdOf(first))
    const { body } = await shared.call('GET', `/v1/conversations/${conversationId}/messages`, { user })
    assert.equal((body as unknown as Json[]).length, 1)
    await shared.call('POST', `/v1/agent/runs/${runIdOf(first)}/cancel`, { user })
    // And free again, it is taken.
    const frames = await shared.chatToEnd(user, { input: 'now?', conversationId, whenBusy: 'reject' })
    assert.equal(endOf(frames).status, 'succeeded')
  })

  test('cancel: the run before it is cancelled, and this one is answered', async () => {
    const { user, conversationId, first } = await busyConversation()

    const second = await shared.chat(user, { input: `second ${user}`, conversationId, whenBusy: 'cancel' })
    await Promise.all([first.ended(), second.ended()])

    assert.equal(endOf(first.frames).status, 'cancelled')
    assert.equal(endOf(second.frames).status, 'succeeded')
  })

  test('cancel also takes the place of a run that waits for a person', async () => {
    const user = someone()
    const conversationId = `conv-${user}`
    await shared.provider.script([calls(['remember_note', { text: 'x' }])], `first ${user}`)
    const first = await shared.chat(user, { input: `first ${user}`, conversationId })
    await first.waitFor(toolState('awaiting_input'))
    await shared.reaches(user, runIdOf(first), 'awaiting_input')

    const second = await shared.chat(user, { input: `second ${user}`, conversationId, whenBusy: 'cancel' })
    await Promise.all([first.ended(), second.ended()])

    assert.equal(endOf(first.frames).status, 'cancelled')
    assert.equal(endOf(second.frames).status, 'succeeded')
  })

  test('ten at once in one new conversation: all are accepted, one at a time is answered', async () => {
    const user = someone()

    const streams = await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        shared.chat(user, { input: `q${index} ${user}`, conversationId: `conv-${user}` }),
      ),
    )
    await Promise.all(streams.map((stream) => stream.ended()))

    for (const stream of streams) assert.equal(endOf(stream.frames).status, 'succeeded')
    const lengths = (await shared.asked(user)).map(
      ({ body }) => (body.messages ?? []).filter(({ role }) => role !== 'system').length,
    )
    assert.deepEqual(lengths, [1, 3, 5, 7, 9, 11, 13, 15, 17, 19])
  })
})

describe('admission', () => {
  test('whenBusy cancel that finds the queue full does not cancel the earlier run', async () => {
    const { user, conversationId, first } = await busyConversation(small)
    const other = someone()
    const queued = await small.chat(other, { input: `queued ${other}`, conversationId: `queued-${other}` })
    await queued.waitFor(named('agent.start'))

    const refused = await small.call('POST', '/v1/agent/chat', {
      user,
      body: { input: 'instead', conversationId, whenBusy: 'cancel' },
    })
    const run = (await small.call('GET', `/v1/agent/runs/${runIdOf(first)}`, { user })).body
    await shared.provider.release()
    await Promise.all([first.ended(), queued.ended()])

    assert.deepEqual([refused.status, refused.body.code], [429, 'queue_full'])
    assert.deepEqual([run.status, run.cancelRequested], ['running', false])
    assert.equal(endOf(first.frames).status, 'succeeded')
  })

  test('if all slots and the queue are full, a run is refused with 429 and leaves nothing behind', async () => {
    const running = await busyConversation(small)
    const user = someone()
    const queued = await small.chat(user, { input: `queued ${user}`, conversationId: `queued-${user}` })
    await queued.waitFor(named('agent.start'))
    const key = { 'idempotency-key': `key-${user}` }
    const body = { userId: user, input: `third ${user}`, conversationId: `third-${user}` }

    const third = await small.call('POST', '/v1/agent/chat', { body, headers: key })

    assert.equal(third.status, 429)
    assert.equal(third.body.code, 'queue_full')
    assert.ok(Number(third.headers.get('retry-after')) >= 1)
    assert.equal((await small.call('GET', `/v1/conversations/third-${user}`, { user })).status, 404)
    assert.equal(((await small.call('GET', '/v1/agent/runs', { user })).body as unknown as Json[]).length, 1)
    assert.equal(await statusOf(small, user, runIdOf(queued)), 'queued')

    await shared.provider.release()
    await Promise.all([running.first.ended(), queued.ended()])
    assert.equal(endOf(queued.frames).status, 'succeeded')
    // The same request, sent again as it should be, is now taken.
    const again = await small.chat(user, body, key)
    await again.ended()
    assert.equal(again.status, 200)
    assert.equal(endOf(again.frames).status, 'succeeded')
    assert.equal((await shared.asked(`third ${user}`)).length, 1)
  })

  test('a run that waits for a person holds no slot', async () => {
    const user = someone()
    await shared.provider.script([calls(['remember_note', { text: 'x' }]), says('Saved.')], `ask ${user}`)
    const asking = await small.chat(user, `ask ${user}`)
    const { json } = await asking.waitFor(toolState('awaiting_input'))
    await small.reaches(user, runIdOf(asking), 'awaiting_input')

    const frames = await small.chatToEnd(user, 'meanwhile')
    await small.call('POST', `/v1/tool-confirmations/${json.data.confirmationId}/confirm`, { user })
    await asking.ended()

    assert.equal(endOf(frames).status, 'succeeded')
    assert.equal(endOf(asking.frames).output, 'Saved.')
  })

  test('a queued run can be cancelled while every slot is taken', async () => {
    const running = await busyConversation(small)
    const user = someone()
    const queued = await small.chat(user, 'later')
    await queued.waitFor(named('agent.start'))

    const answer = await small.call('POST', `/v1/agent/runs/${runIdOf(queued)}/cancel`, { user })
    await queued.ended()

    assert.equal(answer.body.status, 'cancelled')
    assert.deepEqual(eventNames(queued.frames).at(-1), 'agent.end')
    assert.equal(await statusOf(small, running.user, runIdOf(running.first)), 'running')
    await small.call('POST', `/v1/agent/runs/${runIdOf(running.first)}/cancel`, { user: running.user })
    await running.first.ended()
  })

  test('many at once on one slot: each is answered or refused, none is forgotten', async () => {
    const user = someone()

    const streams = await Promise.all(Array.from({ length: 12 }, (_, index) => small.chat(user, `${index} ${user}`)))
    await Promise.all(streams.map((stream) => stream.ended()))

    const taken = streams.filter(({ status }) => status === 200)
    assert.ok(taken.length >= 1)
    for (const stream of taken) assert.equal(endOf(stream.frames).status, 'succeeded')
    assert.equal(streams.filter(({ status }) => status === 429).length, streams.length - taken.length)
    assert.equal(((await small.call('GET', '/v1/agent/runs', { user })).body as unknown as Json[]).length, taken.length)
    assert.equal((await shared.asked(user)).length, taken.length)
  })

  test('with a queue of length 0, a free slot is still taken', async () => {
    const strict = await startTestServer({ POLYLOG_CONCURRENCY: '1', POLYLOG_QUEUE_MAX: '0' }, shared.provider)
    try {
      const user = someone()
      const frames = await strict.chatToEnd(user, 'alone')
      await shared.provider.script([hangsAfter('Hm')], `busy ${user}`)
      const busy = await strict.chat(user, `busy ${user}`)
      await busy.waitFor(named('agent.delta'))
      const refused = await strict.call('POST', '/v1/agent/chat', { user, body: { input: 'me too' } })

      assert.equal(endOf(frames).status, 'succeeded')
      assert.deepEqual([refused.status, refused.body.code], [429, 'queue_full'])
    } finally {
      await strict.close()
    }
  })
})
