// POST /v1/agent/run over HTTP: what is refused and how, the repair round, failures of the
// provider, clients that leave, streams, idempotency keys, and chat_conversation.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type OneShotServer, startOneShotServer } from '../support/one-shot.ts'
import { openStream } from '../support/sse.ts'
import { type Answer, calls, type Json, messagesOf, named, says, someone, until } from '../support/test-server.ts'
import { queryDatabase } from '../support/test-database.ts'

let server: OneShotServer

const textInput = {
  type: 'object',
  properties: {
    text: { type: 'string', minLength: 1 },
    size: { type: 'integer', minimum: 1, default: 3 },
    nested: { type: 'object', properties: { list: { type: 'array', items: { type: 'string' } } } },
  },
  required: ['text'],
}

before(async () => {
  server = await startOneShotServer({
    word: { input: textInput, user: '{{{data}}} in {{language}}' },
    free: { card: { validation: {} }, user: 'Say something about {{input.text}}.' },
    two_ways: {
      card: {
        operations: [{ id: 'first', name: 'First' }, { id: 'second' }],
        validation: { outputSchema: 'output.json' },
      },
    },
    scoped: { card: { scope: 'conversation' } },
    helped: { card: { tools: { mode: 'allowlist', allowedTools: ['current_time', 'remember_note'] } } },
  })
})

after(() => server.close())

const good = says('{"word":"fine"}')

/** The user's name stands in the text, so that the provider's requests can be distinguished. */
const wordBody = (user: string, more: Json = {}): Json => ({
  agentId: 'word',
  userId: user,
  input: { text: `about ${user}` },
  ...more,
})

async function asked(marker: string) {
  return (await server.provider.requests()).filter(({ body }) => JSON.stringify(body.messages).includes(marker))
}

function resultOf({ status, body, text }: Answer): Json {
  assert.equal(status, 200, text)
  return body
}

describe('a request that cannot be run', () => {
  const word = (input: unknown): Json => ({ agentId: 'word', input })
  const refusals: [what: string, body: Json, status: number, code: string, message: RegExp, field?: string][] = [
    ['an unknown agent', { agentId: 'nobody', input: {} }, 404, 'agent_not_found', /"nobody"/],
    ['no agent', { input: {} }, 400, 'invalid_request', /agentId/],
    ['no input', { agentId: 'word' }, 400, 'invalid_input', /^input is missing/, 'input'],
    ['input null', word(null), 400, 'invalid_input', /^input is missing/, 'input'],
    ['input that is a list', word([]), 400, 'invalid_request', /input/],
    ['a missing field', word({}), 400, 'invalid_input', /^input\.text is missing/, 'input.text'],
    ['a field that is null', word({ text: null }), 400, 'invalid_input', /^input\.text is missing/, 'input.text'],
    ['a wrong type', word({ text: 7 }), 400, 'invalid_input', /^input\.text must be string/, 'input.text'],
    ['a wrong number', word({ text: 'x', size: 0 }), 400, 'invalid_input', /^input\.size /, 'input.size'],
    [
      'a wrong nested value',
      word({ text: 'x', nested: { list: ['a', 1] } }),
      400,
      'invalid_input',
      /^input\.nested\.list\.1 /,
      'input.nested.list.1',
    ],
    [
      'an operation of an agent that has none',
      { agentId: 'word', operation: 'x', input: {} },
      400,
      'agent_operation_invalid',
      /no operation "x".*leave operation out/,
      'operation',
    ],
    [
      'a missing operation',
      { agentId: 'two_ways', input: {} },
      400,
      'agent_operation_invalid',
      /needs an operation\. Send one of first, second/,
      'operation',
    ],
    [
      'an unknown operation',
      { agentId: 'two_ways', operation: 'third', input: {} },
      400,
      'agent_operation_invalid',
      /no operation "third"\. Send one of first, second/,
      'operation',
    ],
    [
      'a scope without its id',
      { agentId: 'scoped', input: {} },
      400,
      'invalid_input',
      /^input\.conversationId is missing/,
      'input.conversationId',
    ],
    [
      'options of a wrong type',
      { ...word({ text: 'x' }), options: { useCache: 'yes' } },
      400,
      'invalid_request',
      /useCache/,
    ],
    ['a userId that is no text', word({ text: 'x', userId: 7 }), 400, 'invalid_request', /userId/],
    [
      'a chat without a message',
      { agentId: 'chat_conversation', input: {} },
      400,
      'invalid_input',
      /^input\.messages /,
    ],
    [
      'a chat with a wrong message',
      { agentId: 'chat_conversation', input: { messages: [{ role: 'alien', content: 'x' }] } },
      400,
      'invalid_input',
      /^input\.messages\.0\.role /,
    ],
    [
      'a chat with an operation',
      { agentId: 'chat_conversation', operation: 'x', input: { prompt: 'hi' } },
      400,
      'agent_operation_invalid',
      /leave operation out/,
    ],
  ]
  for (const [what, body, status, code, message, field] of refusals) {
    test(`is refused with a code and the field: ${what}`, async () => {
      const before = (await server.provider.requests()).length
      const answer = await server.run(body)

      assert.deepEqual([answer.status, answer.body.code], [status, code], answer.text)
      assert.match(answer.body.message, message)
      if (field !== undefined) assert.equal(answer.body.details.field, field)
      assert.equal((await server.provider.requests()).length, before, 'no model is asked')
    })
  }

  test('gets no advice to name a user if its input names one', async () => {
    const run = (input: Json) => server.call('POST', '/v1/agent/run', { body: { agentId: 'contact_insight', input } })
    const named = await run({ userId: someone(), contactId: 'nobody' })
    assert.deepEqual([named.status, named.body.code], [404, 'contact_not_found'])
    assert.doesNotMatch(named.text, /names no user/)
  })

  test('is refused if it is too large for one request to a model', async () => {
    const answer = await server.run({ agentId: 'word', input: { text: 'x'.repeat(500_000) } })

    assert.deepEqual([answer.status, answer.body.code], [413, 'agent_data_too_large'])
  })
})

