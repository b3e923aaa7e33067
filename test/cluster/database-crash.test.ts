// A database server that crashes under two nodes. Deltas are committed without waiting for the disk, so
// the crash loses the newest of them, although readers have seen them.

import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { type Cluster, startCluster } from '../support/cluster.ts'
import { query } from '../support/postgres.ts'
import { type PostgresServer, startPostgresServer } from '../support/postgres-server.ts'
import { openStream } from '../support/sse.ts'
import { endOf, runIdOf, someone, type TestServer } from '../support/test-server.ts'

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

it('deltas that the database lost are stored again by the node that wrote them, so readers have what the journal has', async () => {
  const [owner, other] = cluster.nodes.map(({ server }) => server) as unknown as [TestServer, TestServer]
  const user = someone()
  const words = Array.from({ length: 40 }, (_, index) => `word ${index}. `)
  const rest = [{ text: ['The rest.'] }, { finish: 'stop' as const }]
  await cluster.provider.script([[{ text: words }, { stall: true }, ...rest]], user)
  const live = await owner.chat(user, `Tell ${user}`)
  const runId = runIdOf(live)
  const url = `${other.polylog.baseUrl}/v1/agent/runs/${runId}/stream?userId=${user}`
  const remote = await openStream(url)
  for (const stream of [live, remote]) await stream.waitFor(({ data }) => data.includes('word 39.'))
  const lastSeq = async () =>
    Number((await query(database.url, 'SELECT last_seq FROM runs WHERE id = $1', runId))[0]?.['last_seq'])
  const before = await lastSeq()
  // The node asks again if it was writing at the moment of the crash.
  await cluster.provider.script([[{ text: words }, ...rest]], user)

  await database.restart('immediate')
  assert.ok((await lastSeq()) < before, 'the crash lost deltas')
  await cluster.provider.release()

  for (const stream of [live, remote]) {
    assert.deepEqual(await stream.ended(), { cut: false })
    assert.equal(endOf(stream.frames).status, 'succeeded')
  }
  const replay = await openStream(url)
  await replay.ended()
  assert.equal(live.text(), replay.text())
  assert.equal(remote.text(), replay.text())
})
