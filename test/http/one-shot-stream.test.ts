// One-shot runs as streams: live, replayed from a stored result, resumed, and in every format; and
// their timeline.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { goodAnswer, resultOf, sharedOneShotServer, wordBody } from '../support/one-shot.ts'
import { openStream } from '../support/sse.ts'
import { queryDatabase } from '../support/test-database.ts'
import { type Json, named, says, someone } from '../support/test-server.ts'

const server = sharedOneShotServer()

describe('a stream of a one-shot run', () => {
  const stream = (body: Json, headers: Record<string, string> = {}, query = '') =>
    openStream(`${server.baseUrl}/v1/agent/run${query}`, { method: 'POST', body, headers })
  const sse = { accept: 'text/event-stream' }

  test('streams the run as it goes on, from the start to the end', async () => {
    const user = someone()
    await server.provider.script([says('{"word":', '"fine"}')], user)
    const live = await stream(wordBody(user), sse)
    await live.ended()

    assert.deepEqual(
      live.frames.map(({ json }) => json.event),
      ['agent.start', 'agent.delta', 'agent.delta', 'agent.message', 'agent.end'],
    )
    assert.equal(live.frames.at(-1)?.json.data.output, '{"word":"fine"}')
    assert.equal(live.headers['x-cached'], 'false')
  })

  test('replays the run behind a stored result, byte for byte, and asks no model', async () => {
    const user = someone()
    await server.provider.script([says('{"word":', '"fine"}')], user)
    const live = await stream(wordBody(user), sse)
    await live.ended()
    const replay = await stream(wordBody(user), sse)
    await replay.ended()

    assert.equal(replay.headers['x-cached'], 'true')
    assert.equal(replay.headers['x-run-id'], live.headers['x-run-id'])
    assert.equal(replay.text(), live.text())
    assert.equal((await server.asked(user)).length, 1)
  })

  test('of a stored result whose run was removed is a new run, and says so', async () => {
    const user = someone()
    await server.provider.script([goodAnswer, says('{"word":"again"}')], user)
    const { runId, snapshotId } = resultOf(await server.run(wordBody(user)))
    await server.restart({}, async () => {
      await queryDatabase(server.dataDir, 'DELETE FROM journal WHERE run_id = ?', runId)
      await queryDatabase(server.dataDir, 'DELETE FROM runs WHERE id = ?', runId)
    })
    const hit = resultOf(await server.run(wordBody(user)))
    assert.deepEqual([hit.cached, hit.runId, hit.snapshotId, hit.data.word], [true, runId, snapshotId, 'fine'])

    const live = await stream(wordBody(user), sse)
    await live.ended()
    assert.equal(live.headers['x-cached'], 'false')
    assert.notEqual(live.headers['x-run-id'], runId)
    assert.equal(live.frames.at(-1)?.json.data.output, '{"word":"again"}')
  })

  test('comes in every format that the server has', async () => {
    const { body: openapi } = await server.call('GET', '/openapi.json')
    const parameters = openapi.paths['/v1/agent/run'].post.parameters as Json[]
    const names = parameters.find(({ name }) => name === 'format')?.description as string
    const formats = names.replace(' (default)', '').split(/, | or /)
    assert.ok(formats.length >= 6, names)
    const user = someone()
    await server.provider.script([goodAnswer], user)
    resultOf(await server.run(wordBody(user)))

    for (const format of formats) {
      const answer = await fetch(`${server.baseUrl}/v1/agent/run?format=${format}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(wordBody(user)),
      })
      assert.equal(answer.status, 200, format)
      assert.doesNotMatch(answer.headers.get('content-type') ?? '', /^application\/json/, format)
      assert.match(await answer.text(), /fine/, format)
      assert.equal(answer.headers.get('x-cached'), 'true', format)
    }
    const unknown = await server.call('POST', '/v1/agent/run?format=morse', { body: wordBody(user) })
    assert.deepEqual([unknown.status, unknown.body.code], [400, 'unknown_format'])
  })

  test('that broke off is resumed by its key and the last frame', async () => {
    const user = someone()
    const headers = { ...sse, 'idempotency-key': `key-${user}` }
    await server.provider.script([says('{"word":', '"fine"}')], user)
    const live = await stream(wordBody(user), headers)
    await live.ended()
    const resumed = await stream(wordBody(user), { ...headers, 'last-event-id': live.frames[1]?.id ?? '' })
    await resumed.ended()

    assert.deepEqual(
      resumed.frames.map(({ id }) => id),
      live.frames.slice(2).map(({ id }) => id),
    )
    const withoutKey = await server.call('POST', '/v1/agent/run', {
      body: wordBody(user),
      headers: { ...sse, 'last-event-id': '1' },
    })
    assert.deepEqual([withoutKey.status, withoutKey.body.code], [400, 'resume_by_post'])
    const asJson = await server.run(wordBody(user), { 'last-event-id': '1' })
    assert.deepEqual([asJson.status, asJson.body.code], [400, 'resume_by_post'])
  })

  test('is refused with JSON before it starts, like any other answer', async () => {
    const answer = await server.call('POST', '/v1/agent/run', {
      body: { agentId: 'word', input: {} },
      headers: sse,
    })
    assert.deepEqual([answer.status, answer.body.code], [400, 'invalid_input'])
  })

  test('says that the run failed', async () => {
    const user = someone()
    await server.provider.script([[{ status: 500 }]], user)
    const live = await stream(wordBody(user), sse)
    await live.waitFor(named('error'))
    await live.ended()
    assert.equal(live.frames.at(-1)?.json.data.status, 'failed')
  })
})

describe('the timeline of a one-shot run', () => {
  test('has everything from the start to the end, and the run keeps the rules of the journal', async () => {
    const user = someone()
    await server.provider.script([goodAnswer], user)
    const { runId } = resultOf(await server.run(wordBody(user)))
    const { body } = await server.call('GET', `/v1/agent/runs/${runId}/timeline`, { user })

    const names = (body.events as Json[]).map(({ event }) => event as string)
    assert.deepEqual(
      [names[0], names.at(-1), body.status, body.agentId],
      ['agent.start', 'agent.end', 'succeeded', 'word'],
    )
    const { body: rules } = await server.call('GET', `/v1/agent/runs/${runId}/invariants`, { user })
    assert.ok((rules.rules as Json[]).every(({ kept }) => kept === true))
  })
})
