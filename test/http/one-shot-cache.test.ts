// The truth table of the cache of one-shot runs, over HTTP: when a stored result answers a
// request and when the model is asked. The provider counts how often it is asked.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { resultOf, sharedOneShotServer } from '../support/one-shot.ts'
import { openStream } from '../support/sse.ts'
import { type Answer, type Json, says, someone } from '../support/test-server.ts'

const hour = 3_600_000

const server = sharedOneShotServer({
  word: { system: 'Version one. {{{outputSchema}}}' },
  lasting: { card: { cache: { ttl: 0 } } },
  uncached: { card: { cache: undefined } },
  fields: { card: { cache: { ttl: 3600, sourceHashFields: ['text'] } } },
  global: { card: { scope: 'global' } },
})

async function callsFor(user: string): Promise<number> {
  return (await server.asked(user)).length
}

/** Asks about a text that holds the user's name, so that the provider's requests can be distinguished. */
function ask(user: string, changes: Json = {}): Promise<Answer> {
  const { text = 'sea', input, ...rest } = changes
  return server.run({ agentId: 'word', userId: user, input: { text: `${text} ${user}`, ...input }, ...rest })
}

type Case = {
  what: string
  /** What happens between the first request and the second. */
  between?: (user: string) => Promise<void> | void
  second?: Json
  first?: Json
  cached: boolean
  /** Model calls in all. */
  calls: number
}

const cases: Case[] = [
  { what: 'hit: the same request again', cached: true, calls: 1 },
  {
    what: 'hit: the same input with its keys in another order',
    cached: true,
    calls: 1,
    first: { input: { a: 1, b: { c: 1, d: 2 } } },
    second: { input: { b: { d: 2, c: 1 }, a: 1 } },
  },
  {
    what: 'hit: the top-level conversationId and sessionId do not matter',
    second: { conversationId: 'x', sessionId: 'y' },
    cached: true,
    calls: 1,
  },
  { what: 'hit: shortly before it expires', between: () => server.shift(hour - 60_000), cached: true, calls: 1 },
  {
    what: 'hit: a result that never expires, a year later',
    first: { agentId: 'lasting' },
    second: { agentId: 'lasting' },
    between: () => server.shift(365 * 24 * hour),
    cached: true,
    calls: 1,
  },
  { what: 'hit: after a restart', between: () => server.restart(), cached: true, calls: 1 },
  {
    what: 'hit: a field that the agent does not read has changed',
    first: { agentId: 'fields' },
    second: { agentId: 'fields', input: { note: 'other' } },
    cached: true,
    calls: 1,
  },
  { what: 'miss: the data has changed', second: { text: 'lake' }, cached: false, calls: 2 },
  { what: 'miss: another agent', second: { agentId: 'lasting' }, cached: false, calls: 2 },
  { what: 'miss: another language', second: { input: { language: 'en' } }, cached: false, calls: 2 },
  {
    what: 'miss: another language, also if the agent names the fields that count',
    first: { agentId: 'fields' },
    second: { agentId: 'fields', input: { language: 'en' } },
    cached: false,
    calls: 2,
  },
  { what: 'miss: expired', between: () => server.shift(hour + 1), cached: false, calls: 2 },
  {
    what: 'miss: the prompt has changed',
    cached: false,
    calls: 2,
    async between(user) {
      server.define('word', { system: `For ${user}: another version. {{{outputSchema}}}` })
      await server.restart()
    },
  },
  {
    what: 'miss: the version of the agent has changed',
    cached: false,
    calls: 2,
    async between(user) {
      server.define('word', { card: { version: `2.0.0-${user}` } })
      await server.restart()
    },
  },
  {
    what: 'miss: another model',
    between: () => server.restart({ POLYLOG_MODEL: 'openai/other' }),
    cached: false,
    calls: 2,
  },
  {
    what: 'forced: the stored result is ignored',
    second: { options: { forceRefresh: true } },
    cached: false,
    calls: 2,
  },
  { what: 'off: the stored result is not read', second: { options: { useCache: false } }, cached: false, calls: 2 },
  { what: 'off: the result is not stored', first: { options: { useCache: false } }, cached: false, calls: 2 },
  { what: 'off and forced', second: { options: { useCache: false, forceRefresh: true } }, cached: false, calls: 2 },
  {
    what: 'an agent without a cache',
    first: { agentId: 'uncached' },
    second: { agentId: 'uncached' },
    cached: false,
    calls: 2,
  },
  {
    what: 'null means the default',
    second: { operation: null, options: { useCache: null, forceRefresh: null } },
    cached: true,
    calls: 1,
  },
]

