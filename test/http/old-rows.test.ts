// Runs with a stored row that can no longer be read: damage on disk, an old version, another
// program. The row is skipped and counted, and every route shows the rest.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endOf, runIdOf, says, someone, sharedTestServer } from '../support/test-server.ts'
import { openStream } from '../support/sse.ts'
import { changeJournal } from '../support/test-database.ts'

const server = sharedTestServer()

/** Makes one stored event of a run unreadable. */
async function damage(dataDir: string, runId: string, which: 'first' | 'last'): Promise<void> {
  const old = '{"seq":1,"type":"run.accepted","data":{"from":"an older version"}}'
  await changeJournal(dataDir, runId, (line, index, lines) =>
    index === (which === 'first' ? 0 : lines.length - 1) ? old : line,
  )
}

test('a run with a damaged row, its first or its last, is read by every route, and none answers 500', async () => {
  const user = someone()
  const runs: { id: string; conversationId: string; lost: 'first' | 'last' }[] = []
  for (const lost of ['first', 'last'] as const) {
    const marker = `${lost} ${user}`
    await server.provider.script([says('All is well.')], marker)
    const conversationId = `${lost}-${user}`
    const stream = await server.chat(user, { input: marker, conversationId })
    await stream.ended()
    assert.equal(endOf(stream.frames).status, 'succeeded')
    runs.push({ id: runIdOf(stream), conversationId, lost })
  }
  await server.polylog.stop()
  for (const { id, lost } of runs) await damage(server.polylog.dataDir, id, lost)
  await server.restart()

  for (const { id, conversationId, lost } of runs) {
    for (const path of [
      `/v1/agent/runs/${id}`,
      '/v1/agent/runs',
      `/v1/agent/runs/${id}/timeline`,
      `/v1/agent/runs/${id}/invariants`,
      `/v1/conversations/${conversationId}`,
      `/v1/conversations/${conversationId}/messages`,
      `/v1/agent/messages?conversationId=${conversationId}`,
      `/api/trace/${id}?client_id=${user}`,
    ]) {
      const answer = await server.call('GET', path, { user })
      assert.equal(answer.status, 200, `${lost} ${path}: ${answer.text}`)
    }
    const { trace } = (await server.call('GET', `/api/trace/${id}?client_id=${user}`, { user })).body
    assert.ok(JSON.stringify(trace.events).includes('All is well.'))
    assert.deepEqual([trace.status, trace.conversation_id, trace.error], ['completed', conversationId, null])
    assert.equal(trace.total_duration_ms, Date.parse(trace.completed_at) - Date.parse(trace.started_at))
    const { skipped } = (await server.call('GET', `/v1/agent/runs/${id}/timeline`, { user })).body
    assert.equal(skipped, 1)
    for (const format of ['sse', 'vercel-ai']) {
      const url = `${server.polylog.baseUrl}/v1/agent/runs/${id}/stream?format=${format}&userId=${user}`
      const stream = await openStream(url)
      await stream.ended()
      assert.ok(stream.text().includes('All is well.'), `${lost} ${format}`)
    }
    // The conversation goes on.
    const next = `next in ${lost} ${user}`
    await server.provider.script([says('Still here.')], next)
    const frames = await server.chatToEnd(user, { input: next, conversationId })
    assert.equal(endOf(frames).status, 'succeeded')
  }
})
