// The MCP server at /mcp, tried with the official client in both eras of the protocol, against a real server process.

import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { Client, type Progress, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { apiKeysSetting } from '../support/api-keys.ts'
import { agentFolder, objectSchema } from '../support/agent-folder.ts'
import { startPolylog } from '../support/polylog.ts'
import {
  callServer,
  hangsAfter,
  type Json,
  says,
  someone,
  startTestServer,
  type TestServer,
  sharedTestServers,
} from '../support/test-server.ts'

const own = agentFolder()
own.agent('shorten', {
  name: 'Shorten',
  description: 'Shortens a text.',
  cache: { ttl: 3600 },
  validation: { inputSchema: 'input.json', outputSchema: 'output.json' },
})
own.agent('nocache', { operations: [{ id: 'count', name: 'Count' }] })
own.agent('by_user', {}, { 'input.json': objectSchema({ userId: { type: 'string' }, text: {} }, ['userId']) })
own.write('broken/agent.json', '{')
const [server, required] = sharedTestServers(
  { POLYLOG_AGENTS_DIR: own.path },
  { POLYLOG_AGENTS_DIR: own.path, POLYLOG_AUTH: 'required', POLYLOG_API_KEYS: apiKeysSetting({ robot: 'robot-key' }) },
)
after(() => own.dispose())

type Era = 'legacy' | 'auto'

async function connect(
  era: Era,
  { user, headers, at = server }: { user?: string; headers?: Record<string, string>; at?: TestServer } = {},
): Promise<Client> {
  const url = new URL('/mcp', at.polylog.baseUrl)
  if (user !== undefined) url.searchParams.set('userId', user)
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: era } })
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers: headers ?? {} } }))
  return client
}

const answer = (text: string) => says(JSON.stringify({ answer: text }))
const errorOf = ({ _meta = {} }: { _meta?: Record<string, unknown> | undefined }) => _meta['polylog/error'] as Json
const runsOf = async (user: string): Promise<Json[]> =>
  (await server.call('GET', '/v1/agent/runs', { user })).body as unknown as Json[]