describe('the answer', () => {
  test('has exactly the fields of the contract', async () => {
    const user = someone()
    await server.provider.script([good], user)
    const result = resultOf(await server.run(wordBody(user)))

    assert.deepEqual(Object.keys(result).toSorted(), [
      'agentId',
      'cached',
      'data',
      'generatedAt',
      'generatedAtMs',
      'operation',
      'runId',
      'snapshotId',
    ])
    assert.deepEqual(result.data, { word: 'fine' })
    assert.deepEqual([result.agentId, result.operation, result.cached], ['word', null, false])
  })

  test('names the operation that was asked for, and each operation has its own results', async () => {
    const user = someone()
    await server.provider.script([good, says('{"word":"other"}')], user)
    const ask = (operation: string) =>
      server.run({ agentId: 'two_ways', operation, userId: user, input: { text: user } })
    const [one, two] = [resultOf(await ask('first')), resultOf(await ask('second'))]

    assert.deepEqual([one.operation, two.operation, two.cached, two.data.word], ['first', 'second', false, 'other'])
  })

  test('is the text, if the agent has no output schema', async () => {
    const user = someone()
    await server.provider.script([says('Just ', 'words.')], user)
    const result = resultOf(await server.run({ agentId: 'free', userId: user, input: { text: user } }))

    assert.deepEqual(result.data, { content: 'Just words.' })
  })

  test('comes of the rendered templates, with defaults filled in and the language of the input', async () => {
    const user = someone()
    await server.provider.script([good, good], user)
    await server.run(wordBody(user))
    await server.run(wordBody(user, { input: { text: user, language: 'en' } }))

    const [chinese, english] = await asked(user)
    assert.deepEqual(
      messagesOf(chinese).map(({ role, content }) => [role, content]),
      [
        ['system', 'Answer with JSON: {"type":"object","properties":{"word":{"type":"string"}},"required":["word"]}'],
        ['user', `{"size":3,"text":"about ${user}","userId":"${user}"} in zh`],
      ],
    )
    assert.match(messagesOf(english).at(-1)?.content, / in en$/)
  })

  test('belongs to the user that the input names, if nothing else names one', async () => {
    const user = someone()
    await server.provider.script([good, good], user)
    const text = `about ${user}`
    const { runId } = resultOf(await server.run({ agentId: 'word', input: { text, userId: user } }))
    assert.equal((await server.call('GET', `/v1/agent/runs/${runId}`, { user })).status, 200)

    const other = someone('other')
    const body = { agentId: 'word', userId: other, input: { text, userId: user } }
    const theirs = resultOf(await server.run(body))
    assert.equal(theirs.cached, false, 'the body comes before the input')
    assert.equal((await server.call('GET', `/v1/agent/runs/${theirs.runId}`, { user })).status, 404)
  })
})

