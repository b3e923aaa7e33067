// The specification of the agent module's HTTP API, POST /v1/agent/run: its cURL commands word
// for word against a fresh server with the demo model, the fields of each answer, and what
// happens to the data behind them.

import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { schemaComplaints } from '../../src/kit/json-schema.ts'
import { type FakeProvider, startFakeProvider } from '../support/fake-provider.ts'
import { type Polylog, startPolylog } from '../support/polylog.ts'
import { type Answer, callServer, type Json, messagesOf, says } from '../support/test-server.ts'

const noCurl = spawnSync('curl', ['--version']).error === undefined ? false : 'there is no curl on this machine'

const user = 'user_123'

const curls = {
  title_summary: `curl -X POST "http://localhost:3000/v1/agent/run" \\
  -H "Content-Type: application/json" \\
  -d '{
    "agentId": "title_summary",
    "input": {
      "conversationId": "conv_123",
      "messages": [
        { "role": "user", "content": "今天天气真好" },
        { "role": "assistant", "content": "是的，很适合出去散步" },
        { "role": "user", "content": "有什么建议的路线吗？" }
      ],
      "language": "zh"
    },
    "options": {
      "useCache": true
    },
    "conversationId": "conv_123"
  }'`,
  contact_insight: `curl -X POST "http://localhost:3000/v1/agent/run" \\
  -H "Content-Type: application/json" \\
  -d '{
    "agentId": "contact_insight",
    "input": {
      "userId": "user_123",
      "contactId": "contact_456",
      "depth": "standard"
    },
    "options": {
      "useCache": true
    },
    "conversationId": "insight_contact_456"
  }'`,
  archive_extract: `curl -X POST "http://localhost:3000/v1/agent/run" \\
  -H "Content-Type: application/json" \\
  -d '{
    "agentId": "archive_brief",
    "operation": "archive_extract",
    "input": {
      "userId": "user_123",
      "conversationId": "conv_123"
    },
    "options": {
      "useCache": true
    },
    "conversationId": "conv_123"
  }'`,
  brief_generate: `curl -X POST "http://localhost:3000/v1/agent/run" \\
  -H "Content-Type: application/json" \\
  -d '{
    "agentId": "archive_brief",
    "operation": "brief_generate",
    "input": {
      "userId": "user_123",
      "contactId": "contact_456"
    },
    "options": {
      "useCache": true
    },
    "conversationId": "brief_contact_456"
  }'`,
  network_action: `curl -X POST "http://localhost:3000/v1/agent/run" \\
  -H "Content-Type: application/json" \\
  -d '{
    "agentId": "network_action",
    "input": {
      "userId": "user_123",
      "limit": 10
    },
    "options": {
      "useCache": true
    },
    "conversationId": "network_user_123"
  }'`,
}

type Name = keyof typeof curls

const names = Object.keys(curls) as Name[]

async function create(polylog: Polylog, path: string, body: Json): Promise<Json> {
  const answer = await callServer(polylog.baseUrl, 'POST', path, { user, body })
  assert.ok(answer.status < 300, answer.text)
  return answer.body
}

/** The conversation and the contact that the commands name, and a second contact. */
async function createEntities(polylog: Polylog): Promise<void> {
  await callServer(polylog.baseUrl, 'POST', '/v1/agent/chat', {
    user,
    body: { input: '帮我想一句给老朋友的新年祝福', conversationId: 'conv_123' },
  })
  await create(polylog, '/v1/contacts', { id: 'contact_456', name: '张三', company: '远景科技', tags: ['投资'] })
  await create(polylog, '/v1/contacts', { id: 'contact_789', name: '李四', company: '远景科技' })
  await create(polylog, '/v1/contacts/contact_456/facts', { content: '喜欢爬山' })
  await create(polylog, '/v1/contacts/contact_456/todos', { content: '发送合同' })
  await create(polylog, '/v1/contacts/contact_456/events', { title: '项目启动会', eventDate: '2026-01-15T09:00:00Z' })
}

