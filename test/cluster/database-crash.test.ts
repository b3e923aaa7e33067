// A database server that crashes under two nodes. Deltas are committed without waiting for the disk, so
// the crash loses the newest of them, although readers have seen them.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type Cluster, startCluster } from '../support/cluster.ts'
import { query } from '../support/postgres.ts'
import { type PostgresServer, startPostgresServer } from '../support/postgres-server.ts'
import { journaled, openStream, type SseStream } from '../support/sse.ts'
import { endOf, runIdOf, says, someone, type TestServer, until } from '../support/test-server.ts'

let database: PostgresServer
let cluster: Cluster
before(async () => {
  database = await startPostgresServer()
  // The server writes deltas to disk only when it has to.
  await query(database.url, `ALTER SYSTEM SET wal_writer_delay = '10s'`)
  await query(database.url, 'SELECT pg_reload_conf()')
  cluster = await startCluster({
    nodes: 2,
    databaseUrl: database.url,
    // No heartbeat, which would write them too.
    environment: { POLYLOG_LEASE_MS: '600000' },
  })
})
after(async () => {
  await cluster.close()
  database.stop()
})

const owner = () => cluster.nodes[0]?.server as TestServer
const other = () => cluster.nodes[1]?.server as TestServer
const words = Array.from({ length: 40 }, (_, index) => `word ${index}. `)

function streamAtOther(user: string, runId: string, lastEventId?: string): Promise<SseStream> {
  const url = `${other().polylog.baseUrl}/v1/agent/runs/${runId}/stream?userId=${user}`
  return openStream(url, lastEventId === undefined ? {} : { headers: { 'last-event-id': lastEventId } })
}

async function lastSeqOf(runId: string): Promise<number> {
  return Number((await query(database.url, 'SELECT last_seq FROM runs WHERE id = ?', runId))[0]?.['last_seq'])
}

/** A run at the first node whose words were seen at both, before the provider stopped for a while. */
async function begun(user: string): Promise<{ runId: string; live: SseStream; remote: SseStream }> {
  const rest = [{ text: ['The rest.'] }, { finish: 'stop' as const }]
  // The second answer is needed if the node was writing at the moment of the crash, and asks again.
  await cluster.provider.script(
    [
      [{ text: words }, { stall: true }, ...rest],
      [{ text: words }, ...rest],
    ],
    user,
  )
  const live = await owner().chat(user, `Tell ${user}`)
  const runId = runIdOf(live)
  const remote = await streamAtOther(user, runId)
  for (const stream of [live, remote]) await stream.waitFor(({ data }) => data.includes('word 39.'))
  return { runId, live, remote }
}

async function whole(stream: SseStream): Promise<string> {
  assert.deepEqual(await stream.ended(), { cut: false })
  assert.equal(endOf(stream.frames).status, 'succeeded')
  return stream.text()
}

describe('a crash of the database', () => {
  it('loses deltas that were seen; the node that wrote them stores them again, so readers have what the journal has', async () => {
    const user = someone()
    const { runId, live, remote } = await begun(user)
    const before = await lastSeqOf(runId)
    cluster.nodes[0]?.freeze()
    await database.restart('immediate')
    assert.ok((await lastSeqOf(runId)) < before, 'the crash lost deltas')

    // A reader that has more than the journal waits until the node is back.
    const seen = journaled(remote.frames)
    const back = streamAtOther(user, runId, seen.at(-1)?.id)
    await until('an answer of the other node', async () => {
      const { status } = await other().call('GET', `/v1/agent/runs/${runId}`, { user })
      return status === 200
    })
    cluster.nodes[0]?.wake()
    const later = await back
    await cluster.provider.release()

    const texts = [await whole(live), await whole(remote)]
    await later.ended()
    const replay = await whole(await streamAtOther(user, runId))
    assert.deepEqual(texts, [replay, replay])
    assert.deepEqual([...seen, ...journaled(later.frames)], journaled(remote.frames))
  })

  it('loses nothing else: a run that was seen to end has ended', async () => {
    const user = someone()
    await cluster.provider.script([says('Done.')], user)
    const live = await owner().chat(user, `Greet ${user}`)
    const text = await whole(live)
    await database.restart('immediate')
    await until('an answer', async () => {
      const { status } = await other().call('GET', `/v1/agent/runs/${runIdOf(live)}`, { user })
      return status === 200
    })
    assert.equal(await whole(await streamAtOther(user, runIdOf(live))), text)
  })
})
