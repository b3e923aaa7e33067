// Comparisons that do not run straight to their end, over real sockets: an arm fails, is
// cancelled or waits for a person; the client leaves and comes back; the server restarts.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import {
  type AbTestServer,
  armFrames,
  type ArmFrame,
  arms,
  calm,
  conversationOf,
  idOf,
  pausesAfter,
  startAbTestServer,
  startAbTestServerProcess,
  textOfArm,
  wild,
} from '../support/comparisons.ts'
import { calls, hangsAfter, type Json, says, someone, until } from '../support/test-server.ts'

let server: AbTestServer
before(async () => {
  server = await startAbTestServer()
})
after(async () => {
  await server.close()
})

describe('when an arm does not come to its end', () => {
  it('no vote is asked, the last frame says so, and the other answer is the history', async () => {
    for (const failing of [calm, wild]) {
      const user = someone()
      const down = [{ status: 500, body: { error: { message: 'down' } } }]
      await server.script(user, failing === calm ? down : says('Calm.'), failing === wild ? down : says('Wild!'))

      const { id, conversationId, frames } = await server.compareToEnd(user, `Fail. ${user}`)

      const last = frames.at(-1)?.json
      assert.equal(last?.vote_requested, false)
      assert.equal(last?.comparison_id, id)
      assert.match(last?.vote_note, /no vote/)
      assert.deepEqual(
        frames
          .slice(-2)
          .map(({ json }) => json.type)
          .toSorted(),
        ['done', 'error'],
      )
      const vote = await server.vote(user, id, 'a')
      assert.deepEqual([vote.status, vote.body.code], [409, 'comparison_failed'])
      assert.equal(await server.pendingComparison(user, conversationId), null)
      assert.deepEqual(await server.contents(user, conversationId), [
        `Fail. ${user}`,
        failing === calm ? 'Wild!' : 'Calm.',
      ])
    }
  })

  it('the next question, which waits for both, is asked with the answer that came', async () => {
    for (let round = 0; round < 6; round++) {
      const user = someone()
      await server.script(user, [{ text: '…' }, { stall: true }, { cut: true }], says('Wild!'))
      const stream = await server.compare(user, `Fail. ${user}`)
      await stream.waitFor(({ data }) => data.includes('Wild!'))
      await stream.waitFor(({ data }) => data.includes('…'))
      const next = someone('next')
      const body = { client_id: user, conversation_id: conversationOf(stream), message: next }
      const following = server.call('POST', '/api/get_chat_response', { body })
      await until('the next question to be in the queue', async () => {
        const { body: open } = await server.call('GET', '/v1/agent/runs?status=queued', { user })
        return open.length === 1 ? true : undefined
      })

      await server.provider.release()

      assert.equal((await following).status, 200)
      const [asked] = await server.asked(next)
      const told = asked?.body.messages?.filter(({ role }) => role !== 'system').map(({ content }) => content)
      assert.deepEqual(told, [`Fail. ${user}`, 'Wild!', next])
    }
  })

  it('a cancel of the conversation stops both, at the provider too, and nothing follows', async () => {
    const user = someone()
    await server.script(user, hangsAfter('Calm…'), hangsAfter('Wild…'))
    const stream = await server.compare(user, `Stop. ${user}`)
    await until('both arms to speak', () =>
      armFrames(stream.frames).filter(({ json }) => json.type === 'chunk').length === 2 ? true : undefined,
    )

    const cancelled = await server.call('POST', '/api/cancel_stream', {
      body: { client_id: user, conversation_id: conversationOf(stream) },
    })

    assert.deepEqual([cancelled.status, cancelled.body.success, cancelled.body.cancelled_count], [200, true, 2])
    await stream.ended()
    const frames = armFrames(stream.frames)
    assert.deepEqual(
      frames.slice(-2).map(({ json }) => [json.type, json.status, json.code, json.vote_requested]),
      [
        ['error', 499, 'cancelled', false],
        ['error', 499, 'cancelled', false],
      ],
    )
    assert.equal(frames.length, 4)
    await until('the provider to see both leave', async () =>
      (await server.asked(`Stop. ${user}`)).every((request) => request.closedEarly) ? true : undefined,
    )
    assert.equal((await server.vote(user, idOf(stream), 'a')).status, 409)
    assert.equal((await server.comparison(user, idOf(stream))).state, 'failed')
  })

  it('an arm that waits for a person delays the endings of both, and says in its frames where to decide', async () => {
    const user = someone()
    await server.script(user, says('Calm.'), calls(['remember_note', { text: 'Be wild.' }]))
    const stream = await server.compare(user, `Consent. ${user}`)
    const card = await stream.waitFor(({ data }) => data.includes('/v1/tool-confirmations/'))
    await stream.waitFor(({ data }) => data.includes('Calm.'))
    const [asking, speaking] = [card, ...stream.frames.filter(({ data }) => data.includes('Calm.'))]
    assert.notEqual(armFrames([asking])[0]?.json.arm, armFrames(speaking === undefined ? [] : [speaking])[0]?.json.arm)
    assert.equal(
      armFrames(stream.frames).some(({ json }) => json.type === 'done'),
      false,
    )
    const waiting = await server.call('GET', '/v1/tool-confirmations?status=pending', { user })

    const confirmed = await server.call('POST', `/v1/tool-confirmations/${waiting.body[0].id}/confirm`, { user })

    assert.equal(confirmed.status, 200, confirmed.text)
    await stream.ended()
    assert.deepEqual(
      armFrames(stream.frames)
        .slice(-2)
        .map(({ json }) => [json.type, json.arm, json.vote_requested]),
      [
        ['done', 'a', true],
        ['done', 'b', true],
      ],
    )
  })

  it('a vote before both answers are there is refused, and counts afterwards', async () => {
    const user = someone()
    await server.script(user, says('Calm.'), pausesAfter('Wild…'))
    const stream = await server.compare(user, `Early. ${user}`)
    await stream.waitFor(({ data }) => data.includes('Wild…'))

    const early = await server.vote(user, idOf(stream), 'a')
    assert.deepEqual([early.status, early.body.code], [409, 'comparison_not_ready'])
    assert.equal(await server.pendingComparison(user, conversationOf(stream)), null)

    await server.provider.release()
    await stream.ended()
    assert.equal((await server.vote(user, idOf(stream), 'a')).status, 200)
  })

  it('a disconnect cancels both arms if the request asked for it', async () => {
    const user = someone()
    await server.script(user, hangsAfter('Calm…'), hangsAfter('Wild…'))
    const stream = await server.compare(user, { message: `Leave. ${user}`, on_disconnect: 'cancel' })
    await until('both arms to speak', () => (stream.frames.length === 2 ? true : undefined))

    stream.leave()

    await until('the comparison to fail', async () =>
      (await server.comparison(user, idOf(stream))).state === 'failed' ? true : undefined,
    )
  })
})

