// /v1/agent/snapshots over HTTP: reading, listing and comparing stored results, and whose
// they are.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { resultOf, sharedOneShotServer } from '../support/one-shot.ts'
import { type Answer, type Json, says, someone } from '../support/test-server.ts'

const output = { type: 'object', properties: { risks: { type: 'array' } } }
const server = sharedOneShotServer({
  risks: { output },
  talk: { output, card: { scope: 'conversation' } },
  ways: { output, card: { operations: [{ id: 'one' }, { id: 'two' }] } },
})

const list = (answer: Answer) => answer.body as unknown as Json[]

/** Runs the agent once and returns the result; the model answers with `risks`. */
async function result(user: string, risks: unknown, changes: Json = {}): Promise<Json> {
  const { input, ...rest } = changes
  await server.provider.script([says(JSON.stringify({ risks }))], user)
  const body = { agentId: 'risks', userId: user, input: { about: user, ...input }, options: { forceRefresh: true } }
  return resultOf(await server.run({ ...body, ...rest }))
}

describe('a snapshot', () => {
  test('is read with its result and everything that is known about it', async () => {
    const user = someone()
    const made = await result(user, [{ title: 'A' }])
    const { status, body } = await server.call('GET', `/v1/agent/snapshots/${made.snapshotId}`, { user })

    assert.equal(status, 200)
    const { sourceHash, promptVersion, expiresAt, expiresAtMs, ...rest } = body
    assert.deepEqual(rest, {
      snapshotId: made.snapshotId,
      runId: made.runId,
      agentId: 'risks',
      operation: null,
      scopeType: 'user',
      scopeId: user,
      model: 'openai/fake',
      generatedAt: made.generatedAt,
      generatedAtMs: made.generatedAtMs,
      data: { risks: [{ title: 'A' }] },
    })
    assert.match(sourceHash, /^[0-9a-f]{64}$/)
    assert.match(promptVersion, /^1\.0\.0/)
    assert.equal(Date.parse(expiresAt), expiresAtMs)
    assert.equal(expiresAtMs - made.generatedAtMs, 3_600_000)
  })

  test('of another user does not exist, on any of the routes', async () => {
    const [user, stranger] = [someone(), someone('stranger')]
    const one = await result(user, [])
    const two = await result(user, [])
    const own = await result(stranger, [])

    for (const path of [
      `/v1/agent/snapshots/${one.snapshotId}`,
      `/v1/agent/snapshots/${two.snapshotId}/diff`,
      `/v1/agent/snapshots/${own.snapshotId}/diff?against=${one.snapshotId}`,
    ]) {
      const answer = await server.call('GET', path, { user: stranger })
      assert.deepEqual([answer.status, answer.body.code], [404, 'snapshot_not_found'], path)
    }
    assert.deepEqual(list(await server.call('GET', `/v1/agent/snapshots?scopeId=${user}`, { user: stranger })), [])
  })
})

describe('the list of snapshots', () => {
  test('has the newest first, page by page, without the results', async () => {
    const user = someone()
    const made = [await result(user, []), await result(user, []), await result(user, [])]
    const first = await server.call('GET', '/v1/agent/snapshots?limit=2', { user })
    const next = /<([^>]+)>; rel="next"/.exec(first.headers.get('link') ?? '')?.[1] ?? ''
    const second = await server.call('GET', next)

    assert.deepEqual(
      [...list(first), ...list(second)].map(({ snapshotId }) => snapshotId as string),
      made.map(({ snapshotId }) => snapshotId as string).toReversed(),
    )
    assert.equal(second.headers.get('link'), null)
    assert.ok(list(first).every((item) => !('data' in item)))
  })

  test('is filtered by agent, operation and scope; a conversation is found by its name', async () => {
    const user = someone()
    await result(user, [])
    await result(user, [], { agentId: 'ways', operation: 'one' })
    await result(user, [], { agentId: 'ways', operation: 'two' })
    // The first one is made before the conversation exists, the second one after.
    await result(user, [], { agentId: 'talk', input: { conversationId: 'chat-1' } })
    await server.provider.script([says('Hello.')], user)
    const chat = { agentId: 'chat_conversation', userId: user, conversationId: 'chat-1', input: { prompt: user } }
    assert.equal((await server.run(chat)).status, 200)
    await result(user, [], { agentId: 'talk', input: { conversationId: 'chat-1' } })
    const found = async (query: string) =>
      list(await server.call('GET', `/v1/agent/snapshots?${query}`, { user })).map(
        ({ agentId, operation, scopeId }) => `${agentId} ${operation} ${scopeId}`,
      )

    assert.deepEqual(await found('agentId=ways'), [`ways two ${user}`, `ways one ${user}`])
    assert.deepEqual(await found('agentId=ways&operation=one'), [`ways one ${user}`])
    assert.deepEqual(await found('scopeId=chat-1'), ['talk null chat-1', 'talk null chat-1'])
    assert.deepEqual(await found('agentId=nothing'), [])

    assert.equal((await server.call('DELETE', '/v1/agent/messages?conversationId=chat-1', { user })).status, 204)
    assert.deepEqual(await found('scopeId=chat-1'), [], 'they go with their conversation')
    assert.equal((await found('')).length, 3)
  })
})

describe('the difference of two snapshots', () => {
  test('says what changed since the one before, or since the one that is named', async () => {
    const user = someone()
    const one = await result(user, [{ title: 'A', level: 1 }])
    await result(user, [{ title: 'A', level: 2 }])
    const three = await result(
      user,
      [
        { title: 'B', level: 1 },
        { title: 'A', level: 2 },
      ],
      { input: { more: 1 } },
    )
    const diff = async (query = '') =>
      (await server.call('GET', `/v1/agent/snapshots/${three.snapshotId}/diff${query}`, { user })).body

    const added = { path: 'risks[title=B]', change: 'added', after: { title: 'B', level: 1 } }
    const latest = await diff()
    assert.deepEqual([latest.changes, latest.truncated], [[added], false])
    assert.equal(latest.after.snapshotId, three.snapshotId)
    const since = await diff(`?against=${one.snapshotId}`)
    const changed = { path: 'risks[title=A].level', change: 'changed', before: 1, after: 2 }
    assert.deepEqual(since.changes, [added, changed])
    assert.equal(since.before.snapshotId, one.snapshotId)
    assert.deepEqual((await diff(`?against=${three.snapshotId}`)).changes, [])
  })

  test('is refused if there is no earlier one, or if the two are not comparable', async () => {
    const user = someone()
    const only = await result(user, [])
    const other = await result(user, [], { agentId: 'ways', operation: 'one' })
    const another = await result(user, [], { agentId: 'ways', operation: 'two' })
    const diff = async (id: string, query = '') => {
      const { status, body } = await server.call('GET', `/v1/agent/snapshots/${id}/diff${query}`, { user })
      return [status, body.code]
    }

    assert.deepEqual(await diff(only.snapshotId), [400, 'snapshots_not_comparable'])
    for (const [one, two] of [
      [only, other],
      [other, another],
    ] as const) {
      assert.deepEqual(await diff(one.snapshotId, `?against=${two.snapshotId}`), [400, 'snapshots_not_comparable'])
    }
    assert.deepEqual(await diff(only.snapshotId, '?against=nothing'), [404, 'snapshot_not_found'])
    assert.deepEqual(await diff('nothing'), [404, 'snapshot_not_found'])
  })
})
