// Tool calls in the session API: every call has a result, which is an error only if the tool threw, and
// a call that needs consent is refused at once unless the request waits for a person.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { stdioFake } from '../support/fake-mcp.ts'
import {
  assertWholeStream,
  confirmationIdOf,
  resultOf,
  say,
  sayToEnd,
  sharedSessionServer,
  textOf,
  typesOf,
} from '../support/session-api.ts'
import { calls, type Json, says, someone, startTestServer } from '../support/test-server.ts'

const { server, effects, folder, script } = sharedSessionServer()

describe('4. tool_use and 5. tool_result', () => {
  test('a call has its tool, an id, a sentence for people and its arguments; its result has the same id', async () => {
    const user = someone()
    await script(user, calls(['lookup', { word: 'tea' }, 'call_tea']), says('Tea.'))

    const messages = await sayToEnd(server, user, user)

    const use = messages.find(({ type }) => type === 'tool_use')
    assert.deepEqual(Object.keys(use as Json), ['type', 'tool', 'id', 'message', 'input', 'timestamp'])
    assert.deepEqual([use?.tool, use?.id, use?.input], ['lookup', 'call_tea', { word: 'tea' }])
    assert.match(use?.message, /Look something up/)
    const result = resultOf(messages, 'call_tea')
    assert.deepEqual(Object.keys(result), ['type', 'tool_use_id', 'result', 'is_error', 'timestamp'])
    assert.deepEqual([result.result.status, result.is_error], ['success', false])
    assert.deepEqual(Object.keys(result.result), ['status', 'message'])
    assertWholeStream(messages)
  })

  test('a negative answer of a tool is failed, and is no error', async () => {
    const user = someone()
    await script(user, calls(['fs_read', { path: 'nothing-here.txt' }]), says('No such file.'))

    const messages = await sayToEnd(server, user, user)

    assert.deepEqual(typesOf(messages), ['start', 'tool_use', 'tool_result', 'text', 'done'])
    assert.deepEqual([resultOf(messages).result.status, resultOf(messages).is_error], ['failed', false])
  })

  test('every call has a result: unknown tools, arguments that do not fit or cannot be read, and good ones', async () => {
    const user = someone()
    const toolCalls = [
      { id: 'c1', name: 'no_such_tool', arguments: '{}' },
      { id: 'c2', name: 'lookup', arguments: '{"word":5}' },
      { id: 'c3', name: 'lookup', arguments: '{"word":' },
      { id: 'c4', name: 'lookup', arguments: '{"word":"tea"}' },
    ]
    await script(user, [{ toolCalls }, { finish: 'tool_calls' }], says('Done.'))

    const messages = await sayToEnd(server, user, user)

    assertWholeStream(messages)
    assert.deepEqual(
      ['c1', 'c2', 'c3', 'c4'].map((id) => resultOf(messages, id).result.status),
      ['failed', 'failed', 'failed', 'success'],
    )
    assert.ok(['c1', 'c2', 'c3', 'c4'].every((id) => resultOf(messages, id).is_error === false))
    const unreadable = messages.find(({ type, id }) => type === 'tool_use' && id === 'c3')
    assert.equal('input' in (unreadable as Json), false)
  })

  test('a call that a person refused has a result; its message had said where to decide', async () => {
    const user = someone()
    await script(user, calls(['charge', { amount: 5 }]), says('Then not.'))
    const stream = await say(server, user, { message: user, consent: 'wait' })

    const use = await stream.waitFor('tool_use')
    const id = confirmationIdOf(use)
    await server.call('POST', `/v1/tool-confirmations/${id}/reject`, { user, body: { reason: 'too much' } })
    const messages = await stream.toEnd()

    assert.deepEqual(resultOf(messages).result, { status: 'failed', message: 'too much' })
    assert.equal(resultOf(messages).is_error, false)
    assertWholeStream(messages)
    assert.deepEqual(
      effects.lines().filter((line) => line.startsWith('charge')),
      [],
    )
  })

  test('a call that a person allowed runs once, and its result is a success', async () => {
    const user = someone()
    await script(user, calls(['charge', { amount: 7 }]), says('Paid.'))
    const stream = await say(server, user, { message: user, consent: 'wait' })

    const use = await stream.waitFor('tool_use')
    const id = confirmationIdOf(use)
    await server.call('POST', `/v1/tool-confirmations/${id}/confirm`, { user })
    const messages = await stream.toEnd()

    assert.equal(resultOf(messages).result.status, 'success')
    assert.deepEqual(
      effects.lines().filter((line) => line === 'charge 7'),
      ['charge 7'],
    )
  })

  test('a call that was cancelled with its run has a result, and done says that it was cancelled', async () => {
    const user = someone()
    await script(user, calls(['charge', { amount: 9 }]))
    const stream = await say(server, user, { message: user, consent: 'wait' })
    await stream.waitFor('tool_use')

    await server.call('POST', `/v1/agent/runs/${stream.runId}/cancel`, { user })
    const messages = await stream.toEnd()

    assert.deepEqual(typesOf(messages), ['start', 'tool_use', 'tool_result', 'done'])
    assert.deepEqual([resultOf(messages).result.status, resultOf(messages).is_error], ['failed', false])
    assert.equal(messages.at(-1)?.metadata.cancelled, true)
  })
})

