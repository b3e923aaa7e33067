// The EventSource client of browsers, as a package: it reconnects by itself with Last-Event-ID,
// keeps its old URL, and stops only at a 204.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { EventSource } from 'eventsource'
import { runIdOf, says, someone, sharedTestServer } from '../support/test-server.ts'

describe('an EventSource on /v1/agent/runs/:runId/stream', () => {
  const server = sharedTestServer()

  it('gets every frame once, although the server ends the stream, and then stops asking', async () => {
    const user = someone()
    await server.provider.script([says('One ', 'two ', 'three.')], user)
    const stream = await server.chat(user, `count, ${user}`)
    const runId = runIdOf(stream)
    await stream.ended()

    const seen: { id: string; event: string }[] = []
    const statuses: number[] = []
    const source = new EventSource(`${server.polylog.baseUrl}/v1/agent/runs/${runId}/stream?userId=${user}&after=0`, {
      fetch: async (input, init) => {
        const response = await fetch(input, init)
        statuses.push(response.status)
        return response
      },
    })
    for (const event of ['agent.start', 'context.patch', 'agent.delta', 'agent.message', 'agent.end']) {
      source.addEventListener(event, (message) => seen.push({ id: message.lastEventId, event }))
    }
    // The stream ends, the client comes back with the last id, and 204 makes it stop for good.
    await new Promise<void>((resolve) => {
      source.addEventListener('error', () => {
        if (source.readyState === EventSource.CLOSED) resolve()
      })
    })

    const frames = stream.frames.filter(({ id }) => id !== undefined)
    assert.deepEqual(
      seen,
      frames.map(({ id, event }) => ({ id, event })),
    )
    assert.deepEqual(statuses, [200, 204])
  })
})
