// The session API over a real socket: each event of its description, and each of the
// notes there, in their order.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { stdioFake } from '../support/fake-mcp.ts'
import {
  calls,
  hangsAfter,
  type TestServer,
  type Json,
  messagesOf,
  says,
  someone,
  startTestServer,
  until,
} from '../support/test-server.ts'
import {
  agentIdOf,
  assertWholeStream,
  attach,
  type Message,
  resultOf,
  say,
  sayToEnd,
  textOf,
  typesOf,
  withoutHeartbeats,
} from '../support/session-api.ts'
import { openStream } from '../support/sse.ts'
import { sharedMcpServer } from '../support/shared-mcp-server.ts'

const { server, effects, folder } = sharedMcpServer((own) => ({
  POLYLOG_WORKSPACE: join(own, 'workspace'),
  POLYLOG_SESSION_HEARTBEAT_MS: '20',
  POLYLOG_TOOL_TIMEOUT_MS: '400',
  POLYLOG_BASH: 'allow',
}))
const workspace = join(folder, 'workspace')

const script = (user: string, ...answers: Parameters<TestServer['provider']['script']>[0]) =>
  server.provider.script(answers, user)

describe('the transport', () => {
  test('is text/event-stream in UTF-8, and each message is one data line with JSON, and nothing else', async () => {
    const user = someone()
    await script(user, says('Grüße, ', '世界\n', '"🙂"'))

    const stream = await say(server, user, user)
    const messages = await stream.toEnd()

    assert.equal(stream.raw.headers['content-type'], 'text/event-stream; charset=utf-8')
    for (const block of stream.raw.text().split('\n\n').slice(0, -1)) assert.match(block, /^data: \{[^\n]*\}$/)
    assert.equal(textOf(messages), 'Grüße, 世界\n"🙂"')
    assertWholeStream(messages)
  })

  test('the simplest client sends a message and nothing else', async () => {
    const stream = await openStream(`${server.polylog.baseUrl}/api/chat/stream`, {
      method: 'POST',
      body: { message: 'hi' },
    })
    await stream.ended()

    const messages = stream.frames.map(({ json }) => json as unknown as Message)
    assertWholeStream(withoutHeartbeats(messages))
    assert.equal(textOf(messages), 'Hello from the fake provider.')
  })
})

describe('1. start', () => {
  test('is the first event of every request, with the session and whether it is new', async () => {
    const user = someone()

    const first = await sayToEnd(server, user, user)
    const second = await sayToEnd(server, user, { message: user, agentId: agentIdOf(first) })

    assert.match(agentIdOf(first), /^agt-[0-9A-Z]{26}$/)
    assert.deepEqual(Object.keys(first[0] as Json), ['type', 'agentId', 'isNewSession', 'timestamp'])
    assert.deepEqual([first[0]?.isNewSession, second[0]?.isNewSession], [true, false])
    assert.equal(agentIdOf(second), agentIdOf(first))
  })

  test('comes before the model has said anything', async () => {
    const user = someone()
    await script(user, hangsAfter())

    const stream = await say(server, user, user)
    const start = await stream.waitFor('start')
    await server.call('POST', `/v1/agent/runs/${stream.runId}/cancel`, { user })

    assert.equal(start.isNewSession, true)
    assert.deepEqual(typesOf(await stream.toEnd()), ['start', 'done'])
  })
})

describe('2. heartbeat', () => {
  test('comes after start at the interval of the setting, counted from 1, also while a tool runs for long', async () => {
    const user = someone()
    await script(user, calls(['slow', {}]), says('That took long.'))

    const stream = await say(server, user, user)
    await stream.toEnd()

    const beats = stream.messages().filter(({ type }) => type === 'heartbeat')
    assert.equal(stream.messages()[0]?.type, 'start')
    assert.deepEqual(
      beats.map(({ count }) => count),
      beats.map((_, index) => index + 1),
    )
    for (const beat of beats) {
      assert.deepEqual(Object.keys(beat), ['type', 'message', 'count', 'timestamp'])
      assert.equal(beat.message, 'processing')
    }
    const types = stream.messages().map(({ type }) => type)
    const during = types.slice(types.indexOf('tool_use'), types.indexOf('tool_result'))
    assert.ok(during.filter((type) => type === 'heartbeat').length >= 3, types.join(' '))
  })

  test('counts from 1 again on each request, and when a client comes back', async () => {
    const user = someone()
    await script(user, hangsAfter('Wait'), hangsAfter('Wait'))
    const stream = await say(server, user, user)
    await stream.waitFor('heartbeat', ({ count }) => count === 3)

    const again = await attach(server, user, stream.runId)
    const first = await again.waitFor('heartbeat')
    await again.waitFor('heartbeat', ({ count }) => count === 2)

    assert.equal(first.count, 1)
    await server.call('POST', `/v1/agent/runs/${stream.runId}/cancel`, { user })
    await again.toEnd()
  })
})

