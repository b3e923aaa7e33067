// GET /v1/agent/list: the fields of the specification, the built-in agents in their order, the operator's own,
// and broken definitions, which are listed with the reason. Also: changes of files are noticed while the server runs.

import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { agentFolder } from '../support/agent-folder.ts'
import { type Json, until, sharedTestServer } from '../support/test-server.ts'

const own = agentFolder()
own.agent('zoo', {
  name: '动物园 → Zoo',
  description: '动物',
  translations: { en: { description: 'Beasts' } },
  cache: { ttl: 0 },
})
own.agent('broken', { prompt: { systemTemplate: 'gone.mustache' }, name: 'Broken one' })
own.write('unreadable/agent.json', '{"id":')
own.agent('elsewhere', { model: 'anthropic/claude' })
const server = sharedTestServer({ POLYLOG_AGENTS_DIR: own.path })
after(() => own.dispose())

async function list(): Promise<Json[]> {
  const { status, body } = await server.call('GET', '/v1/agent/list')
  assert.equal(status, 200)
  assert.equal(body.total, body.agents.length)
  return body.agents as Json[]
}

const agent = async (id: string): Promise<Json> => (await list()).find((entry) => entry.id === id) ?? {}

const fields = [
  'id',
  'name',
  'description',
  'version',
  'status',
  'statusError',
  'operations',
  'tools',
  'cache',
  'memory',
  'inputSchema',
  'outputSchema',
  'usage',
  'endpoint',
]