for (const era of ['legacy', 'auto'] as const) {
  describe(`an MCP client (${era === 'legacy' ? '2025' : '2026'})`, () => {
    test('finds each available one-shot agent as a tool, with its schemas, and no chat agent', async () => {
      const client = await connect(era)
      const { tools } = await client.listTools()
      assert.match(client.getNegotiatedProtocolVersion() ?? '', era === 'legacy' ? /^2025-/ : /^2026-/)
      await client.close()

      assert.deepEqual(
        tools.map(({ name }) => name),
        [
          'archive_brief_archive_extract',
          'archive_brief_brief_generate',
          'title_summary',
          'network_action',
          'contact_insight',
          'by_user',
          'nocache_count',
          'shorten',
        ],
      )
      const shorten = tools.find(({ name }) => name === 'shorten')
      assert.deepEqual([shorten?.title, shorten?.description], ['Shorten', 'Shortens a text.'])
      assert.deepEqual(shorten?.inputSchema['required'], ['text'])
      assert.deepEqual(shorten?.outputSchema?.['required'], ['answer'])
    })

    test('runs an agent and gets structured content; the same call again is answered from the snapshot', async () => {
      const user = someone()
      const client = await connect(era, { user })
      await server.provider.script([answer('short')], user)
      await client.listTools()

      const first = await client.callTool({ name: 'shorten', arguments: { text: `long ${user}` } })
      const second = await client.callTool({ name: 'shorten', arguments: { text: `long ${user}` } })
      await client.close()

      assert.equal(first.isError, undefined)
      assert.deepEqual(first.structuredContent, { answer: 'short' })
      assert.deepEqual(first.content, [{ type: 'text', text: '{"answer":"short"}' }])
      assert.equal(first._meta?.['polylog/cached'], false)
      assert.equal(second._meta?.['polylog/cached'], true)
      assert.equal(second._meta?.['polylog/snapshotId'], first._meta?.['polylog/snapshotId'])
      assert.equal((await server.asked(user)).length, 1)
      const run = await server.call('GET', `/v1/agent/runs/${String(first._meta?.['polylog/runId'])}`, { user })
      assert.deepEqual([run.status, run.body.status], [200, 'succeeded'])
    })

    test('runs an operation as a tool of its own', async () => {
      const user = someone()
      const client = await connect(era, { user })
      await server.provider.script([answer('three')], user)

      const result = await client.callTool({ name: 'nocache_count', arguments: { text: user } })
      await client.close()

      assert.deepEqual(result.structuredContent, { answer: 'three' })
      assert.equal(result._meta?.['polylog/snapshotId'], null)
    })

    test('gets progress if it asks for it', async () => {
      const user = someone()
      const client = await connect(era, { user })
      await server.provider.script([says('This is not JSON.')], user)
      await server.provider.script([answer('now it is')], 'Your last message cannot be used')
      const seen: Progress[] = []

      const result = await client.callTool(
        { name: 'shorten', arguments: { text: user } },
        { onprogress: (progress) => seen.push(progress) },
      )
      await client.close()

      assert.deepEqual(result.structuredContent, { answer: 'now it is' })
      const messages = seen.map(({ message }) => message)
      assert.ok(messages.includes('The model is asked (step 2).'), messages.join())
      assert.ok(messages.includes('The answer does not fit; the model is asked to correct it.'))
      assert.deepEqual(
        seen.map(({ progress }) => progress),
        seen.map((_, index) => index + 1),
      )
    })

    test('cancels a call, and the run is cancelled', async () => {
      const user = someone()
      const client = await connect(era, { user })
      await server.provider.script([hangsAfter('{"answer"')], user)
      const abort = new AbortController()
      const calling = client.callTool({ name: 'shorten', arguments: { text: user } }, { signal: abort.signal })
      const refused = assert.rejects(calling)
      await server.askedTimes(user, 1)

      abort.abort(new Error('changed my mind'))
      await refused

      const [run] = await runsOf(user)
      const ended = await server.reaches(user, String(run?.runId), 'cancelled')
      assert.equal(ended.status, 'cancelled')
      await client.close()
    })

    test('gets the code and what to do if its arguments do not fit or the provider fails', async () => {
      const user = someone()
      const client = await connect(era, { user })
      await server.provider.script([[{ status: 500 }]], user)

      const failed = await client.callTool({ name: 'shorten', arguments: { text: user } })
      const invalid = await client.callTool({ name: 'shorten', arguments: { text: 7 } })
      await client.close()

      assert.equal(invalid.isError, true)
      assert.match(JSON.stringify(invalid.content), /invalid_input: input\.text /)
      assert.equal(errorOf(invalid).code, 'invalid_input')
      assert.equal(failed.isError, true)
      assert.match(JSON.stringify(failed.content), /ai_provider_error: /)
      assert.equal(errorOf(failed).retryable, true)
    })

    test('gets the error of the protocol if a tool does not exist', async () => {
      const client = await connect(era)
      for (const name of ['nobody', 'chat_conversation', 'broken'])
        await assert.rejects(client.callTool({ name, arguments: {} }), { message: /There is no tool/ })
      await client.close()
    })

    test('names the user in the arguments if nothing else does; a login wins', async () => {
      const user = someone()
      const client = await connect(era)
      await server.provider.script([answer('mine')], user)
      await client.callTool({ name: 'by_user', arguments: { userId: user, text: user } })
      await client.close()
      assert.equal((await runsOf(user)).length, 1)

      const robot = await connect(era, { at: required, headers: { 'x-api-key': 'robot-key' } })
      const { tools } = await robot.listTools()
      assert.deepEqual(tools.find(({ name }) => name === 'by_user')?.inputSchema['required'], [])
      const marker = someone()
      await server.provider.script([answer('a robot')], marker)
      const result = await robot.callTool({ name: 'by_user', arguments: { userId: user, text: marker } })
      await robot.close()
      assert.deepEqual(result.structuredContent, { answer: 'a robot' })
      const mine = await required.call('GET', '/v1/agent/runs', { headers: { 'x-api-key': 'robot-key' } })
      assert.ok((mine.body as unknown as Json[]).some(({ runId }) => runId === result._meta?.['polylog/runId']))
    })
  })
}

test('every built-in agent answers over MCP without a provider, and its result fits the schema that the tool shows', async () => {
  const demo = await startPolylog({ POLYLOG_DEMO_PACE_MS: '0' })
  const send = async (path: string, body: Json) => {
    const answered = await callServer(demo.baseUrl, 'POST', path, { user: 'user_123', body })
    assert.ok(answered.status < 300, answered.text)
    return answered
  }
  await send('/v1/contacts', { id: 'contact_456', name: '张三', company: 'Acme', tags: ['go'] })
  await send('/v1/contacts', { id: 'contact_789', name: '李四', company: 'Acme' })
  await send('/v1/contacts/contact_456/facts', { content: '喜欢喝茶' })
  await send('/v1/contacts/contact_456/todos', { content: '发送合同', dueAt: '2020-01-01T00:00:00.000Z' })
  await send('/v1/agent/chat', { conversationId: 'conv_123', input: '今天天气真好，张三周五来访' })
  const url = new URL('/mcp?userId=user_123', demo.baseUrl)
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(url))
  // The client checks structured content against the schemas that it has listed.
  const { tools } = await client.listTools()
  assert.equal(tools.length, 5)
  const calls: [name: string, input: Json, fields: string[]][] = [
    ['title_summary', { conversationId: 'conv_123' }, ['title', 'summary']],
    [
      'archive_brief_archive_extract',
      { conversationId: 'conv_123' },
      ['operation', 'id', 'status', 'summary', 'payload'],
    ],
    [
      'archive_brief_brief_generate',
      { contactId: 'contact_456' },
      ['contact_id', 'content', 'generated_at', 'source_hash'],
    ],
    ['contact_insight', { contactId: 'contact_456' }, ['profileSummary', 'citations', 'sourceHash', 'generatedAt']],
    ['network_action', {}, ['followUps', 'recommendations', 'synthesis', 'nextActions', 'metadata']],
  ]
  for (const language of ['zh', 'en']) {
    for (const [name, input, fields] of calls) {
      const result = await client.callTool({ name, arguments: { ...input, language } })
      assert.equal(result.isError, undefined, JSON.stringify(result.content))
      const data = (result.structuredContent ?? {}) as Json
      for (const field of fields) assert.ok(field in data, `${name} has ${field}`)
      assert.equal(data.computed, true)
    }
  }
  const missing = await client.callTool({ name: 'contact_insight', arguments: { contactId: 'nobody' } })
  assert.match(JSON.stringify(missing.content), /contact_not_found: /)
  await client.close()
  await demo.dispose()
})

