// A database that is not up yet, goes away, and comes back, under real servers.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startCluster, type Cluster } from '../support/cluster.ts'
import { newDataFolder, testSettings } from '../support/polylog.ts'
import { startAndFail } from '../support/polylog-process.ts'
import { newStoreDatabase, type TestDatabase } from '../support/postgres.ts'
import { openStream } from '../support/sse.ts'
import { gateOf, type TcpGate } from '../support/tcp-gate.ts'
import { runIdOf, someone, type TestServer, until } from '../support/test-server.ts'

let database: TestDatabase
let gate: TcpGate & { url: string }
let cluster: Cluster

before(async () => {
  database = await newStoreDatabase()
  gate = await gateOf(database.url)
  // The database is "starting" when the first node starts.
  gate.shut()
  const started = startCluster({ nodes: 2, databaseUrl: gate.url })
  await until('attempts to connect', () => (gate.attempts >= 3 ? true : undefined))
  gate.open()
  cluster = await started
})
after(async () => {
  await cluster.close()
  await gate.close()
  await database.drop()
})

const nodeA = () => cluster.nodes[0]?.server as TestServer
const nodeB = () => cluster.nodes[1]?.server as TestServer

describe('a database', () => {
  it('that is not up yet is waited for, and the log says so', () => {
    assert.match(nodeA().polylog.log(), /the database does not answer \(it closed the connection\); waiting up to 15 s/)
  })

  it('that goes away gives 503 with Retry-After, and is used again when it is back', async () => {
    const user = someone()
    await cluster.provider.script(
      [[{ text: ['before. '] }, { stall: true }, { text: ['after.'] }, { finish: 'stop' }]],
      user,
    )
    const live = await nodeA().chat(user, `Tell ${user}`)
    await live.waitFor(({ data }) => data.includes('before.'))
    const runId = runIdOf(live)
    const remote = await openStream(`${nodeB().polylog.baseUrl}/v1/agent/runs/${runId}/stream?userId=${user}`)
    await remote.waitFor(({ data }) => data.includes('before.'))

    gate.shut()
    for (const server of [nodeA(), nodeB()]) {
      for (const [method, path, body] of [
        ['GET', '/v1/ready', undefined],
        ['GET', `/v1/agent/runs/${runId}`, undefined],
        ['POST', '/v1/agent/chat', { input: 'too early', userId: user }],
        ['POST', `/v1/agent/runs/${runId}/cancel`, {}],
      ] as const) {
        const answer = await server.call(method, path, { user, ...(body === undefined ? {} : { body }) })
        assert.equal(answer.status, 503, `${method} ${path}: ${answer.text}`)
        assert.equal(answer.body.code, 'store_unavailable')
        assert.match(answer.headers.get('retry-after') ?? '', /^[1-9]/)
      }
    }
    gate.open()

    for (const server of [nodeA(), nodeB()]) {
      await until('an answer', async () => {
        const { status } = await server.call('GET', `/v1/agent/runs/${runId}`, { user })
        return status === 200 ? true : undefined
      })
    }
    await cluster.provider.release()
    // No stream was cut, and none has a gap.
    assert.deepEqual(await live.ended(), { cut: false })
    assert.deepEqual(await remote.ended(), { cut: false })
    assert.match(live.text(), /after\./)
    assert.equal(remote.text(), live.text())
  })

  it('that cannot be used is one sentence, without the password', async () => {
    const url = new URL(database.url)
    url.pathname = '/no_such_database'
    url.password = 's3cret'
    const { code, said } = await startAndFail(testSettings({ POLYLOG_DATABASE_URL: url.href }, newDataFolder()))
    assert.equal(code, 1)
    assert.match(said, /^Polylog cannot start\. PostgreSQL has no database with the name in POLYLOG_DATABASE_URL/m)
    assert.doesNotMatch(said, /s3cret/)
  })
})