describe('the list of agents', () => {
  test('has the fields of the specification and no others, for every agent', async () => {
    for (const entry of await list()) assert.deepEqual(Object.keys(entry), fields, String(entry.id))
  })

  test('begins with the built-in agents in a fixed order, all available, and goes on by id', async () => {
    const agents = await list()
    assert.deepEqual(
      agents.map(({ id, status }) => `${id} ${status}`),
      [
        'chat_conversation available',
        'archive_brief available',
        'title_summary available',
        'network_action available',
        'contact_insight available',
        'broken unavailable',
        'elsewhere unavailable',
        'unreadable unavailable',
        'zoo available',
      ],
    )
  })

  test('shows title_summary as the example of the specification does', async () => {
    const { inputSchema, outputSchema, ...rest } = await agent('title_summary')
    assert.deepEqual(rest, {
      id: 'title_summary',
      name: '对话标题与摘要',
      description: '根据对话内容生成标题和摘要',
      version: '1.0.0',
      status: 'available',
      statusError: null,
      operations: [],
      tools: { mode: 'none', allowedTools: [] },
      cache: { ttl: 3600 },
      memory: { strategy: 'sliding_window', maxTokens: 4000 },
      usage: '在对话结束或第 3 条消息后调用 /v1/agent/run，agentId=title_summary',
      endpoint: '/v1/agent/run',
    })
    assert.deepEqual(Object.keys(inputSchema.properties), ['conversationId', 'messages', 'language'])
    assert.deepEqual(outputSchema.required, ['title', 'summary'])
    assert.equal(outputSchema.properties.title.readOnly, undefined)
    assert.equal(outputSchema.properties.computed.readOnly, true)
  })

  test('shows the operations of archive_brief, each with its schemas', async () => {
    const { operations, inputSchema, cache, memory } = await agent('archive_brief')
    assert.deepEqual(
      (operations as Json[]).map((operation) => Object.keys(operation)),
      [
        ['id', 'name', 'description', 'inputSchema', 'outputSchema'],
        ['id', 'name', 'description', 'inputSchema', 'outputSchema'],
      ],
    )
    const [extract, brief] = operations as [Json, Json]
    assert.deepEqual([extract.id, extract.inputSchema.required], ['archive_extract', ['userId', 'conversationId']])
    assert.deepEqual([brief.id, brief.inputSchema.required], ['brief_generate', ['userId', 'contactId']])
    assert.deepEqual(Object.keys(brief.outputSchema.properties).toSorted(), [
      'citations',
      'computed',
      'contact_id',
      'content',
      'generated_at',
      'id',
      'operation',
      'source_hash',
    ])
    assert.deepEqual([inputSchema, cache, memory], [{}, { ttl: 86400 }, { strategy: 'conversation', maxTokens: 3000 }])
  })

  test('has its texts in the language that the request asks for, where they were translated', async () => {
    const inLanguage = async (language: string) => {
      const { status, body } = await server.call('GET', `/v1/agent/list?language=${language}`)
      assert.equal(status, 200)
      for (const entry of body.agents as Json[]) assert.deepEqual(Object.keys(entry), fields, String(entry.id))
      return new Map((body.agents as Json[]).map((entry) => [String(entry.id), entry]))
    }
    const english = await inLanguage('en')
    for (const id of ['chat_conversation', 'archive_brief', 'title_summary', 'network_action', 'contact_insight']) {
      const { name, description, usage, operations } = english.get(id) ?? {}
      assert.doesNotMatch(JSON.stringify([name, description, usage]), /\p{Script=Han}/u, id)
      for (const operation of operations as Json[]) {
        assert.doesNotMatch(JSON.stringify([operation.name, operation.description]), /\p{Script=Han}/u, id)
      }
    }
    assert.equal(english.get('title_summary')?.name, 'Title and summary')
    assert.deepEqual(
      [english.get('zoo')?.name, english.get('zoo')?.description, english.get('zoo')?.usage],
      ['动物园 → Zoo', 'Beasts', ''],
    )
    assert.equal((await inLanguage('de')).get('title_summary')?.name, '对话标题与摘要')
    const { status, body } = await server.call('GET', '/v1/agent/list?language=__proto__')
    assert.deepEqual([status, body.code], [400, 'invalid_request'])
    assert.equal(body.message, 'The query parameter "language" must be a language tag such as "en" or "zh-Hant".')
  })

  test('shows the cache and the memory of the others; an agent that stores nothing has no ttl', async () => {
    const shown = async (id: string) => {
      const { cache, memory, tools } = await agent(id)
      return [cache.ttl, memory.strategy, memory.maxTokens, tools.mode]
    }
    assert.deepEqual(await shown('contact_insight'), [3600, 'sliding_window', 2000, 'allowlist'])
    assert.deepEqual(await shown('network_action'), [43200, 'declarative', 4000, 'allowlist'])
    assert.deepEqual(await shown('chat_conversation'), [null, 'sliding_window', null, 'denylist'])
    assert.deepEqual(await shown('zoo'), [0, 'declarative', 1000, 'none'])
  })

  test('names the field and the file of a broken definition, and no path of the machine', async () => {
    const broken = await agent('broken')
    assert.deepEqual([broken.version, broken.name], ['unknown', 'Broken one'])
    assert.match(String(broken.statusError), /^prompt\.systemTemplate: the file "gone\.mustache" does not exist/)
    const unreadable = await agent('unreadable')
    assert.match(String(unreadable.statusError), /^agent\.json is not valid JSON/)
    assert.deepEqual([unreadable.name, unreadable.memory], ['unreadable', { strategy: null, maxTokens: null }])
    assert.ok(!JSON.stringify(await list()).includes(own.path))
  })

  test('says which setting is missing if the model of an agent has no provider', async () => {
    const { statusError, version } = await agent('elsewhere')
    assert.match(String(statusError), /ANTHROPIC_API_KEY/)
    assert.equal(version, '1.0.0')
    for (const [path, body] of [
      ['/v1/agent/run', { agentId: 'elsewhere', input: { text: 'hi' } }],
      ['/v1/agent/chat', { agentId: 'elsewhere', input: 'hi' }],
    ] as const) {
      const refused = await server.call('POST', path, { body })
      assert.deepEqual([refused.status, refused.body.code], [503, 'agent_unavailable'], path)
      assert.match(refused.body.message as string, /ANTHROPIC_API_KEY/)
    }
  })
})

test('a chat with a broken agent is refused with the reason; other agents go on', async () => {
  const refused = await server.call('POST', '/v1/agent/chat', { body: { agentId: 'broken', input: 'hi' } })
  assert.deepEqual([refused.status, refused.body.code], [503, 'agent_unavailable'])
  assert.match(refused.body.message as string, /gone\.mustache/)
  const frames = await server.chatToEnd('ann', { agentId: 'zoo', input: 'hi' })
  assert.ok(frames.length > 0)
})

test('a definition that is added, changed, broken and removed while the server runs is noticed', async () => {
  const becomes = (id: string, shown: (entry: Json | undefined) => boolean) =>
    until(`the change of ${id}`, async () =>
      shown((await list()).find((entry) => entry.id === id)) ? true : undefined,
    )
  own.agent('late', { name: 'First' })
  await becomes('late', (entry) => entry?.name === 'First' && entry.status === 'available')
  own.agent('late', { name: 'Second' })
  await becomes('late', (entry) => entry?.name === 'Second')
  own.write('late/user.mustache', '{{#open}}')
  await becomes('late', (entry) => entry?.status === 'unavailable' && /user\.mustache/.test(entry.statusError))
  own.remove('late')
  await becomes('late', (entry) => entry === undefined)
})