async function runCurl(polylog: Polylog, command: string): Promise<Json> {
  const { stdout } = await promisify(execFile)('sh', [
    '-c',
    command.replace('curl ', 'curl -sS ').replace('http://localhost:3000', polylog.baseUrl),
  ])
  return JSON.parse(stdout) as Json
}

describe('the commands of the specification, on a fresh server', { skip: noCurl }, () => {
  let polylog: Polylog
  const first = new Map<Name, Json>()

  before(async () => {
    polylog = await startPolylog()
    await createEntities(polylog)
    for (const name of names) first.set(name, await runCurl(polylog, curls[name]))
  })
  after(() => polylog?.dispose())

  for (const name of names) {
    test(`${name}: answers with the envelope of the specification, and from the cache the second time`, async () => {
      const one = first.get(name) as Json
      const operation = name === 'archive_extract' || name === 'brief_generate' ? name : null
      assert.deepEqual(Object.keys(one), [
        'runId',
        'agentId',
        'operation',
        'cached',
        'snapshotId',
        'generatedAt',
        'generatedAtMs',
        'data',
      ])
      assert.deepEqual(
        [one.agentId, one.operation, one.cached],
        [operation === null ? name : 'archive_brief', operation, false],
      )
      for (const id of [one.runId, one.snapshotId]) assert.match(id, /^\w{10,}$/)
      assert.equal(new Date(one.generatedAtMs).toISOString(), one.generatedAt)

      const two = await runCurl(polylog, curls[name])
      const { metadata, ...same } = two.data
      const { metadata: before, ...data } = one.data
      assert.deepEqual({ ...two, data: same }, { ...one, cached: true, data })
      if (name === 'network_action') assert.deepEqual([before.cached, metadata.cached], [false, true])
    })

    test(`${name}: answers with data that fits the schema in the list of agents, and says that it was computed`, async () => {
      const { agents } = (await callServer(polylog.baseUrl, 'GET', '/v1/agent/list')).body
      const one = first.get(name) as Json
      const agent = (agents as Json[]).find(({ id }) => id === one.agentId) as Json
      const described =
        one.operation === null ? agent : (agent.operations as Json[]).find(({ id }) => id === one.operation)
      assert.deepEqual(schemaComplaints(described?.outputSchema as Json, one.data), [])
      assert.equal(one.data.computed, true)
    })
  }

  const texts = (list: unknown[]) => list.every((text) => typeof text === 'string' && text !== '')

  test('title_summary: a title and a summary', () => {
    const { title, summary } = (first.get('title_summary') as Json).data
    assert.ok(texts([title, summary]))
    assert.ok([...(title as string)].length <= 50)
  })

  test('contact_insight: every field of the specification, and citations of records that exist', async () => {
    const { data, generatedAtMs } = first.get('contact_insight') as Json
    assert.ok(texts([data.profileSummary, data.sourceHash, ...(data.openingLines as string[])]))
    assert.equal(data.generatedAt, generatedAtMs)
    for (const { type, description, strength } of data.relationshipSignals as Json[]) {
      assert.ok(texts([type, description]))
      assert.match(strength, /^(weak|moderate|strong)$/)
    }
    const { body: context } = await callServer(polylog.baseUrl, 'GET', '/v1/contacts/contact_456/context', { user })
    const records = new Set([...context.events, ...context.facts, ...context.todos].map(({ id }: Json) => id as string))
    const cited = (data.citations as Json[]).map(({ source }) => source as string)
    assert.ok(cited.length > 0)
    assert.deepEqual(
      cited.filter((source) => !records.has(source)),
      [],
    )
    for (const list of ['relationshipSignals', 'opportunities', 'risks', 'suggestedActions']) {
      assert.ok(Array.isArray(data[list]), list)
      for (const { citations } of data[list] as Json[]) assert.ok(citations.length > 0, list)
    }
  })

  test('archive_extract: the operation, the conversation as it was named, and the payload', () => {
    const { data } = first.get('archive_extract') as Json
    assert.deepEqual([data.operation, data.id, data.status], ['archive_extract', 'conv_123', 'completed'])
    assert.ok(texts([data.summary]))
    for (const list of ['keyPoints', 'decisions', 'actionItems', 'participants'])
      assert.ok(Array.isArray(data.payload[list]) && texts(data.payload[list]), list)
  })

  test('brief_generate: Markdown about the contact, in the field names of the specification', () => {
    const { data, generatedAt, snapshotId } = first.get('brief_generate') as Json
    assert.deepEqual(
      [data.operation, data.contact_id, data.generated_at, data.id],
      ['brief_generate', 'contact_456', generatedAt, snapshotId],
    )
    assert.match(data.content, /^## /m)
    assert.match(data.content, /张三/)
    assert.match(data.source_hash, /^[0-9a-f]{64}$/)
  })

  test('network_action: follow-ups and recommendations name contacts that exist', () => {
    const { data, generatedAtMs } = first.get('network_action') as Json
    const known = ['contact_456', 'contact_789']
    for (const { contactId, contactName, reason, priority, suggestedAction } of data.followUps as Json[]) {
      assert.ok(known.includes(contactId))
      assert.ok(texts([contactName, reason, suggestedAction]))
      assert.match(priority, /^(low|medium|high)$/)
    }
    for (const { contacts, confidence } of data.recommendations as Json[]) {
      assert.ok((contacts as string[]).every((id) => known.includes(id)))
      assert.ok(confidence >= 0 && confidence <= 1)
    }
    assert.ok(texts([data.synthesis]))
    assert.equal(data.metadata.generatedAt, generatedAtMs)
    assert.match(data.metadata.sourceHash, /^[0-9a-f]{64}$/)
  })

  test('a record that is added makes every result about it outdated, and no other', async () => {
    await create(polylog, '/v1/contacts/contact_456/facts', { content: '搬到了上海' })
    const cached: Partial<Record<Name, boolean>> = {}
    for (const name of names) cached[name] = (await runCurl(polylog, curls[name])).cached as boolean

    assert.deepEqual(cached, {
      title_summary: true,
      contact_insight: false,
      archive_extract: true,
      brief_generate: false,
      network_action: true,
    })
    const { body } = await callServer(polylog.baseUrl, 'GET', '/v1/agent/snapshots?agentId=contact_insight', { user })
    const [latest] = body as unknown as Json[]
    const diff = await callServer(polylog.baseUrl, 'GET', `/v1/agent/snapshots/${latest?.snapshotId}/diff`, { user })
    assert.equal(diff.status, 200)
    assert.ok(diff.body.changes.length > 0)
  })

  test('a contact, conversation or agent that does not exist is 404; missing input is 400 and names the field', async () => {
    const run = (body: Json) => callServer(polylog.baseUrl, 'POST', '/v1/agent/run', { body })
    const refusals: [body: Json, status: number, code: string, field?: string][] = [
      [{ agentId: 'contact_insight', input: { userId: user, contactId: 'nobody' } }, 404, 'contact_not_found'],
      [
        { agentId: 'archive_brief', operation: 'brief_generate', input: { userId: 'other', contactId: 'contact_456' } },
        404,
        'contact_not_found',
      ],
      [
        { agentId: 'archive_brief', operation: 'archive_extract', input: { userId: user, conversationId: 'none' } },
        404,
        'conversation_not_found',
      ],
      [{ agentId: 'weather', input: {} }, 404, 'agent_not_found'],
      [{ agentId: 'contact_insight', input: { userId: user } }, 400, 'invalid_input', 'input.contactId'],
      [{ agentId: 'contact_insight', input: { contactId: 'contact_456' } }, 400, 'invalid_input', 'input.userId'],
      [
        { agentId: 'contact_insight', input: { userId: user, contactId: 'contact_456', depth: 'very' } },
        400,
        'invalid_input',
        'input.depth',
      ],
      [{ agentId: 'title_summary', input: { messages: [] } }, 400, 'invalid_input'],
      [{ agentId: 'network_action', input: { userId: user, limit: 0 } }, 400, 'invalid_input', 'input.limit'],
      [{ agentId: 'archive_brief', input: { userId: user } }, 400, 'agent_operation_invalid', 'operation'],
      [{ agentId: 'archive_brief', operation: 'burn', input: {} }, 400, 'agent_operation_invalid', 'operation'],
    ]
    for (const [body, status, code, field] of refusals) {
      const answer: Answer = await run(body)
      assert.deepEqual([answer.status, answer.body.code], [status, code], answer.text)
      if (field !== undefined) assert.equal(answer.body.details.field, field)
    }
  })

  test('a user without contacts gets an explanation and one next action', async () => {
    const input = { userId: 'lonely', limit: 3 }
    const { body } = await callServer(polylog.baseUrl, 'POST', '/v1/agent/run', {
      body: { agentId: 'network_action', input },
    })
    assert.deepEqual([body.data.followUps, body.data.recommendations], [[], []])
    assert.equal(body.data.nextActions.length, 1)
    assert.ok(texts([body.data.synthesis]))
  })
})

describe('the shipped agents with a model', () => {
  let polylog: Polylog
  let provider: FakeProvider

  before(async () => {
    provider = await startFakeProvider()
    polylog = await startPolylog({
      OPENAI_API_KEY: 'test-key',
      OPENAI_BASE_URL: provider.baseUrl,
      POLYLOG_MODEL: 'openai/fake',
      POLYLOG_PROVIDER_RETRIES: '0',
    })
    await createEntities(polylog)
  })
  after(async () => {
    await polylog?.dispose()
    await provider?.stop()
  })

  const run = (body: Json) => callServer(polylog.baseUrl, 'POST', '/v1/agent/run', { body: { userId: user, ...body } })
  const repair = 'cannot be used as the final answer'

  const insight = (source: string): Json => ({
    profileSummary: '老朋友',
    relationshipSignals: [{ type: 'trend', description: '最近互动多', strength: 'strong', citations: [source] }],
    opportunities: [],
    risks: [],
    suggestedActions: [],
    openingLines: ['好久不见'],
    citations: [{ source, type: 'fact', reference: '一个事实' }],
  })

  test('a citation of a record that does not exist is refused, first to the model and then to the caller', async () => {
    const { body: facts } = await callServer(polylog.baseUrl, 'GET', '/v1/contacts/contact_456/facts', { user })
    const fact = (facts.items ?? facts)[0].id as string
    const body = { agentId: 'contact_insight', input: { userId: user, contactId: 'contact_456' } }
    await provider.reset()
    await provider.script([says(JSON.stringify(insight('invented')))], '张三')
    await provider.script([says(JSON.stringify(insight(fact)))], repair)

    const repaired = await run(body)
    assert.equal(repaired.status, 200, repaired.text)
    assert.equal(repaired.body.data.citations[0].source, fact)
    assert.equal(repaired.body.data.computed, undefined, 'it was written by a model')
    for (const field of ['confidence', 'priorityScore', 'reasonTags', 'relationshipRiskLevel'])
      assert.ok(field in repaired.body.data, `${field} is computed by code`)
    const [, second] = await provider.requests()
    assert.match(messagesOf(second).at(-1)?.content, /cites "invented", which is not the id of a record/)

    await provider.script([says(JSON.stringify(insight('invented')))], '张三')
    await provider.script([says(JSON.stringify(insight('also invented')))], repair)
    const refused = await run({ ...body, options: { forceRefresh: true } })
    assert.deepEqual([refused.status, refused.body.code], [502, 'output_validation_failed'])
    assert.match(refused.body.details.errors[0], /"also invented"/)
  })

  test('a statement without a citation is refused', async () => {
    const { relationshipSignals, ...rest } = insight('x')
    const bare = { ...rest, relationshipSignals: [{ ...relationshipSignals[0], citations: undefined }], citations: [] }
    await provider.reset()
    await provider.script([says(JSON.stringify(bare))], '张三')
    await provider.script([says(JSON.stringify(bare))], repair)
    const body = { agentId: 'contact_insight', input: { userId: user, contactId: 'contact_456', depth: 'deep' } }
    const refused = await run(body)
    assert.deepEqual([refused.status, refused.body.code], [502, 'output_validation_failed'])
  })

  test('title_summary becomes the title and the summary of the conversation, if it is the caller’s', async () => {
    const title = { title: '新年祝福', summary: '为老朋友写祝福。' }
    await provider.reset()
    await provider.script([says(JSON.stringify(title)), says(JSON.stringify(title))], 'conv_123')
    const conversation = async () =>
      (await callServer(polylog.baseUrl, 'GET', '/v1/conversations/conv_123', { user })).body
    const before = await conversation()
    const body = { agentId: 'title_summary', input: { conversationId: 'conv_123' } }

    assert.equal((await run({ ...body, userId: 'stranger' })).status, 404, 'a stranger has no such conversation')
    assert.deepEqual(await conversation(), before)
    const { body: result } = await run(body)
    assert.deepEqual([result.data.title, result.data.summary], [title.title, title.summary])
    const after = await conversation()
    assert.deepEqual([after.title, after.summary], [title.title, title.summary])
    assert.equal(after.updatedAtMs, before.updatedAtMs, 'the conversation was not used')

    // A stored result is not written again: the user may have chosen another title since.
    await callServer(polylog.baseUrl, 'PATCH', '/v1/conversations/conv_123', { user, body: { title: 'Mine' } })
    const again = await run(body)
    assert.deepEqual([again.body.cached, (await conversation()).title], [true, 'Mine'])
  })

  test('messages of the input win over the stored ones, and belong to any name', async () => {
    const title = JSON.stringify({ title: 'T', summary: 'S.' })
    await provider.reset()
    await provider.script([says(title)], 'only in the request')
    const messages = [{ role: 'user', content: 'only in the request' }]
    const { status, body } = await run({ agentId: 'title_summary', input: { conversationId: 'unknown', messages } })
    assert.deepEqual([status, body.data.title], [200, 'T'])
    const [asked] = await provider.requests()
    assert.doesNotMatch(JSON.stringify(asked?.body.messages), /祝福/)
    assert.equal((await callServer(polylog.baseUrl, 'GET', '/v1/conversations/unknown', { user })).status, 404)
  })
})

describe('docs/one-shot-agents.md', { skip: noCurl }, () => {
  const page = readFileSync(new URL('../../docs/one-shot-agents.md', import.meta.url), 'utf8')
  const commands = [...page.matchAll(/```bash\n(.*?)```/gs)].map((match) => match[1] ?? '')

  test('shows commands that work', async () => {
    const polylog = await startPolylog()
    try {
      assert.ok(commands.length >= 4)
      for (const command of commands) {
        const wanted = command.replaceAll('http://localhost:3000', polylog.baseUrl).replace('curl ', 'curl -f ')
        const { stdout } = await promisify(execFile)('sh', ['-c', wanted])
        if (command.includes('text/event-stream')) assert.match(stdout, /event: agent\.end/)
        else assert.doesNotMatch(stdout, /"code"/, command)
      }
      const { body } = await callServer(polylog.baseUrl, 'GET', '/v1/agent/snapshots', { user })
      assert.equal((body as unknown as Json[]).length, 2)
    } finally {
      await polylog.dispose()
    }
  })
})