describe('6. tool_error', () => {
  test('comes if a tool throws, before its result, which is then an error', async () => {
    const user = someone()
    await script(user, calls(['slow', {}, 'call_slow']), says('It took too long.'))

    const messages = await sayToEnd(server, user, user)

    assert.deepEqual(typesOf(messages), ['start', 'tool_use', 'tool_error', 'tool_result', 'text', 'done'])
    const thrown = messages.find(({ type }) => type === 'tool_error')
    assert.deepEqual(Object.keys(thrown as Json), ['type', 'tool', 'error', 'tool_use_id', 'timestamp'])
    assert.deepEqual([thrown?.tool, thrown?.tool_use_id], ['slow', 'call_slow'])
    assert.match(thrown?.error, /did not answer within/)
    assert.deepEqual([resultOf(messages).result.status, resultOf(messages).is_error], ['failed', true])
  })

  test('a command that takes too long throws', async () => {
    const user = someone()
    await script(user, calls(['bash_run', { cmd: 'sleep 20', timeout_ms: 100 }]), says('Too long.'))

    const messages = await sayToEnd(server, user, user)

    assert.match(messages.find(({ type }) => type === 'tool_error')?.error, /Command execution timeout/)
    assert.equal(resultOf(messages).is_error, true)
    assertWholeStream(messages)
  })
})

describe('consent', () => {
  test('a call that needs consent is answered at once, with what would allow it, and is not made', async () => {
    const user = someone()
    await script(user, calls(['charge', { amount: 11 }], ['remember_note', { text: 'x' }]), says('Then not.'))

    const messages = await sayToEnd(server, user, user)

    assertWholeStream(messages)
    const [charge, note] = messages.filter(({ type }) => type === 'tool_result')
    assert.deepEqual([charge?.result.status, charge?.is_error], ['failed', false])
    assert.match(
      charge?.result.message,
      /charge needs the consent.*"charge": \{"confirm": "never"\}.*POLYLOG_MCP_CONFIG/,
    )
    assert.match(note?.result.message, /remember_note needs the consent.*\/v1\/agent\/chat/)
    assert.equal(textOf(messages), 'Then not.')
    assert.deepEqual(
      effects.lines().filter((line) => line === 'charge 11'),
      [],
    )
    const pending = await server.call('GET', '/v1/tool-confirmations?status=pending', { user })
    assert.deepEqual(pending.body, [])
  })

  test('MCP tools that the operator trusts run without asking, and keep the effect that the operator gave them', async () => {
    const config = join(folder, 'trusted.json')
    const demo = stdioFake({ FAKE_MCP_FILE: effects.file })
    const polylog = { confirm: 'never', tools: { add_item: { confirm: 'always' }, charge: { effect: 'idempotent' } } }
    writeFileSync(config, JSON.stringify({ mcpServers: { demo: { ...demo, polylog } } }))
    const trusting = await startTestServer({ POLYLOG_MCP_CONFIG: config }, server.provider)
    try {
      const user = someone()
      await script(user, calls(['charge', { amount: 13 }, 'c1'], ['add_item', { text: 'x' }, 'c2']), says('Done.'))

      const messages = await sayToEnd(trusting, user, user)

      assert.equal(resultOf(messages, 'c1').result.status, 'success')
      assert.match(resultOf(messages, 'c2').result.message, /needs the consent/)
      assert.deepEqual(
        effects.lines().filter((line) => line === 'charge 13'),
        ['charge 13'],
      )
      const { body } = await trusting.call('GET', '/v1/tools')
      assert.equal((body as unknown as Json[]).find(({ name }) => name === 'charge')?.effect, 'idempotent')
    } finally {
      await trusting.close()
    }
  })
})
