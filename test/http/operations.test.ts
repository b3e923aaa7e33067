// GET /v1/operations: what an operator sees of all users, and who is an operator.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { apiKeysSetting } from '../support/api-keys.ts'
import { onPostgres } from '../support/test-database.ts'
import { hangsAfter, type Json, runIdOf, sharedTestServers, someone } from '../support/test-server.ts'

const keys = { POLYLOG_AUTH: 'required', POLYLOG_API_KEYS: apiKeysSetting({ ann: 'ann-key', bob: 'bob-key' }) }
const [open, guarded, unset] = sharedTestServers({}, { ...keys, POLYLOG_ADMINS: 'root, ann' }, keys)

describe('the overview for operators', () => {
  test('has the open runs of all users, the open streams with their lag, and the load', async () => {
    const [user, other] = [someone(), someone()]
    await open.provider.script([hangsAfter('so')], user)
    const chat = await open.chat(user, { input: user, conversationId: `conv-${user}` })
    await chat.waitFor(({ json }) => json.event === 'agent.delta')
    const queued = await open.chat(user, { input: `${user} next`, conversationId: `conv-${user}` })
    const { status, body } = await open.call('GET', '/v1/operations', { user: other })
    for (const stream of [queued, chat]) {
      await open.call('POST', `/v1/agent/runs/${runIdOf(stream)}/cancel`, { user, body: {} })
    }

    assert.equal(status, 200)
    const mine = (body.runs as Json[]).filter(({ userId }) => userId === user)
    assert.deepEqual(
      mine.map(({ runId, status: state, stuck }) => [runId, state, stuck]),
      [
        [runIdOf(chat), 'running', null],
        [runIdOf(queued), 'queued', null],
      ],
    )
    assert.ok(body.counts.running >= 1)
    assert.deepEqual(
      (body.nodes as Json[]).map(({ id }) => id),
      [body.node],
    )
    const stream = (body.streams as Json[]).find(({ runId }) => runId === runIdOf(chat))
    assert.deepEqual([stream?.['format'], stream?.['lag'], stream?.['bufferedBytes']], ['sse', 0, 0])
    assert.ok(Array.isArray(body.load.samples))
  })

  test('is only for POLYLOG_ADMINS if a login is required', async () => {
    const ask = (server: typeof open, key: string) =>
      server.call('GET', '/v1/operations', { headers: { 'x-api-key': key } })
    assert.equal((await ask(guarded, 'ann-key')).status, 200)
    for (const [server, key] of [
      [guarded, 'bob-key'],
      [unset, 'ann-key'],
    ] as const) {
      const { status, body } = await ask(server, key)
      assert.deepEqual([status, body.code], [403, 'forbidden'])
      assert.match(body.message, /POLYLOG_ADMINS/)
    }
  })
})

test('the metrics of operations: commits, stuck runs by reason, nodes, readers and readiness', async () => {
  const user = someone()
  await open.provider.script([hangsAfter('so')], user)
  const chat = await open.chat(user, user)
  await chat.waitFor(({ json }) => json.event === 'agent.delta')
  const { text } = await open.call('GET', '/metrics')
  await open.call('POST', `/v1/agent/runs/${runIdOf(chat)}/cancel`, { user, body: {} })
  const value = (series: string) => {
    const line = text.split('\n').find((each) => each.startsWith(`${series} `))
    return line === undefined ? undefined : Number(line.slice(series.length + 1))
  }

  assert.ok((value('polylog_commit_seconds_count') ?? 0) > 0)
  assert.ok((value('polylog_commit_seconds_sum') ?? 0) > 0)
  assert.ok((value('polylog_commits_under_way') ?? -1) >= 0)
  for (const reason of ['no_node', 'cancel_pending', 'queued_long', 'deadline_passed'])
    assert.equal(value(`polylog_runs_stuck{reason="${reason}"}`), 0, reason)
  assert.deepEqual([value('polylog_nodes{state="live"}'), value('polylog_nodes{state="dead"}')], [1, 0])
  assert.deepEqual([value('polylog_stream_lag_events'), value('polylog_stream_buffered_bytes')], [0, 0])
  assert.equal(value('polylog_ready'), 1)
  const connections = value('polylog_database_connections{state="idle"}')
  assert.equal(connections === undefined, !onPostgres)
})