describe('3. text', () => {
  test('is what the model says, piece by piece; all content together is the answer', async () => {
    const user = someone()
    await script(user, says('One', ', two', ', three.'))

    const messages = await sayToEnd(server, user, user)

    const texts = messages.filter(({ type }) => type === 'text')
    assert.deepEqual(
      texts.map(({ content }) => content),
      ['One', ', two', ', three.'],
    )
    assert.deepEqual(Object.keys(texts[0] as Json), ['type', 'content', 'timestamp'])
  })

  test('contains nothing of the model’s reasoning', async () => {
    const user = someone()
    await script(user, [{ reasoning: ['hm', 'hm'] }, ...says('Four.')])

    assert.deepEqual(typesOf(await sayToEnd(server, user, user)), ['start', 'text', 'done'])
  })
})

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
    const id = /\/v1\/tool-confirmations\/(\S+)/.exec(use.message)?.[1]
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
    const id = /\/v1\/tool-confirmations\/(\S+)/.exec(use.message)?.[1]
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

describe('results of file tools', () => {
  test('a file that was written is modified, with its path; and it is really there', async () => {
    const user = someone()
    await script(user, calls(['fs_write', { path: 'out/a.txt', content: 'hello\n' }]), says('Written.'))

    const messages = await sayToEnd(server, user, { message: user, context: { workingDir: 'project-write' } })

    const { result, is_error } = resultOf(messages)
    assert.deepEqual(Object.keys(result), ['status', 'message', 'modified', 'paths'])
    assert.deepEqual([result.status, result.modified, is_error], ['success', true, false])
    assert.equal(result.paths.length, 1)
    assert.match(result.paths[0], /out\/a\.txt$/)
    assert.equal(readFileSync(join(workspace, 'project-write', 'out/a.txt'), 'utf8'), 'hello\n')
  })

  test('a file that was only read is not modified, though the call succeeded', async () => {
    const user = someone()
    mkdirSync(join(workspace, 'project-read'), { recursive: true })
    writeFileSync(join(workspace, 'project-read', 'a.txt'), 'from outside')
    await script(user, calls(['fs_read', { path: 'a.txt' }]), says('Read.'))

    const messages = await sayToEnd(server, user, { message: user, context: { workingDir: 'project-read' } })

    const { result } = resultOf(messages)
    assert.deepEqual([result.status, result.modified, result.paths], ['success', false, []])
    assert.match(JSON.stringify(messagesOf((await server.asked(user))[1])), /from outside/)
  })

  test('a long text is shown as a preview beside the call, and written whole', async () => {
    const user = someone()
    const content = 'long '.repeat(5000)
    await script(user, calls(['fs_write', { path: 'long.txt', content }]), says('Written.'))

    const messages = await sayToEnd(server, user, { message: user, context: { workingDir: 'project-long' } })

    const use = messages.find(({ type }) => type === 'tool_use')
    assert.ok(use?.input.content.length < 1000)
    assert.equal(readFileSync(join(workspace, 'project-long', 'long.txt'), 'utf8'), content)
  })

  test('a command that ends badly is failed and no error', async () => {
    const user = someone()
    await script(user, calls(['bash_run', { cmd: 'echo oops; exit 3' }]), says('It failed.'))

    const messages = await sayToEnd(server, user, user)

    assert.deepEqual(typesOf(messages), ['start', 'tool_use', 'tool_result', 'text', 'done'])
    assert.deepEqual([resultOf(messages).result.status, resultOf(messages).is_error], ['failed', false])
    assert.match(resultOf(messages).result.message, /oops/)
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

describe('7. error and 8. done', () => {
  test('a provider that fails is INTERNAL_ERROR with the reason, and done comes last', async () => {
    const user = someone()
    await script(user, [{ status: 500, body: { error: { message: 'no' } } }])

    const messages = await sayToEnd(server, user, user)

    assert.deepEqual(typesOf(messages), ['start', 'error', 'done'])
    assert.deepEqual(Object.keys(messages[1] as Json), ['type', 'error', 'message', 'timestamp'])
    assert.equal(messages[1]?.error, 'INTERNAL_ERROR')
    assert.notEqual(messages[1]?.message, '')
  })

  test('a run that takes too long is REQUEST_TIMEOUT, and its open calls have results before that', async () => {
    const hasty = await startTestServer({ POLYLOG_RUN_MAX_MS: '1500' }, server.provider)
    try {
      const user = someone()
      await script(user, calls(['remember_note', { text: 'x' }], ['no_such_tool', {}]), hangsAfter('So'))
      const stream = await say(hasty, user, { message: user, consent: 'wait' })
      const use = await stream.waitFor('tool_use', ({ tool }) => tool === 'remember_note')
      const id = /\/v1\/tool-confirmations\/(\S+)/.exec(use.message)?.[1]
      await hasty.call('POST', `/v1/tool-confirmations/${id}/confirm`, { user })

      const messages = await stream.toEnd()

      assertWholeStream(messages)
      assert.deepEqual(typesOf(messages).slice(-2), ['error', 'done'])
      assert.equal(messages.at(-2)?.error, 'REQUEST_TIMEOUT')
    } finally {
      await hasty.close()
    }
  })

  test('done names the session again, with its time', async () => {
    const user = someone()

    const messages = await sayToEnd(server, user, user)

    const last = messages.at(-1) as Json
    assert.deepEqual(Object.keys(last), ['type', 'metadata'])
    assert.deepEqual(Object.keys(last.metadata), ['agentId', 'timestamp'])
    assert.equal(last.metadata.agentId, agentIdOf(messages))
  })
})

describe('the request', () => {
  const post = (body: unknown, headers: Record<string, string> = {}) =>
    server.call('POST', '/api/chat/stream', { body, headers })

  test('an invalid one is 400 with a code and a sentence that names the field', async () => {
    const wrong: [unknown, RegExp][] = [
      [{}, /message/],
      [{ message: '' }, /message must be a non-empty string/],
      [{ message: ' \n' }, /message must be a non-empty string/],
      [{ message: 5 }, /message/],
      [{ message: 'hi', context: 'x' }, /context/],
      [{ message: 'hi', context: { workingDir: 5 } }, /workingDir/],
      [{ message: 'hi', context: { files: 'a.txt' } }, /files/],
      [{ message: 'hi', mode: 7 }, /mode/],
    ]
    for (const [body, sentence] of wrong) {
      const answer = await post(body)
      assert.deepEqual([answer.status, answer.body.error], [400, 'BAD_REQUEST'], JSON.stringify(body))
      assert.match(answer.body.message, sentence)
      assert.deepEqual(Object.keys(answer.body), ['error', 'message'])
    }
    const broken = await server.call('POST', '/api/chat/stream', {
      raw: '{"message":',
      headers: { 'content-type': 'application/json' },
    })
    assert.deepEqual([broken.status, broken.body.error], [400, 'BAD_REQUEST'])
  })

  test('a working directory outside the workspace is 400, whatever its spelling', async () => {
    mkdirSync(join(folder, 'elsewhere'), { recursive: true })
    mkdirSync(workspace, { recursive: true })
    symlinkSync(join(folder, 'elsewhere'), join(workspace, 'way-out'))
    for (const workingDir of ['/etc', '..', '../elsewhere', 'a/../../elsewhere', 'way-out', 'way-out/inner', 'a\0b']) {
      const answer = await post({ message: 'hi', context: { userId: someone(), workingDir } })
      assert.deepEqual([answer.status, answer.body.error], [400, 'BAD_REQUEST'], workingDir)
    }
    assert.equal(existsSync(join(folder, 'elsewhere', 'inner')), false)
  })

  test('a request cannot name the directory of another session', async () => {
    const agentId = agentIdOf(await sayToEnd(server, someone(), 'hello'))
    for (const workingDir of [
      `sessions/${agentId}`,
      join(workspace, 'sessions', agentId),
      'sessions',
      './a/../sessions',
    ]) {
      assert.equal((await post({ message: 'hi', context: { workingDir } })).status, 400, workingDir)
    }
  })

  test('a body that is too large is 413, an unknown path 404, both in the same shape', async () => {
    const large = await post({ message: 'x'.repeat(3 * 1024 * 1024) })
    const nowhere = await server.call('POST', '/api/chat/nowhere', { body: {} })

    assert.deepEqual([large.status, large.body.error], [413, 'PAYLOAD_TOO_LARGE'])
    assert.deepEqual([nowhere.status, nowhere.body.error], [404, 'NOT_FOUND'])
  })

  test('too many are 429 with Retry-After, and a missing or wrong key 401', async () => {
    const key = 'a-key'
    const strict = await startTestServer(
      {
        POLYLOG_AUTH: 'required',
        POLYLOG_API_KEYS: `ann=${createHash('sha256').update(key).digest('hex')}`,
        POLYLOG_RATE_LIMIT: '3',
      },
      server.provider,
    )
    try {
      const ask = (headers: Record<string, string>, body: Json = { message: 'hi' }) =>
        strict.call('POST', '/api/chat/stream', { body, headers })
      const without = await ask({})
      const wrong = await ask({ 'x-api-key': 'wrong' })
      const others = await ask({ 'x-api-key': key }, { message: 'hi', context: { workingDir: 'sessions/x' } })
      await ask({ 'x-api-key': key })
      const good = await ask({ 'x-api-key': key })
      const limited = await ask({ 'x-api-key': key })

      assert.deepEqual([without.status, without.body.error], [401, 'UNAUTHORIZED'])
      assert.deepEqual([wrong.status, wrong.body.error], [401, 'UNAUTHORIZED'])
      assert.deepEqual([others.status, others.body.error], [400, 'BAD_REQUEST'], 'the directories of others are in it')
      assert.equal(good.status, 200)
      assert.deepEqual([limited.status, limited.body.error], [429, 'RATE_LIMITED'])
      assert.match(limited.headers.get('retry-after') ?? '', /^\d+$/)
      assert.equal((await strict.call('GET', '/health')).status, 200)
    } finally {
      await strict.close()
    }
  })

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

  test('the prompt names the directory, the mode, and the tools that will be refused', async () => {
    const [user, reader] = [someone(), someone('reader')]

    const agentId = agentIdOf(await sayToEnd(server, user, user))
    await sayToEnd(server, reader, { message: reader, mode: 'ask' })

    const systemOf = async (marker: string) =>
      messagesOf((await server.asked(marker))[0])
        .filter(({ role }) => role === 'system')
        .map(({ content }) => String(content))
        .join('\n')
    const told = await systemOf(user)
    assert.ok(told.includes(join(workspace, 'sessions', agentId)))
    assert.match(told, /agreed that you change files.*calls are refused: .*charge/)
    assert.match(await systemOf(reader), /read and not change anything.*None of your tools waits for a person/)
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

  test('with logins a named directory is each user’s own, unless the operator shares it', async () => {
    const hash = (key: string) => createHash('sha256').update(key).digest('hex')
    const root = join(folder, 'owners')
    const strict = await startTestServer(
      {
        POLYLOG_AUTH: 'required',
        POLYLOG_API_KEYS: `ann=${hash('key-a')},bob=${hash('key-b')}`,
        POLYLOG_WORKSPACE: root,
        POLYLOG_SHARED_DIRS: 'common',
      },
      server.provider,
    )
    try {
      const write = async (key: string, workingDir: string, path: string) => {
        const marker = someone()
        await script(marker, calls(['fs_write', { path, content: key }], ['fs_glob', { pattern: '**' }]), says('Done.'))
        const raw = await strict.call('POST', '/api/chat/stream', {
          headers: { 'x-api-key': key },
          body: { message: marker, context: { workingDir } },
        })
        assert.equal(raw.status, 200, raw.text)
        return raw.text
      }
      await write('key-a', 'project', 'a.txt')
      await write('key-b', 'project', 'b.txt')
      await write('key-a', '.', 'root.txt')
      await write('key-a', 'common/tea', 'a.txt')
      await write('key-b', 'common/tea', 'b.txt')

      assert.deepEqual(readdirSync(join(root, 'common/tea')).toSorted(), ['a.txt', 'b.txt'])
      assert.equal(existsSync(join(root, 'project')), false)
      const [ann, bob] = readdirSync(join(root, 'owners')).toSorted()
      assert.match(`${ann} ${bob}`, /^ann-[0-9a-f]{16} bob-[0-9a-f]{16}$/)
      assert.deepEqual(readdirSync(join(root, 'owners', ann ?? '', 'project')), ['a.txt'])
      assert.deepEqual(readdirSync(join(root, 'owners', bob ?? '', 'project')), ['b.txt'])
      assert.equal(readFileSync(join(root, 'owners', ann ?? '', 'root.txt'), 'utf8'), 'key-a')
      const foreign = await strict.call('POST', '/api/chat/stream', {
        headers: { 'x-api-key': 'key-b' },
        body: { message: 'hi', context: { workingDir: `owners/${ann}/project` } },
      })
      assert.equal(foreign.status, 400)
    } finally {
      await strict.close()
    }
  })

  test('files and outputsPath reach the model', async () => {
    const user = someone()

    await sayToEnd(server, user, { message: user, outputsPath: 'results', context: { files: ['data/a.nc'] } })

    const system = JSON.stringify(messagesOf((await server.asked(user))[0]).filter(({ role }) => role === 'system'))
    assert.match(system, /data\/a\.nc/)
    assert.match(system, /results/)
  })

  test('the same Idempotency-Key is the same run in the same session', async () => {
    const user = someone()
    const directories = () => readdirSync(join(workspace, 'sessions')).length
    const first = await say(server, user, user, { 'idempotency-key': user })
    const before = directories()
    const again = await say(server, user, user, { 'idempotency-key': user })

    assert.deepEqual(await again.toEnd(), await first.toEnd())
    assert.equal(again.runId, first.runId)
    assert.equal(directories(), before, 'no other session was made on the way')
    assert.equal((await server.asked(user)).length, 1)
  })
})

describe('health', () => {
  test('counts sessions, names no path, and needs no login', async () => {
    const user = someone()
    const before = (await server.call('GET', '/health')).body
    await script(user, hangsAfter('Wait'))
    const stream = await say(server, user, user)
    await stream.waitFor('text')

    const during = (await server.call('GET', '/health')).body

    assert.deepEqual(Object.keys(during), ['status', 'service', 'timestamp', 'conversations'])
    assert.deepEqual([during.status, during.conversations.total], ['ok', before.conversations.total + 1])
    assert.equal(during.conversations.active, before.conversations.active + 1)
    assert.doesNotMatch(JSON.stringify(during), /\//)
    await server.call('POST', `/v1/agent/runs/${stream.runId}/cancel`, { user })
    await until('no session to be active', async () => {
      const { body } = await server.call('GET', '/health')
      return body.conversations.active === before.conversations.active ? true : undefined
    })
  })
})

describe('one journal', () => {
  test('this wire and the timeline agree on the run', async () => {
    const user = someone()
    await script(
      user,
      calls(['lookup', { word: 'tea' }, 'c1'], ['no_such_tool', {}, 'c2'], ['slow', {}, 'c3']),
      says('All ', 'done.'),
    )
    const stream = await say(server, user, user)
    const messages = await stream.toEnd()

    const { body } = await server.call('GET', `/v1/agent/runs/${stream.runId}/timeline`, { user })
    const entries = body.events as Json[]

    const ends: Record<string, [string, boolean]> = {
      succeeded: ['success', false],
      failed: ['failed', false],
    }
    for (const id of ['c1', 'c2', 'c3']) {
      const last = entries.findLast(({ event, payload }) => event === 'tool.state' && payload.toolId === id)?.payload
      const { result, is_error } = resultOf(messages, id)
      assert.deepEqual([result.status, is_error], id === 'c3' ? ['failed', true] : ends[last.status])
      assert.equal(result.message, last.message)
    }
    const said = entries.flatMap(({ event, payload }) => (event === 'agent.delta' ? [payload.delta] : []))
    assert.equal(textOf(messages), said.join(''))
    assert.equal(agentIdOf(messages), body.conversationId)
    assert.equal(messages.at(-1)?.metadata.timestamp, body.endedAtMs)
    assert.equal(messages[0]?.timestamp, body.startedAtMs)
  })

  test('a run is the same bytes when it is read again, also one that was started in another dialect', async () => {
    const user = someone()
    await script(user, calls(['lookup', { word: 'tea' }]), says('Tea.'))
    const stream = await say(server, user, user)
    const messages = await stream.toEnd()

    assert.deepEqual(await (await attach(server, user, stream.runId)).toEnd(), messages)

    const native = await server.chat(user, 'hello', {}, '?format=session')
    await native.ended()
    assertWholeStream(withoutHeartbeats(native.frames.map(({ json }) => json as unknown as Message)))
  })

  test('a disconnect does not stop the run, unless the request asked for that', async () => {
    const [stays, goes] = [someone('stays'), someone('goes')]
    await script(stays, [{ text: 'Half' }, { delayMs: 50 }, { text: ' and half.' }, { finish: 'stop' }])
    await script(goes, hangsAfter('Half'))
    const one = await say(server, stays, stays)
    const other = await say(server, goes, { message: goes, onDisconnect: 'cancel' })
    await one.waitFor('text')
    await other.waitFor('text')

    one.raw.leave()
    other.raw.leave()

    await server.reaches(stays, one.runId, 'succeeded')
    await server.reaches(goes, other.runId, 'cancelled')
    assert.equal(textOf(await (await attach(server, stays, one.runId)).toEnd()), 'Half and half.')
  })
})