describe('the tools of an agent', () => {
  test('are used as its definition allows, and their results are seen; calls that need consent are refused', async () => {
    const user = someone()
    const [reads, asks] = [calls(['current_time', {}]), calls(['remember_note', { text: 'x' }, 'second'])]
    await server.provider.script([reads, asks, good], user)
    const input = { text: `${'long '.repeat(5000)} ${user}` }
    const result = resultOf(await server.run({ agentId: 'helped', userId: user, input }))

    assert.deepEqual(result.data, { word: 'fine' })
    const [first, second, third] = await asked(user)
    const offered = ((first?.body['tools'] ?? []) as Json[]).map(({ function: { name } }) => name as string)
    assert.deepEqual(offered.toSorted(), ['current_time', 'remember_note'])
    assert.equal(messagesOf(second).at(-1)?.role, 'tool', 'the newest result fits, however long the data is')
    assert.match(messagesOf(third).at(-1)?.content, /consent/)
    assert.equal((await server.call('GET', '/v1/tool-confirmations', { user })).body.length, 0)
  })
})

describe('an answer of the model that does not fit', () => {
  test('is asked for once more, with the errors, and then taken', async () => {
    const user = someone()
    await server.provider.script([says('{"wort":"x"}'), good], user)
    // The repair round ends with the request to correct the answer, which does not hold the user's name.
    await server.provider.script([good], 'cannot be used as the final answer')
    const result = resultOf(await server.run(wordBody(user)))

    assert.deepEqual(result.data, { word: 'fine' })
    const [, repair] = await asked(user)
    assert.match(messagesOf(repair).at(-1)?.content, /must have required property 'word'/)
    const { body } = await server.call('GET', `/v1/agent/runs/${result.runId}/timeline`, { user })
    assert.ok(
      body.events.some(({ event }: Json) => event === 'output.rejected'),
      'the timeline tells of it',
    )
  })

  test('twice is refused with what is wrong, and nothing is stored', async () => {
    const user = someone()
    await server.provider.script([says('{"wort":"x"}')], user)
    await server.provider.script([says('Still no JSON.')], 'cannot be used as the final answer')
    const answer = await server.run(wordBody(user))

    assert.deepEqual([answer.status, answer.body.code], [502, 'output_validation_failed'])
    assert.deepEqual(answer.body.details.errors, ['it is not JSON'])
    assert.equal(typeof answer.body.details.runId, 'string')
    assert.equal((await asked(user)).length, 2)
    assert.deepEqual((await server.call('GET', '/v1/agent/snapshots', { user })).body, [])
  })

  test('is not written anywhere if it is nested too deeply', async () => {
    const user = someone()
    const deep = `{"word":"x","more":${'['.repeat(20_000)}${']'.repeat(20_000)}}`
    await server.provider.script([says(deep)], user)
    await server.provider.script([good], 'cannot be used as the final answer')
    assert.deepEqual(resultOf(await server.run(wordBody(user))).data, { word: 'fine' })
  })
})

