// Who works on a run when nodes die, freeze and stop, and commands that reach another node than the
// one that works on it: real processes on one database.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import pg from 'pg'
import { type Cluster, type ClusterNode, startCluster } from '../support/cluster.ts'
import { type FakeProcess, spawnFake } from '../support/spawn-fake.ts'
import { openStream, type SseStream } from '../support/sse.ts'
import { calls, endOf, hangsAfter, type Json, runIdOf, says, someone, until } from '../support/test-server.ts'

let ledger: FakeProcess
let folder: string
before(async () => {
  ledger = await spawnFake('ledger-server.ts')
  folder = mkdtempSync(join(tmpdir(), 'polylog-cluster-'))
  writeFileSync(join(folder, 'mcp.json'), JSON.stringify({ mcpServers: { ledger: { url: `${ledger.baseUrl}/mcp` } } }))
})
after(async () => {
  await ledger.stop()
  rmSync(folder, { recursive: true, force: true })
})

const settings = (leaseMs: number) => ({
  POLYLOG_LEASE_MS: String(leaseMs),
  POLYLOG_MCP_CONFIG: join(folder, 'mcp.json'),
})

function streamOn(node: ClusterNode, user: string, runId: string): Promise<SseStream> {
  return openStream(`${node.server.polylog.baseUrl}/v1/agent/runs/${runId}/stream?userId=${user}`)
}

async function timelineOn(node: ClusterNode, user: string, runId: string): Promise<Json[]> {
  const { body } = await node.server.call('GET', `/v1/agent/runs/${runId}/timeline`, { user })
  return body.events as Json[]
}

async function assertWhole(node: ClusterNode, user: string, runId: string): Promise<void> {
  const events = await timelineOn(node, user, runId)
  assert.deepEqual(
    events.map(({ seq }) => seq),
    events.map((_, index) => index + 1),
  )
  assert.equal(events.filter(({ event }) => event === 'agent.end').length, 1)
}

async function paid(payment: string): Promise<number> {
  const entries = (await (await fetch(`${ledger.baseUrl}/ledger`)).json()) as Record<string, number>
  return entries[payment] ?? 0
}

const isPaid = (payment: string) => until('the payment', async () => ((await paid(payment)) === 1 ? true : undefined))

/** The open confirmation of the run, when there is one. */
async function confirmationOf(node: ClusterNode, user: string, runId: string): Promise<Json> {
  return await until('a confirmation', async () => {
    const { body } = await node.server.call('GET', `/v1/tool-confirmations?runId=${runId}&status=pending`, { user })
    return (body as unknown as Json[])[0]
  })
}

async function decide(node: ClusterNode, user: string, id: unknown, decision: 'confirm' | 'reject'): Promise<void> {
  const { status, text } = await node.server.call('POST', `/v1/tool-confirmations/${String(id)}/${decision}`, {
    user,
    body: {},
  })
  assert.equal(status, 200, text)
}

async function metric(node: ClusterNode, name: string): Promise<number> {
  const { text } = await node.server.call('GET', '/metrics')
  return Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1] ?? 0)
}

/** So long that no lease ends and no heartbeat comes within the time of a test: what happens was caused by a signal. */
const longLeaseMs = 600_000

