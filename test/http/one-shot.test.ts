// POST /v1/agent/run over HTTP: the fields of an answer and where they come from, the tools of an
// agent, and the repair round for an answer of the model that does not fit.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { goodAnswer, resultOf, sharedOneShotServer, wordBody } from '../support/one-shot.ts'
import { calls, type Json, messagesOf, says, someone } from '../support/test-server.ts'

const server = sharedOneShotServer()

describe('the answer', () => {
  test('has exactly the fields of the contract', async () => {
    const user = someone()
    await server.provider.script([goodAnswer], user)
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
    await server.provider.script([goodAnswer, says('{"word":"other"}')], user)
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
    await server.provider.script([goodAnswer, goodAnswer], user)
    await server.run(wordBody(user))
    await server.run(wordBody(user, { input: { text: user, language: 'en' } }))

    const [chinese, english] = await server.asked(user)
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
    await server.provider.script([goodAnswer, goodAnswer], user)
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
    await server.provider.script([reads, asks, goodAnswer], user)
    const input = { text: `${'long '.repeat(5000)} ${user}` }
    const result = resultOf(await server.run({ agentId: 'helped', userId: user, input }))

    assert.deepEqual(result.data, { word: 'fine' })
    const [first, second, third] = await server.asked(user)
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
    await server.provider.script([says('{"wort":"x"}'), goodAnswer], user)
    // The repair round ends with the request to correct the answer, which does not hold the user's name.
    await server.provider.script([goodAnswer], 'cannot be used as the final answer')
    const result = resultOf(await server.run(wordBody(user)))

    assert.deepEqual(result.data, { word: 'fine' })
    const [, repair] = await server.asked(user)
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
    assert.equal((await server.asked(user)).length, 2)
    assert.deepEqual((await server.call('GET', '/v1/agent/snapshots', { user })).body, [])
  })

  test('is not written anywhere if it is nested too deeply', async () => {
    const user = someone()
    const deep = `{"word":"x","more":${'['.repeat(20_000)}${']'.repeat(20_000)}}`
    await server.provider.script([says(deep)], user)
    await server.provider.script([goodAnswer], 'cannot be used as the final answer')
    assert.deepEqual(resultOf(await server.run(wordBody(user))).data, { word: 'fine' })
  })
})
