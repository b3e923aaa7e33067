// Two real servers on one database whose hints go over NATS.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { startCluster } from '../support/cluster.ts'
import { natsMissing, startNatsServer } from '../support/nats-server.ts'
import { query } from '../support/postgres.ts'
import { openStream } from '../support/sse.ts'
import { runIdOf, someone, type TestServer, until } from '../support/test-server.ts'

it('a run of another node is followed over NATS, also after NATS was restarted', { skip: natsMissing }, async () => {
  const nats = await startNatsServer(['--user', 'nodes', '--pass', 's3cret'])
  const cluster = await startCluster({
    nodes: 2,
    environment: { POLYLOG_BUS: `nats://nodes:s3cret@127.0.0.1:${nats.port}/test` },
  })
  try {
    const [a, b] = cluster.nodes.map(({ server }) => server) as unknown as [TestServer, TestServer]
    const listeners = await query(
      cluster.databaseUrl,
      `SELECT pid FROM pg_stat_activity WHERE application_name = 'polylog bus' AND datname = current_database()`,
    )
    assert.deepEqual(listeners, [])
    const user = someone()
    const parts = ['one. ', 'two. ', 'three.']
    const actions = parts.flatMap((text) => [{ text: [text] }, { stall: true as const }])
    await cluster.provider.script([[...actions, { finish: 'stop' }]], user)
    const live = await a.chat(user, `Count ${user}`)
    await live.waitFor(({ data }) => data.includes('one.'))
    const remote = await openStream(`${b.polylog.baseUrl}/v1/agent/runs/${runIdOf(live)}/stream?userId=${user}`)
    await remote.waitFor(({ data }) => data.includes('one.'))
    await cluster.provider.release()
    await remote.waitFor(({ data }) => data.includes('two.'))
    const lagCount = async () =>
      Number(/^polylog_bus_lag_seconds_count (\d+)/m.exec((await b.call('GET', '/metrics')).text)?.[1])
    // Its hint came too. On a busy machine the poll may have been faster.
    await until('a hint', async () => ((await lagCount()) > 0 ? true : undefined))
    await nats.restart()
    for (const server of [a, b])
      await until('a reconnect', () =>
        server.polylog.log().includes('the bus is connected to NATS') ? true : undefined,
      )
    await cluster.provider.release()
    await remote.waitFor(({ data }) => data.includes('three.'))
    await cluster.provider.release()
    assert.deepEqual([await live.ended(), await remote.ended()], [{ cut: false }, { cut: false }])
    assert.equal(remote.text(), live.text())
    for (const server of [a, b]) assert.doesNotMatch(server.polylog.log(), /s3cret/)
  } finally {
    await cluster.close()
    await nats.kill()
  }
})