describe('a comparison that was left', () => {
  it('goes on, and gives the rest of each arm after any frame', async () => {
    const user = someone()
    const words = (name: string) => says(...Array.from({ length: 8 }, (_, index) => `${name}${index} `))
    await server.script(user, words('calm'), words('wild'))
    const { frames, id } = await server.compareToEnd(user, `Cut. ${user}`)
    const said = (of: readonly ArmFrame[], arm: string) =>
      of.filter(({ json }) => json.arm === arm).map(({ json }) => JSON.stringify(json))

    for (const [index, frame] of frames.entries()) {
      const again = await server.attach(user, id, frame.id)
      if (index === frames.length - 1) {
        assert.equal(again.status, 204)
        continue
      }
      await again.ended()
      const rest = armFrames(again.frames)
      for (const arm of arms) {
        assert.deepEqual(
          [...said(frames.slice(0, index + 1), arm), ...said(rest, arm)],
          said(frames, arm),
          `${arm} after ${frame.id}`,
        )
      }
    }
  })

  it('is live again for a client that comes back in the middle', async () => {
    const user = someone()
    await server.script(
      user,
      [{ text: ['calm 1 '] }, { stall: true }, { text: ['calm 2'] }, { finish: 'stop' }],
      says('wild 1 ', 'wild 2'),
    )
    const stream = await server.compare(user, `Come back. ${user}`)
    await stream.waitFor(({ data }) => data.includes('wild 2'))
    await stream.waitFor(({ data }) => data.includes('calm 1'))
    const seen = armFrames(stream.frames)
    stream.leave()

    const again = await server.attach(user, idOf(stream), seen.at(-1)?.id)
    await server.provider.release()
    await again.ended()

    const all = [...seen, ...armFrames(again.frames)]
    assert.deepEqual(arms.map((arm) => textOfArm(all, arm)).toSorted(), ['calm 1 calm 2', 'wild 1 wild 2'])
    assert.deepEqual(
      armFrames(again.frames)
        .slice(-2)
        .map(({ json }) => json.vote_requested),
      [true, true],
    )
  })

  it('refuses a cursor that it never gave out', async () => {
    const user = someone()
    const { id } = await server.compareToEnd(user, 'Cursor.')

    for (const cursor of ['12', 'a:9999,b:0', 'a:0,b:9999', 'nonsense', 'a:1.7,b:0']) {
      const { status } = await server.attach(user, id, cursor)
      assert.equal(status, 400, cursor)
    }
  })

  it('is found again by its Idempotency-Key, and no second one is made', async () => {
    const user = someone()
    const body = { message: `Once. ${user}` }
    const key = { 'idempotency-key': `key-${user}` }
    const first = await server.compare(user, body, key)
    await first.ended()

    const again = await server.compare(user, body, key)
    await again.ended()
    const resumed = await server.compare(user, body, { ...key, 'last-event-id': armFrames(first.frames)[0]?.id ?? '' })
    await resumed.ended()

    assert.equal(idOf(again), idOf(first))
    assert.equal(again.frames.length, first.frames.length)
    assert.equal(resumed.frames.length, first.frames.length - 1)
    assert.equal((await server.asked(`Once. ${user}`)).length, 2)
    const other = await server.compare(user, { message: 'Something else.' }, key)
    assert.equal(other.status, 409)
    const without = await server.compare(user, body, { 'last-event-id': 'a:1,b:1' })
    assert.equal(without.status, 400)
  })

  it('holds its conversation until both arms have ended', async () => {
    const user = someone()
    await server.script(user, says('Calm.'), pausesAfter('Wild…'))
    const stream = await server.compare(user, `Hold. ${user}`)
    await stream.waitFor(({ data }) => data.includes('Wild…'))
    await stream.waitFor(({ data }) => data.includes('Calm.'))

    const conversation_id = conversationOf(stream)
    const busy = await server.call('POST', '/api/get_chat_response', {
      body: { client_id: user, message: 'Me too.', conversation_id, when_busy: 'reject' },
    })

    assert.equal(busy.status, 409)
    await server.provider.release()
    await stream.ended()
  })
})

