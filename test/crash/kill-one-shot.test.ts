// A server that is killed in the middle of a one-shot run: after the restart the run ends
// once, there is one snapshot, the title of the conversation is written, and clients that
// repeat their request get that run's result.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type Action, type FakeProvider, startFakeProvider } from '../support/fake-provider.ts'
import { type PolylogProcess, startPolylogProcess } from '../support/polylog-process.ts'
import type { Polylog } from '../support/polylog.ts'
import { callServer, type Json, says, until } from '../support/test-server.ts'

let provider: FakeProvider

before(async () => {
  provider = await startFakeProvider()
})
after(() => provider.stop())

const result = { title: 'Walks', summary: 'Where to walk today.' }
const answer = JSON.stringify(result)
const half = answer.slice(0, 12)

type Moment = {
  name: string
  /** What the provider does before the kill. */
  script: Action[]
  /** Resolves when the moment of the kill has come. */
  reached(server: Polylog, runId: string): Promise<unknown>
  /** Requests to the model in all; undefined if the kill may land before or after the last one. */
  calls: number | undefined
}

const timeline = async (server: Polylog, runId: string): Promise<Json[]> =>
  (await callServer(server.baseUrl, 'GET', `/v1/agent/runs/${runId}/timeline`, { user: 'ann' })).body.events as Json[]

const moments: Moment[] = [
  {
    name: 'the model is silent',
    script: [{ stall: true }],
    reached: () => provider.waitFor({ requests: 1 }),
    calls: 2,
  },
  {
    name: 'half of the answer is there',
    script: [{ text: half }, { stall: true }],
    reached: (server, runId) =>
      until('the first words', async () =>
        (await timeline(server, runId)).some(({ event }) => event === 'agent.delta') ? true : undefined,
      ),
    calls: 2,
  },
  {
    name: 'the first answer was rejected, and the model is silent in the repair round',
    script: [{ text: '{"title":7}' }, { finish: 'stop' }],
    reached: async (server, runId) => {
      await until('the repair round', async () => ((await provider.requests()).length === 2 ? true : undefined))
      assert.ok((await timeline(server, runId)).some(({ event }) => event === 'output.rejected'))
    },
    calls: 3,
  },
  {
    name: 'the answer is complete, and the end is being written',
    script: says(answer),
    reached: () => until('the answer', async () => (await provider.requests())[0]?.answered || undefined),
    calls: undefined,
  },
]

describe('a one-shot run whose server is killed', () => {
  for (const { name, script, reached, calls } of moments) {
    it(`ends once, with one snapshot: ${name}`, async () => {
      await provider.reset()
      const first: PolylogProcess = await startPolylogProcess({
        OPENAI_API_KEY: 'test-key',
        OPENAI_BASE_URL: provider.baseUrl,
        POLYLOG_MODEL: 'openai/fake',
      })
      let server: Polylog = first
      try {
        const conversation = await callServer(server.baseUrl, 'POST', '/v1/conversations', { user: 'ann', body: {} })
        const conversationId = conversation.body.id as string
        await provider.script([script], 'Where should I walk?')
        await provider.script([[{ stall: true }]], 'cannot be used as the final answer')
        const body = {
          agentId: 'title_summary',
          userId: 'ann',
          input: { conversationId, messages: [{ role: 'user', content: 'Where should I walk?' }] },
        }
        const ask = (key?: string) =>
          callServer(server.baseUrl, 'POST', '/v1/agent/run', {
            body,
            ...(key === undefined ? {} : { headers: { 'idempotency-key': key } }),
          })
        const cut = ask('key').then(
          () => true,
          () => false,
        )
        const runId = await until('the run', async () => {
          const { body: runs } = await callServer(server.baseUrl, 'GET', '/v1/agent/runs', { user: 'ann' })
          return (runs as unknown as Json[])[0]?.runId as string | undefined
        })
        await reached(server, runId)
        await first.kill()
        await cut

        await provider.script([says(answer), says(answer)], 'Where should I walk?')
        await provider.script([says(answer)], 'cannot be used as the final answer')
        server = await first.restart()
        // The first client repeats its request; the second one asks for the same thing.
        const [repeated, equal] = await Promise.all([ask('key'), ask()])

        for (const { status, body: got, text } of [repeated, equal]) {
          assert.equal(status, 200, text)
          assert.deepEqual([got.runId, got.data.title, got.data.summary], [runId, result.title, result.summary])
        }
        const { body: snapshots } = await callServer(server.baseUrl, 'GET', '/v1/agent/snapshots', { user: 'ann' })
        assert.deepEqual(
          (snapshots as unknown as Json[]).map((snapshot) => [snapshot.snapshotId, snapshot.runId]),
          [[repeated.body.snapshotId, runId]],
        )
        assert.equal(equal.body.snapshotId, repeated.body.snapshotId)
        const ends = (await timeline(server, runId)).filter(({ event }) => event === 'agent.end')
        assert.equal(ends.length, 1)
        const { body: runs } = await callServer(server.baseUrl, 'GET', '/v1/agent/runs', { user: 'ann' })
        assert.equal((runs as unknown as Json[]).length, 1)
        const row = await callServer(server.baseUrl, 'GET', `/v1/conversations/${conversationId}`, { user: 'ann' })
        assert.deepEqual([row.body.title, row.body.summary], [result.title, result.summary])
        if (calls !== undefined) assert.equal((await provider.requests()).length, calls)
      } finally {
        await server.dispose()
        await first.dispose()
      }
    })
  }
})