describe('the guards of the other routes hold for /mcp', () => {
  const initialize = {
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
  }
  const accept = { accept: 'application/json, text/event-stream' }

  test('a login is required in required mode', async () => {
    const answered = await required.call('POST', '/mcp', { body: initialize, headers: accept })
    assert.deepEqual([answered.status, answered.headers.get('www-authenticate')], [401, 'Bearer'])
  })

  test('a foreign origin is refused', async () => {
    const headers = { ...accept, origin: 'https://evil.example' }
    const answered = await server.call('POST', '/mcp', { body: initialize, headers })
    assert.deepEqual([answered.status, answered.body.code], [403, 'origin_not_allowed'])
  })

  test('bodies are bounded, and the error for invalid JSON says where it is wrong', async () => {
    const large = await server.call('POST', '/mcp', { raw: JSON.stringify('x'.repeat(3_000_000)), headers: accept })
    assert.equal(large.status, 413)
    const deep = await server.call('POST', '/mcp', { raw: `${'['.repeat(5000)}${']'.repeat(5000)}`, headers: accept })
    assert.equal(deep.status, 400)
    const torn = await server.call('POST', '/mcp', { raw: '{"jsonrpc":', headers: accept })
    assert.deepEqual([torn.status, torn.body.code], [400, 'invalid_json'])
  })

  test('odd messages are answered as errors of the protocol, never as a failure of the server', async () => {
    for (const raw of ['null', '7', '"x"', '[]', '{}', '[null]', '{"jsonrpc":"2.0","method":5}', '']) {
      const answered = await server.call('POST', '/mcp', { raw, headers: accept })
      assert.ok(answered.status >= 400 && answered.status < 500, `${raw}: ${answered.status} ${answered.text}`)
    }
  })

  test('there are no sessions to read or to end', async () => {
    for (const method of ['GET', 'DELETE'])
      assert.equal((await server.call(method, '/mcp', { headers: accept })).status, 405)
    const first = await server.call('POST', '/mcp', { body: initialize, headers: accept })
    const second = await server.call('POST', '/mcp', { body: initialize, headers: accept })
    assert.equal(first.status, 200)
    assert.ok(first.headers.get('mcp-session-id') !== null)
    assert.notEqual(first.headers.get('mcp-session-id'), second.headers.get('mcp-session-id'))
  })

  test('a subscription is refused, because it would only hold a connection', async () => {
    const client = await connect('auto')
    await assert.rejects(client.listen({ toolsListChanged: true }))
    await client.close()
  })

  test('a server that stops says so to its callers, and the run goes on at the next start', async () => {
    const user = someone()
    const mortal = await startTestServer({ POLYLOG_AGENTS_DIR: own.path }, server.provider)
    const client = await connect('auto', { user, at: mortal })
    await server.provider.script([hangsAfter('{"answer"')], user)
    const calling = client.callTool({ name: 'shorten', arguments: { text: user } })
    await server.askedTimes(user, 1)

    const [result, code] = await Promise.all([calling, mortal.polylog.stop()])

    assert.equal(code, 0)
    assert.match(JSON.stringify(result.content), /shutting_down: .*goes on later/)
    await server.provider.script([answer('later')], user)
    const reborn = await mortal.restart()
    const [run] = (await reborn.call('GET', '/v1/agent/runs', { user })).body as unknown as Json[]
    await reborn.reaches(user, String(run?.runId), 'succeeded')
    await client.close()
    await reborn.close()
  })

  test('a client of the older protocol that only hangs up does not stop the run, and its result is stored', async () => {
    const user = someone()
    const client = await connect('legacy', { user })
    await server.provider.script(
      [[{ text: '{"answer":' }, { stall: true }, { text: '"kept"}' }, { finish: 'stop' }]],
      user,
    )
    const calling = client.callTool({ name: 'shorten', arguments: { text: user } })
    const cut = assert.rejects(calling)
    await server.askedTimes(user, 1)
    await client.close()
    await cut
    await server.provider.release()

    const [run] = await runsOf(user)
    await server.reaches(user, String(run?.runId), 'succeeded')
    const again = await connect('legacy', { user })
    const result = await again.callTool({ name: 'shorten', arguments: { text: user } })
    await again.close()
    assert.deepEqual([result.structuredContent, result._meta?.['polylog/cached']], [{ answer: 'kept' }, true])
  })
})