describe('a run that does not end well', () => {
  test('is 502 ai_provider_error if the provider fails, and says that it may be repeated', async () => {
    const user = someone()
    for (const [failure, cause] of [
      [[{ status: 500 }], 'model_unavailable'],
      [[{ text: '{"wo' }, { cut: true }], 'model_stream_incomplete'],
    ] as const) {
      await server.provider.script([[...failure]], user)
      const { status, body } = await server.run(wordBody(user))

      assert.deepEqual([status, body.code, body.retryable, body.details.cause], [502, 'ai_provider_error', true, cause])
      const { body: run } = await server.call('GET', `/v1/agent/runs/${body.details.runId}`, { user })
      assert.equal(run.status, 'failed')
    }
    await server.provider.script([[{ status: 401 }]], user)
    const { status, body } = await server.run(wordBody(user))
    assert.deepEqual([status, body.code, body.retryable], [502, 'ai_provider_error', undefined], 'it cannot help')
  })

  test('is 409 run_cancelled for all waiting requests if it is cancelled meanwhile', async () => {
    const user = someone()
    await server.provider.script([[{ text: '{' }, { stall: true }]], user)
    const answers = [server.run(wordBody(user)), server.run(wordBody(user))]
    const runId = await openRun(user)
    await server.call('POST', `/v1/agent/runs/${runId}/cancel`, { user, body: {} })

    for (const { status, body } of await Promise.all(answers)) {
      assert.deepEqual([status, body.code, body.details.runId], [409, 'run_cancelled', runId])
    }
  })

  test('goes on if the client leaves, and its result is stored', async () => {
    const user = someone()
    await server.provider.script(
      [[{ text: '{"word":' }, { stall: true }, { text: '"fine"}' }, { finish: 'stop' }]],
      user,
    )
    const leave = new AbortController()
    const left = fetch(`${server.baseUrl}/v1/agent/run`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(wordBody(user)),
      signal: leave.signal,
    })
    const runId = await openRun(user)
    await until('the first words', async () => {
      const { body } = await server.call('GET', `/v1/agent/runs/${runId}/timeline`, { user })
      return (body.events as Json[]).some(({ event }) => event === 'agent.delta') ? true : undefined
    })
    leave.abort()
    await assert.rejects(left)
    await server.provider.release()

    await until('the run to end', async () => {
      const { body } = await server.call('GET', `/v1/agent/runs/${runId}`, { user })
      return body.status === 'succeeded' ? true : undefined
    })
    const again = resultOf(await server.run(wordBody(user)))
    assert.deepEqual([again.cached, again.runId, (await asked(user)).length], [true, runId, 1])
  })

  test('goes on after a restart if the server is stopped; the caller gets the advice to send the request again', async () => {
    const user = someone()
    const key = { 'idempotency-key': `key-${user}` }
    await server.provider.script([[{ text: '{' }, { stall: true }], good], user)
    const waiting = server.run(wordBody(user), key)
    const runId = await openRun(user)
    await server.restart()

    const told = await waiting
    assert.deepEqual([told.status, told.body.code, told.body.details.runId], [503, 'shutting_down', runId])
    const again = resultOf(await server.run(wordBody(user), key))
    assert.deepEqual([again.runId, again.data.word], [runId, 'fine'])
  })

  async function openRun(user: string): Promise<string> {
    return await until('a running run', async () => {
      const { body } = await server.call('GET', '/v1/agent/runs?status=running', { user })
      return (body as unknown as Json[])[0]?.runId as string | undefined
    })
  }
})

describe('an idempotency key', () => {
  test('finds the same run again, also when the result could come from elsewhere by now', async () => {
    const user = someone()
    const key = { 'idempotency-key': `key-${user}` }
    await server.provider.script([good, says('{"word":"newer"}')], user)
    const one = resultOf(await server.run(wordBody(user), key))
    resultOf(await server.run(wordBody(user, { options: { forceRefresh: true } })))
    const again = resultOf(await server.run(wordBody(user), key))

    assert.deepEqual(again, one)
    assert.equal((await asked(user)).length, 2)
  })

  test('of a request that was answered from the cache gives the same answer again', async () => {
    const user = someone()
    const key = { 'idempotency-key': `key-${user}` }
    await server.provider.script([good, says('{"word":"newer"}')], user)
    resultOf(await server.run(wordBody(user)))
    const hit = resultOf(await server.run(wordBody(user), key))
    resultOf(await server.run(wordBody(user, { options: { forceRefresh: true } })))

    assert.equal(hit.cached, true)
    assert.deepEqual(resultOf(await server.run(wordBody(user), key)), hit)
  })

  test('with another body is refused, whether the first one ran or was cached', async () => {
    const user = someone()
    await server.provider.script([good], user)
    for (const name of ['ran', 'cached']) {
      const key = { 'idempotency-key': `${name}-${user}` }
      assert.equal(resultOf(await server.run(wordBody(user), key)).cached, name === 'cached')
      const answer = await server.run(wordBody(user, { input: { text: 'other' } }), key)
      assert.deepEqual([answer.status, answer.body.code], [409, 'idempotency_key_reused'])
    }
  })

  test('of a run that failed gives the failure again, and asks no model', async () => {
    const user = someone()
    const key = { 'idempotency-key': `key-${user}` }
    await server.provider.script([[{ status: 500 }], good], user)
    const one = await server.run(wordBody(user), key)
    const two = await server.run(wordBody(user), key)

    assert.deepEqual([one.status, two.status, two.body], [502, 502, one.body])
    assert.equal((await asked(user)).length, 1)
  })
})