describe('with leases that do not end', () => {
  let cluster: Cluster
  let first: ClusterNode
  let second: ClusterNode
  before(async () => {
    cluster = await startCluster({ nodes: 2, environment: settings(longLeaseMs) })
    ;[first, second] = cluster.nodes as [ClusterNode, ClusterNode]
  })
  after(() => cluster.close())

  /** A run at this node that has said a little and waits for its provider. */
  async function talking(node: ClusterNode): Promise<{ user: string; runId: string; live: SseStream }> {
    const user = someone()
    await cluster.provider.script([hangsAfter('One moment. ')], user)
    const live = await node.server.chat(user, `Wait ${user}`)
    await live.waitFor(({ data }) => data.includes('One moment.'))
    return { user, runId: runIdOf(live), live }
  }

  it('a cancel at the other node is answered after the end of the run was stored', async () => {
    const { user, runId, live } = await talking(first)
    const { status, body } = await second.server.call('POST', `/v1/agent/runs/${runId}/cancel`, { user })
    assert.deepEqual([status, body.status], [200, 'cancelled'])
    await live.ended()
    assert.equal(endOf(live.frames).status, 'cancelled')
    await assertWhole(second, user, runId)
  })

  it('a parked run goes on at the node where it was confirmed', async () => {
    const user = someone()
    await cluster.provider.script([calls(['pay', { payment: user }]), says('Paid.')], user)
    const live = await first.server.chat(user, `Pay ${user}`)
    const runId = runIdOf(live)
    const confirmation = await confirmationOf(second, user, runId)
    await first.server.reaches(user, runId, 'awaiting_input')
    const before = await metric(second, 'polylog_claims_total')
    await decide(second, user, confirmation.id, 'confirm')
    await second.server.reaches(user, runId, 'succeeded')
    assert.equal(await metric(second, 'polylog_claims_total'), before + 1)
    assert.equal(await paid(user), 1)
    await assertWhole(first, user, runId)
  })

  it('a rejection at the other node reaches a run that is at work on another call', async () => {
    const user = someone()
    await cluster.provider.script([calls(['pay', { payment: user }], ['audit', { ms: 600_000 }])], user)
    const live = await first.server.chat(user, `Pay ${user}`)
    const runId = runIdOf(live)
    const open = await confirmationOf(second, user, runId)
    await decide(second, user, open.id, 'reject')
    await until('the rejection in the journal', async () =>
      (await timelineOn(second, user, runId)).find(({ payload }) => payload?.resolution === 'rejected'),
    )
    const { body } = await second.server.call('POST', `/v1/agent/runs/${runId}/cancel`, { user })
    assert.equal(body.status, 'cancelled')
    assert.equal(await paid(user), 0)
  })

  it('a conversation is deleted from the other node, after its run was stopped', async () => {
    const { user, runId, live } = await talking(first)
    const { conversationId } = (await first.server.call('GET', `/v1/agent/runs/${runId}`, { user })).body
    const gone = await second.server.call('DELETE', `/v1/conversations/${String(conversationId)}`, { user })
    assert.ok(gone.status < 300, gone.text)
    await live.ended()
    assert.equal((await first.server.call('GET', `/v1/agent/runs/${runId}`, { user })).status, 404)
  })

  it('one key at two nodes at the same moment starts one run', async () => {
    for (let round = 0; round < 5; round += 1) {
      const user = someone()
      await cluster.provider.script([says('Once.')], user)
      const key = { 'idempotency-key': user }
      const streams = await Promise.all([
        first.server.chat(user, `Once ${user}`, key),
        second.server.chat(user, `Once ${user}`, key),
      ])
      for (const stream of streams) await stream.ended()
      assert.equal(new Set(streams.map(runIdOf)).size, 1)
      assert.equal(streams[0]?.text(), streams[1]?.text())
      assert.equal((await first.server.asked(user)).length, 1)
    }
  })

  it('messages to one conversation at two nodes are answered one after the other', async () => {
    const user = someone()
    const questions = 9
    await cluster.provider.script(
      Array.from({ length: questions }, () => says('Yes.')),
      user,
    )
    const begun = await first.server.chat(user, `Begin ${user}`)
    await begun.ended()
    const { conversationId } = (await first.server.call('GET', `/v1/agent/runs/${runIdOf(begun)}`, { user })).body
    const streams = await Promise.all(
      Array.from({ length: questions - 1 }, (_, index) =>
        (index % 2 === 0 ? first : second).server.chat(user, {
          input: `Message ${index} ${user}`,
          conversationId,
          whenBusy: 'queue',
        }),
      ),
    )
    for (const stream of streams) {
      await stream.ended()
      assert.equal(endOf(stream.frames).status, 'succeeded', stream.text())
    }
    // Each prompt has all earlier questions, each with its answer.
    const roles = (await first.server.asked(user)).map(({ body }) =>
      (body.messages ?? []).filter(({ role }) => role !== 'system').map(({ role }) => role),
    )
    assert.deepEqual(
      roles,
      Array.from({ length: questions }, (_, index) => [
        ...Array.from({ length: index }, () => ['user', 'assistant']).flat(),
        'user',
      ]),
    )
  })

  it('a node that stops hands its runs to the others at once', async () => {
    const third = await cluster.add()
    const { user, runId } = await talking(third)
    const elsewhere = await streamOn(first, user, runId)
    await cluster.provider.script([says('The rest.')], user)
    const exit = await third.stop()
    assert.equal(exit, 0, third.server.polylog.log())
    await elsewhere.ended()
    assert.equal(endOf(elsewhere.frames).status, 'succeeded')
    await assertWhole(second, user, runId)
  })
})