describe('a restart', () => {
  it('between the answers and the vote loses nothing', async () => {
    const first = await startAbTestServerProcess()
    let second: AbTestServer | undefined
    try {
      const user = someone()
      await first.script(user, says('Calm.'), says('Wild!'))
      const { id, conversationId, frames } = await first.compareToEnd(user, `Restart. ${user}`)
      await first.polylog.kill()
      second = await first.restart()

      const { body } = await second.call('GET', `/api/ab/pending?client_id=${user}&conversation_id=${conversationId}`)
      assert.equal(body.comparison.comparison_id, id)
      const voted = await second.vote(user, id, 'b')
      assert.equal(voted.status, 200, voted.text)
      const loaded = await second.call('POST', '/api/load_conversation', {
        body: { client_id: user, conversation_id: conversationId },
      })
      assert.equal(loaded.body.messages.at(-1).content, textOfArm(frames, 'b'))
    } finally {
      await second?.polylog.stop()
      await first.close()
    }
  })

  it('in the middle of both answers lets both come to their end, and the vote after them', async () => {
    const first = await startAbTestServerProcess()
    let second: AbTestServer | undefined
    try {
      const user = someone()
      await first.script(user, hangsAfter('Calm '), hangsAfter('Wild '))
      const stream = await first.compare(user, `Torn. ${user}`)
      await until('both arms to speak', () => (stream.frames.length === 2 ? true : undefined))
      await first.polylog.kill()
      await stream.ended()
      const seen = armFrames(stream.frames)
      await first.script(user, says('Calm ', 'to the end.'), says('Wild ', 'to the end!'))
      second = await first.restart()

      const again = await second.attach(user, idOf(stream), seen.at(-1)?.id)
      await again.ended()

      const all = [...seen, ...armFrames(again.frames)]
      assert.deepEqual(arms.map((arm) => textOfArm(all, arm)).toSorted(), ['Calm to the end.', 'Wild to the end!'])
      assert.equal(all.at(-1)?.json.vote_requested, true)
      assert.equal((await second.vote(user, idOf(stream), 'b')).status, 200)
      const loaded = await second.call('POST', '/api/load_conversation', {
        body: { client_id: user, conversation_id: conversationOf(stream) },
      })
      assert.deepEqual(
        loaded.body.messages.map((message: Json) => message.content),
        [`Torn. ${user}`, textOfArm(all, 'b')],
      )
    } finally {
      await second?.polylog.stop()
      await first.close()
    }
  })
})