describe('the cache of one-shot runs', () => {
  for (const { what, between, first = {}, second, cached, calls } of cases) {
    test(what, async () => {
      const user = someone()
      await server.provider.script([says('{"word":"one"}'), says('{"word":"two"}')], user)

      const one = resultOf(await ask(user, first))
      await between?.(user)
      const two = resultOf(await ask(user, second ?? first))

      assert.equal(one.cached, false)
      assert.equal(two.cached, cached)
      assert.equal(await callsFor(user), calls)
      assert.equal(two.data.word, cached ? 'one' : 'two')
      if (cached) {
        assert.deepEqual(
          [two.runId, two.snapshotId, two.generatedAt, two.generatedAtMs],
          [one.runId, one.snapshotId, one.generatedAt, one.generatedAtMs],
          'a hit names the run that produced it, and when',
        )
      } else {
        assert.notEqual(two.runId, one.runId)
        assert.ok(two.snapshotId === null || two.snapshotId !== one.snapshotId, 'a refresh is a new snapshot')
      }
      for (const [result, asked] of [
        [one, first],
        [two, second ?? first],
      ] as const) {
        const unstored = asked.options?.useCache === false || asked.agentId === 'uncached'
        assert.equal(result.snapshotId === null, unstored)
        assert.equal(Date.parse(result.generatedAt), result.generatedAtMs)
      }
    })
  }

  test('another user: a result is never given to another user, also if the scope is global', async () => {
    for (const agentId of ['word', 'global']) {
      const marker = someone('text')
      await server.provider.script([says('{"word":"one"}'), says('{"word":"two"}')], marker)
      const body = { agentId, input: { text: marker } }
      const one = resultOf(await server.run({ ...body, userId: someone('ann') }))
      const two = resultOf(await server.run({ ...body, userId: someone('bob') }))

      assert.deepEqual([one.cached, two.cached, two.data.word], [false, false, 'two'])
      assert.equal(await callsFor(marker), 2)
    }
  })

  test('at once: equal requests share one model call, and each gets the same run and snapshot', async () => {
    const user = someone()
    await server.provider.script(
      [[{ text: '{"word":' }, { stall: true }, { text: '"one"}' }, { finish: 'stop' }]],
      user,
    )
    const asked = Array.from({ length: 20 }, () => ask(user))
    // A stream shows that its request has joined the run; also one that would not read the cache.
    const body = { agentId: 'word', userId: user, input: { text: `sea ${user}` }, options: { forceRefresh: true } }
    const forced = await openStream(`${server.baseUrl}/v1/agent/run?format=sse`, { method: 'POST', body })
    await forced.waitFor(({ json }) => json.event === 'agent.delta')
    await server.provider.release()
    await forced.ended()

    const results = (await Promise.all(asked)).map(resultOf)
    assert.equal(await callsFor(user), 1)
    assert.deepEqual(new Set(results.map(({ runId }) => runId as string)), new Set([forced.headers['x-run-id']]))
    assert.equal(forced.frames.at(-1)?.json.data.output, '{"word":"one"}')
    assert.equal(new Set(results.map(({ snapshotId }) => snapshotId)).size, 1)
    assert.ok(results.every(({ cached, data }) => data.word === 'one' && typeof cached === 'boolean'))
    const { body: list } = await server.call('GET', '/v1/agent/snapshots', { user })
    assert.equal((list as unknown as Json[]).length, 1)
  })

  test('at once: a request that stores nothing has a run of its own', async () => {
    const user = someone()
    await server.provider.script([says('{"word":"one"}'), says('{"word":"two"}')], user)
    const results = await Promise.all([ask(user), ask(user, { options: { useCache: false } })])

    assert.equal(new Set(results.map((answer) => resultOf(answer).runId)).size, 2)
    assert.equal(await callsFor(user), 2)
  })

  test('a run that failed leaves no snapshot: the next request asks the model again', async () => {
    const user = someone()
    await server.provider.script([[{ status: 500 }], says('{"word":"two"}')], user)

    const failed = await ask(user)
    assert.deepEqual([failed.status, failed.body.code], [502, 'ai_provider_error'])
    assert.equal(resultOf(await ask(user)).data.word, 'two')
  })
})
