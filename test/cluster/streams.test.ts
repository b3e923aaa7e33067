// Two real servers on one database: a run that one node drives, read on the other.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type Cluster, startCluster } from '../support/cluster.ts'
import { query } from '../support/postgres.ts'
import type { Action } from '../support/fake-provider.ts'
import { journaled, openStream, type SseFrame, type SseStream } from '../support/sse.ts'
import { calls, endOf, runIdOf, says, someone, type TestServer, until } from '../support/test-server.ts'

let cluster: Cluster
before(async () => {
  cluster = await startCluster({ nodes: 2 })
})
after(() => cluster.close())

const nodeA = () => cluster.nodes[0]?.server as TestServer
const nodeB = () => cluster.nodes[1]?.server as TestServer

/** The answer comes in parts; after each the provider waits until it is released. */
const parts = [1, 2, 3, 4].map((part) => Array.from({ length: 12 }, (_, index) => `part ${part} word ${index}. `))

const has = (part: number) => (frame: SseFrame) => frame.data.includes(`part ${part} word 11.`)

/** A run that node A drives: it has said the first part of its answer. */
async function begun(user: string): Promise<{ runId: string; live: SseStream }> {
  const [first = [], ...rest] = parts
  const stalled: Action[] = rest.flatMap((text) => [{ stall: true as const }, { text }])
  await cluster.provider.script([[{ text: first }, ...stalled, { finish: 'stop' }]], user)
  const live = await nodeA().chat(user, `Tell ${user}`)
  await live.waitFor(has(1))
  return { runId: runIdOf(live), live }
}

/** Lets the provider say the next parts, and waits until they have arrived. */
async function hear(live: SseStream, ...wanted: number[]): Promise<void> {
  for (const part of wanted) {
    await cluster.provider.release()
    await live.waitFor(has(part))
  }
}

function streamOn(server: TestServer, user: string, runId: string, format = 'sse', lastEventId?: string) {
  const url = `${server.polylog.baseUrl}/v1/agent/runs/${runId}/stream?userId=${user}&format=${format}`
  return openStream(url, lastEventId === undefined ? {} : { headers: { 'last-event-id': lastEventId } })
}

async function whole(stream: SseStream): Promise<string> {
  assert.deepEqual(await stream.ended(), { cut: false })
  return stream.text()
}

/** These tell of the text while it comes. */
const liveFormats = ['sse', 'ui-message', 'ag-ui', 'openai-chat', 'chunks-ndjson']
const formats = [...liveFormats, 'fcmp', 'session', 'a2a', 'langgraph', 'openai-responses', 'vercel-ai']

describe('a run of another node', () => {
  it('is read live in every dialect, byte for byte as on its own node', async () => {
    const user = someone()
    const { runId, live } = await begun(user)
    const remote = await Promise.all(formats.map((format) => streamOn(nodeB(), user, runId, format)))
    await hear(live, 2, 3)
    // The run stands still, so this is delivered while it runs.
    for (const [index, format] of liveFormats.entries())
      await until(`the text as ${format}`, () => remote[index]?.text().includes('part 3 word 11') || undefined)
    await hear(live, 4)
    const texts = await Promise.all(remote.map(whole))
    assert.equal(texts[0], await whole(live))
    for (const [index, format] of formats.entries()) {
      assert.equal(texts[index], await whole(await streamOn(nodeA(), user, runId, format)), format)
      assert.equal(texts[index], await whole(await streamOn(nodeB(), user, runId, format)), format)
    }
  })

  it('can be left on one node and resumed on the other, without a gap or a repeat', async () => {
    const user = someone()
    const { runId, live } = await begun(user)
    const got: SseFrame[] = []
    /** Reads on this node, after what the client has, until it has this part. */
    const read = async (server: TestServer, part: number) => {
      const stream = await streamOn(server, user, runId, 'sse', got.at(-1)?.id)
      if (part > 1) await hear(live, part)
      await stream.waitFor(has(part))
      stream.leave()
      got.push(...journaled(stream.frames))
    }
    await read(nodeB(), 1)
    await read(nodeB(), 2)
    await read(nodeA(), 3)
    const last = await streamOn(nodeB(), user, runId, 'sse', got.at(-1)?.id)
    await hear(live, 4)
    await whole(last)
    await whole(live)
    assert.deepEqual([...got, ...journaled(last.frames)], journaled(live.frames))
  })

  it('is followed on when the bus loses its connections in the middle', async () => {
    const user = someone()
    const { runId, live } = await begun(user)
    const remote = await streamOn(nodeB(), user, runId)
    await remote.waitFor(has(1))
    await query(
      cluster.databaseUrl,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE application_name = 'polylog bus' AND datname = current_database()`,
    )
    await hear(live, 2, 3, 4)
    assert.equal(await whole(remote), await whole(live))
    const { text } = await nodeB().call('GET', '/metrics')
    assert.match(text, /^polylog_bus_reconnects_total [1-9]/m)
  })

  it('is cancelled from here, and the answer comes after its end is stored', async () => {
    const user = someone()
    const { runId, live } = await begun(user)
    const { status, body } = await nodeB().call('POST', `/v1/agent/runs/${runId}/cancel`, { user })
    assert.equal(status, 200)
    assert.equal(body.status, 'cancelled')
    const stored = await nodeA().call('GET', `/v1/agent/runs/${runId}`, { user })
    assert.equal(stored.body.status, 'cancelled')
    await whole(live)
    assert.equal(endOf(live.frames).status, 'cancelled')
  })

  it('goes on when its node dies: followers here stay, and get the rest from the node that took over', async () => {
    const user = someone()
    const third = await cluster.add()
    await cluster.provider.script([[{ text: parts[0] ?? [] }, { stall: true }]], user)
    const live = await third.server.chat(user, `Tell ${user}`)
    const runId = runIdOf(live)
    await live.waitFor(has(1))
    const followers = await Promise.all([streamOn(nodeA(), user, runId), streamOn(nodeB(), user, runId)])
    for (const stream of followers) await stream.waitFor(has(1))
    await cluster.provider.script([says('the end, after all')], user)
    await third.kill()
    const [onA, onB] = await Promise.all(followers.map(whole))
    assert.equal(onA, onB)
    assert.match(onA ?? '', /the end, after all/)
    assert.equal(onA, await whole(await streamOn(nodeA(), user, runId)))
  })
})

it('events and commands of another node are counted', async () => {
  const user = someone()
  await cluster.provider.script([calls(['get_time', {}]), says('Late.')], user)
  const live = await nodeA().chat(user, `When ${user}`)
  await whole(live)
  const sent = await nodeA().call('GET', '/metrics')
  assert.match(sent.text, /^polylog_bus_hints_sent_total [1-9]/m)
  const received = await nodeB().call('GET', '/metrics')
  assert.match(received.text, /^polylog_bus_hints_received_total [1-9]/m)
  assert.match(received.text, /^polylog_bus_lag_seconds_count [1-9]/m)
})