describe('with short leases', () => {
  let cluster: Cluster
  before(async () => {
    cluster = await startCluster({ nodes: 2, environment: settings(1500) })
  })
  after(() => cluster.close())

  async function ownerOf(runId: string): Promise<ClusterNode> {
    const client = new pg.Client({ connectionString: cluster.databaseUrl })
    await client.connect()
    try {
      const { rows } = await client.query<{ name: string }>(
        'SELECT nodes.name FROM runs JOIN nodes ON nodes.id = runs.lease_owner WHERE runs.id = $1',
        [runId],
      )
      return cluster.nodes.find(({ name }) => name === rows[0]?.name) ?? assert.fail('no node owns the run')
    } finally {
      await client.end()
    }
  }

  it('an unsafe call of a killed node is not repeated: a person is asked, at any node', async () => {
    const user = someone()
    const added = await cluster.add()
    await cluster.provider.script([calls(['pay', { payment: user, ms: 600_000 }]), says('Then not.')], user)
    const live = await added.server.chat(user, `Pay ${user}`)
    const runId = runIdOf(live)
    const asked = await confirmationOf(added, user, runId)
    await decide(added, user, asked.id, 'confirm')
    await isPaid(user)
    // Usually this is the node where the call was confirmed, but on a busy machine another node may claim the run first.
    const doomed = await ownerOf(runId)
    const other = cluster.nodes.find((node) => node !== doomed) as ClusterNode
    await doomed.kill()
    const again = await confirmationOf(other, user, runId)
    assert.deepEqual([again.outcome, again.toolName], ['unknown', asked.toolName])
    await decide(other, user, again.id, 'reject')
    await other.server.reaches(user, runId, 'succeeded')
    assert.equal(await paid(user), 1)
    await assertWhole(other, user, runId)
    if (doomed !== added) await doomed.restart()
  })

  it('a node that was frozen past its lease leaves the run to its new owner, and works on', async () => {
    const user = someone()
    const [first] = cluster.nodes as [ClusterNode]
    const frozen = await cluster.add()
    await cluster.provider.script([hangsAfter('One moment. ')], user)
    const live = await frozen.server.chat(user, `Wait ${user}`)
    const runId = runIdOf(live)
    await live.waitFor(({ data }) => data.includes('One moment.'))
    await cluster.provider.script([says('The rest.')], user)
    frozen.freeze()
    await first.server.reaches(user, runId, 'succeeded')
    // The old answer of the provider comes too, and must not be stored.
    await cluster.provider.release()
    frozen.wake()
    await live.ended()
    assert.equal(endOf(live.frames).status, 'succeeded')
    assert.match(live.text(), /The rest\./)
    await assertWhole(frozen, user, runId)

    const other = someone()
    await cluster.provider.script([says('Still here.')], other)
    assert.equal(endOf(await frozen.server.chatToEnd(other, `Hello ${other}`)).status, 'succeeded')
  })

  it('a node that freezes while several of its transactions want one lock delays the others only once', async () => {
    const user = someone()
    const [first] = cluster.nodes as [ClusterNode]
    const frozen = await cluster.add()
    const add = (node: ClusterNode) => node.server.call('POST', '/v1/contacts', { user, body: { name: 'Ann' } })
    const holder = new pg.Client({ connectionString: cluster.databaseUrl })
    await holder.connect()
    try {
      await holder.query('BEGIN')
      await holder.query("SELECT pg_advisory_xact_lock(hashtextextended('contacts ' || $1, 0))", [user])
      const waiting = Array.from({ length: 4 }, () => add(frozen))
      await until('four that wait for the lock', async () => {
        const { rows } = await holder.query(
          `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
           AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
        )
        return rows.length === 4 ? true : undefined
      })
      frozen.freeze()
      await holder.query('COMMIT')
      // The database ends the one that has the lock after ten seconds. If each of the four kept it as long, this would be a 503.
      const added = await add(first)
      frozen.wake()
      assert.equal(added.status, 201, added.text)
      for (const { status } of await Promise.all(waiting)) assert.ok(status === 201 || status === 503, String(status))
    } finally {
      frozen.wake()
      await holder.end()
    }
  })

  it('every run of a killed node is finished by the others', async () => {
    const doomed = await cluster.add()
    const [first, second] = cluster.nodes as [ClusterNode, ClusterNode]
    const runs = await Promise.all(
      Array.from({ length: 12 }, async () => {
        const user = someone()
        await cluster.provider.script([hangsAfter('One moment. ')], user)
        const live = await doomed.server.chat(user, `Wait ${user}`)
        await live.waitFor(({ data }) => data.includes('One moment.'))
        await cluster.provider.script([says('The rest.')], user)
        return { user, runId: runIdOf(live) }
      }),
    )
    await doomed.kill()
    for (const { user, runId } of runs) {
      await first.server.reaches(user, runId, 'succeeded')
      await assertWhole(second, user, runId)
    }
  })
})
