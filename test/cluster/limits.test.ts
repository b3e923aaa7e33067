// Real nodes on one database: limits that hold over all of them, and runs that only some can execute.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { apiKeysSetting } from '../support/api-keys.ts'
import { agentFolder } from '../support/agent-folder.ts'
import { type Cluster, type ClusterNode, startCluster } from '../support/cluster.ts'
import { stdioFake } from '../support/fake-mcp.ts'
import { say, sayToEnd } from '../support/session-api.ts'
import { calls, endOf, hangsAfter, type Json, runIdOf, says, someone, type TestServer } from '../support/test-server.ts'

const files = agentFolder()
files.agent('special', {
  prompt: { systemTemplate: 'system.mustache' },
  memory: { strategy: 'sliding_window', maxTokens: 1000 },
  validation: undefined,
})
const mcpConfig = join(files.path, 'mcp.json')
writeFileSync(mcpConfig, JSON.stringify({ mcpServers: { effects: stdioFake() } }))

let cluster: Cluster
/** The only node with an MCP server and with the agent `special`. It executes one run at a time. */
let special: ClusterNode
before(async () => {
  cluster = await startCluster({
    nodes: 2,
    environment: { POLYLOG_CONCURRENCY: '3', POLYLOG_LEASE_MS: '3000', POLYLOG_UNPLACEABLE_MS: '2500' },
  })
  special = await cluster.add({
    POLYLOG_NODE_CONCURRENCY: '1',
    POLYLOG_MCP_CONFIG: mcpConfig,
    POLYLOG_AGENTS_DIR: files.path,
  })
})
after(async () => {
  await cluster.close()
  files.dispose()
})

const nodeA = () => cluster.nodes[0]?.server as TestServer
const nodeB = () => cluster.nodes[1]?.server as TestServer

/** A run whose model says a word and then nothing. */
async function hanging(server: TestServer, body: Json = {}): Promise<{ user: string; runId: string }> {
  const user = someone()
  await cluster.provider.script([hangsAfter('Well')], user)
  const stream = await server.chat(user, { input: `Wait for ${user}`, ...body })
  return { user, runId: runIdOf(stream) }
}

const statusOf = async (server: TestServer, { user, runId }: { user: string; runId: string }) =>
  (await server.call('GET', `/v1/agent/runs/${runId}`, { user })).body.status as string

async function cancel(server: TestServer, { user, runId }: { user: string; runId: string }): Promise<void> {
  assert.equal((await server.call('POST', `/v1/agent/runs/${runId}/cancel`, { user })).status, 200)
  await server.reaches(user, runId, 'cancelled')
}

describe('the number of runs that are executed', () => {
  it('holds over all nodes, and a slot that one node frees is taken by another at once', async () => {
    const running = [await hanging(nodeA()), await hanging(nodeA()), await hanging(nodeB())]
    for (const { user } of running) await nodeA().askedTimes(user, 1)
    const waiting = await hanging(nodeB())
    const other = await hanging(nodeA())
    assert.deepEqual([await statusOf(nodeA(), waiting), await statusOf(nodeB(), other)], ['queued', 'queued'])

    const [first, ...rest] = running
    assert.ok(first !== undefined)
    await cancel(nodeB(), first)
    await nodeB().askedTimes(waiting.user, 1)
    assert.deepEqual([await statusOf(nodeA(), other), (await nodeA().asked(other.user)).length], ['queued', 0])

    for (const run of [...rest, waiting, other]) await cancel(nodeA(), run)
  })
})

describe('the limit of requests', () => {
  it('is one limit for all nodes, also for logins that fail', async () => {
    const limited = {
      POLYLOG_RATE_LIMIT: '4',
      POLYLOG_API_KEYS: apiKeysSetting({ ann: 'ann-key' }),
    }
    const one = await cluster.add(limited)
    const two = await cluster.add(limited)
    const ask = async ({ server }: ClusterNode, key: string) =>
      (await server.call('GET', '/v1/conversations', { headers: { 'x-api-key': key } })).status

    const statuses: number[] = []
    for (const node of [one, two, one, two, one, two]) statuses.push(await ask(node, 'ann-key'))
    assert.deepEqual(statuses, [200, 200, 200, 200, 429, 429])

    const failed: number[] = []
    for (const node of [one, one, two, two, two, one]) failed.push(await ask(node, 'a guess'))
    assert.deepEqual(failed, [401, 401, 401, 401, 429, 429])
    await Promise.all([one.stop(), two.stop()])
  })
})

describe('a run that only one node can execute', () => {
  it('waits for this node while others are free, and fails clearly if the node does not come back', async () => {
    const blocker = await hanging(special.server)
    await nodeA().askedTimes(blocker.user, 1)
    const waiting = await hanging(special.server, { agentId: 'special' })
    const plain = someone()
    await cluster.provider.script([says('Hello.')], plain)
    assert.equal(endOf(await nodeA().chatToEnd(plain, `Greet ${plain}`)).status, 'succeeded')
    assert.equal(await statusOf(nodeB(), waiting), 'queued')

    await special.kill()
    const lost = await nodeA().reaches(blocker.user, blocker.runId, 'failed')
    assert.equal(lost.error.code, 'no_capable_node')
    assert.match(lost.error.message, /the MCP server "effects"/)
    const never = await nodeB().reaches(waiting.user, waiting.runId, 'failed')
    assert.equal(never.error.code, 'no_capable_node')
    assert.match(never.error.message, /the agent "special"/)
    assert.deepEqual(await nodeA().asked(waiting.user), [])

    await special.restart()
    const again = await hanging(special.server, { agentId: 'special' })
    await nodeA().askedTimes(again.user, 1)
    // Any node may end it.
    await cancel(nodeB(), again)
  })
})

describe('a session with a working directory', () => {
  it('is continued on the node that has the directory, wherever its requests arrive', async () => {
    const user = someone()
    await cluster.provider.script(
      [
        calls(['fs_write', { path: 'tea.txt', content: 'green tea' }]),
        says('Written.'),
        calls(['fs_read', { path: 'tea.txt' }]),
        says('Read.'),
        says('Back again.'),
      ],
      user,
    )
    const [first] = await sayToEnd(nodeA(), user, `Write for ${user}`)
    const agentId = String(first?.agentId)

    const read = await sayToEnd(nodeB(), user, { message: `Read for ${user}`, agentId })
    assert.match(JSON.stringify(read.find(({ type }) => type === 'tool_result')), /Read 1 line of tea.txt/)

    await cluster.nodes[0]?.kill()
    const orphan = await (await say(nodeB(), user, { message: `Again for ${user}`, agentId })).toEnd()
    assert.match(JSON.stringify(orphan), /working directory of this session, which is on the node \\"node-1\\"/)
    await cluster.nodes[0]?.restart()
    const back = await sayToEnd(nodeB(), user, { message: `Still for ${user}`, agentId })
    assert.match(JSON.stringify(back), /Back again/)
  })
})