describe('a stream of a one-shot run', () => {
  const stream = (body: Json, headers: Record<string, string> = {}, query = '') =>
    openStream(`${server.baseUrl}/v1/agent/run${query}`, { method: 'POST', body, headers })
  const sse = { accept: 'text/event-stream' }

  test('streams the run as it goes on, from the start to the end', async () => {
    const user = someone()
    await server.provider.script([says('{"word":', '"fine"}')], user)
    const live = await stream(wordBody(user), sse)
    await live.ended()

    assert.deepEqual(
      live.frames.map(({ json }) => json.event),
      ['agent.start', 'agent.delta', 'agent.delta', 'agent.message', 'agent.end'],
    )
    assert.equal(live.frames.at(-1)?.json.data.output, '{"word":"fine"}')
    assert.equal(live.headers['x-cached'], 'false')
  })

  test('replays the run behind a stored result, byte for byte, and asks no model', async () => {
    const user = someone()
    await server.provider.script([says('{"word":', '"fine"}')], user)
    const live = await stream(wordBody(user), sse)
    await live.ended()
    const replay = await stream(wordBody(user), sse)
    await replay.ended()

    assert.equal(replay.headers['x-cached'], 'true')
    assert.equal(replay.headers['x-run-id'], live.headers['x-run-id'])
    assert.equal(replay.text(), live.text())
    assert.equal((await asked(user)).length, 1)
  })

  test('of a stored result whose run was removed is a new run, and says so', async () => {
    const user = someone()
    await server.provider.script([good, says('{"word":"again"}')], user)
    const { runId, snapshotId } = resultOf(await server.run(wordBody(user)))
    await server.restart({}, async () => {
      await queryDatabase(server.dataDir, 'DELETE FROM journal WHERE run_id = ?', runId)
      await queryDatabase(server.dataDir, 'DELETE FROM runs WHERE id = ?', runId)
    })
    const hit = resultOf(await server.run(wordBody(user)))
    assert.deepEqual([hit.cached, hit.runId, hit.snapshotId, hit.data.word], [true, runId, snapshotId, 'fine'])

    const live = await stream(wordBody(user), sse)
    await live.ended()
    assert.equal(live.headers['x-cached'], 'false')
    assert.notEqual(live.headers['x-run-id'], runId)
    assert.equal(live.frames.at(-1)?.json.data.output, '{"word":"again"}')
  })

  test('comes in every format that the server has', async () => {
    const { body: openapi } = await server.call('GET', '/openapi.json')
    const parameters = openapi.paths['/v1/agent/run'].post.parameters as Json[]
    const names = parameters.find(({ name }) => name === 'format')?.description as string
    const formats = names.replace(' (default)', '').split(/, | or /)
    assert.ok(formats.length >= 6, names)
    const user = someone()
    await server.provider.script([good], user)
    resultOf(await server.run(wordBody(user)))

    for (const format of formats) {
      const answer = await fetch(`${server.baseUrl}/v1/agent/run?format=${format}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(wordBody(user)),
      })
      assert.equal(answer.status, 200, format)
      assert.doesNotMatch(answer.headers.get('content-type') ?? '', /^application\/json/, format)
      assert.match(await answer.text(), /fine/, format)
      assert.equal(answer.headers.get('x-cached'), 'true', format)
    }
    const unknown = await server.call('POST', '/v1/agent/run?format=morse', { body: wordBody(user) })
    assert.deepEqual([unknown.status, unknown.body.code], [400, 'unknown_format'])
  })

  test('that broke off is resumed by its key and the last frame', async () => {
    const user = someone()
    const headers = { ...sse, 'idempotency-key': `key-${user}` }
    await server.provider.script([says('{"word":', '"fine"}')], user)
    const live = await stream(wordBody(user), headers)
    await live.ended()
    const resumed = await stream(wordBody(user), { ...headers, 'last-event-id': live.frames[1]?.id ?? '' })
    await resumed.ended()

    assert.deepEqual(
      resumed.frames.map(({ id }) => id),
      live.frames.slice(2).map(({ id }) => id),
    )
    const withoutKey = await server.call('POST', '/v1/agent/run', {
      body: wordBody(user),
      headers: { ...sse, 'last-event-id': '1' },
    })
    assert.deepEqual([withoutKey.status, withoutKey.body.code], [400, 'resume_by_post'])
    const asJson = await server.run(wordBody(user), { 'last-event-id': '1' })
    assert.deepEqual([asJson.status, asJson.body.code], [400, 'resume_by_post'])
  })

  test('is refused with JSON before it starts, like any other answer', async () => {
    const answer = await server.call('POST', '/v1/agent/run', {
      body: { agentId: 'word', input: {} },
      headers: sse,
    })
    assert.deepEqual([answer.status, answer.body.code], [400, 'invalid_input'])
  })

  test('says that the run failed', async () => {
    const user = someone()
    await server.provider.script([[{ status: 500 }]], user)
    const live = await stream(wordBody(user), sse)
    await live.waitFor(named('error'))
    await live.ended()
    assert.equal(live.frames.at(-1)?.json.data.status, 'failed')
  })
})

describe('the timeline of a one-shot run', () => {
  test('has everything from the start to the end, and the run keeps the rules of the journal', async () => {
    const user = someone()
    await server.provider.script([good], user)
    const { runId } = resultOf(await server.run(wordBody(user)))
    const { body } = await server.call('GET', `/v1/agent/runs/${runId}/timeline`, { user })

    const names = (body.events as Json[]).map(({ event }) => event as string)
    assert.deepEqual(
      [names[0], names.at(-1), body.status, body.agentId],
      ['agent.start', 'agent.end', 'succeeded', 'word'],
    )
    const { body: rules } = await server.call('GET', `/v1/agent/runs/${runId}/invariants`, { user })
    assert.ok((rules.rules as Json[]).every(({ kept }) => kept === true))
  })
})

describe('chat_conversation', () => {
  test('is one turn of a chat, stored in its conversation, and never cached', async () => {
    const user = someone()
    await server.provider.script([says('Hello.'), says('Hello again.')], user)
    const body = { agentId: 'chat_conversation', userId: user, conversationId: 'talk', input: { prompt: `hi ${user}` } }
    const one = resultOf(await server.run(body))
    const two = resultOf(
      await server.run({ ...body, input: { messages: [{ role: 'user', content: `again ${user}` }] } }),
    )

    assert.deepEqual([one.cached, one.snapshotId, one.operation], [false, null, null])
    assert.equal(one.data.content, 'Hello.')
    const { id, createdAt, createdAtMs, ...message } = one.data.message
    assert.deepEqual(message, { role: 'assistant', content: 'Hello.' })
    assert.deepEqual([typeof id, Date.parse(createdAt)], ['string', createdAtMs])
    assert.equal(two.data.content, 'Hello again.')
    const { body: stored } = await server.call('GET', '/v1/agent/messages?conversationId=talk', { user })
    assert.deepEqual(
      (stored as unknown as Json[]).map(({ content }) => content as string),
      [`hi ${user}`, 'Hello.', `again ${user}`, 'Hello again.'],
    )
    assert.equal((stored as unknown as Json[])[1]?.id, id)
    const [, second] = await asked(user)
    assert.ok(
      messagesOf(second).some(({ content }) => content === 'Hello.'),
      'the second turn knows the first',
    )
  })

  test('refuses calls that need consent, and goes on', async () => {
    const user = someone()
    await server.provider.script([calls(['remember_note', { text: user }]), says('I may not.')], user)
    const input = { message: `note ${user}` }
    const result = resultOf(await server.run({ agentId: 'chat_conversation', userId: user, input }))

    assert.equal(result.data.content, 'I may not.')
    const [, after] = await asked(user)
    assert.match(messagesOf(after).findLast(({ role }) => role === 'tool')?.content, /consent/)
  })

  test('streams like a chat if a stream is asked for', async () => {
    const user = someone()
    await server.provider.script([says('Hello.')], user)
    const live = await openStream(`${server.baseUrl}/v1/agent/run`, {
      method: 'POST',
      body: { agentId: 'chat_conversation', userId: user, input: { prompt: `hi ${user}` } },
      headers: { accept: 'text/event-stream' },
    })
    await live.ended()
    assert.equal(live.frames.at(-1)?.json.data.output, 'Hello.')
  })
})
