// Chats whose answer has to fit a schema.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { agentFolder } from '../support/agent-folder.ts'
import { calls, endOf, type Json, messagesOf, named, says, sharedTestServer, someone } from '../support/test-server.ts'

const folder = agentFolder()
after(() => folder.dispose())
folder.write(
  'models.json',
  JSON.stringify({ asOf: '2026-11-16', models: { 'openai/able': { structuredOutput: true } } }),
)
const server = sharedTestServer({
  POLYLOG_MODEL_TABLE: join(folder.path, 'models.json'),
  POLYLOG_AGENTS_DIR: join(folder.path, 'agents'),
})

const schema = {
  type: 'object',
  properties: { name: { type: 'string' }, age: { type: 'integer' } },
  required: ['name', 'age'],
  additionalProperties: false,
}
const output = { schema }
const ann = { name: 'Ann', age: 31 }
/** The request for a correction contains this text; it does not repeat the question. */
const repairMarker = 'cannot be used as the final answer'
const annText = JSON.stringify(ann)

folder.agent('agents/oracle', { id: 'oracle', model: 'openai/able' })
folder.agent(
  'agents/registrar',
  { id: 'registrar', answerSchema: 'answer.json' },
  { 'answer.json': JSON.stringify(schema), 'system.mustache': 'Be kind. {{language}}' },
)

test('the answer streams as text and is delivered as a value in agent.end', async () => {
  const user = someone()
  await server.provider.script([says('{"name":"Ann",', '"age":31}')], user)
  const frames = await server.chatToEnd(user, { input: user, output })

  const end = endOf(frames)
  assert.deepEqual([end.status, end.output, end.data], ['succeeded', annText, ann])
  assert.equal(frames.filter(named('agent.delta')).length, 2)
  const [asked] = await server.asked(user)
  const told = messagesOf(asked)
    .filter(({ role }) => role === 'system')
    .map(({ content }) => content as string)
  assert.ok(told.some((content) => content.includes(JSON.stringify(schema))))
  assert.equal('response_format' in (asked?.body ?? {}), false, 'the table does not say that this model can do it')
})

test('a chat turn as a whole has the value beside the text', async () => {
  const user = someone()
  await server.provider.script([says(`Here it is: ${annText}`)], user)
  const request = { agentId: 'chat_conversation', userId: user, input: { message: user, output } }
  const { status, body } = await server.call('POST', '/v1/agent/run', { body: request })

  assert.equal(status, 200)
  assert.deepEqual([body.data.output, body.data.content], [ann, `Here it is: ${annText}`])
})

test('JSON in a code fence and between words is extracted', async () => {
  for (const text of ['```json\n' + annText + '\n```', `Here it is: ${annText} I hope that helps.`]) {
    const user = someone()
    await server.provider.script([says(text)], user)

    const end = endOf(await server.chatToEnd(user, { input: user, output }))

    assert.deepEqual([end.output, end.data], [annText, ann])
  }
})

test('an answer that does not fit is repaired once; the history of the conversation has only the good one', async () => {
  const user = someone()
  const conversationId = `c-${user}`
  await server.provider.script([says('{"name":"Ann"}'), says('Yes.')], user)
  await server.provider.script([says(annText)], repairMarker)
  const end = endOf(await server.chatToEnd(user, { input: user, conversationId, output }))

  assert.deepEqual(end.data, ann)
  const requests = await server.provider.requests()
  const repair = requests.find((request) => JSON.stringify(request.body).includes(repairMarker))
  assert.match(JSON.stringify(repair?.body), /required property 'age'/)
  const stored = (await server.call('GET', `/v1/conversations/${conversationId}/messages`, { user })).body
  const texts = (stored as unknown as Json[]).map(({ role, content }) => [role, content])
  assert.deepEqual(texts, [
    ['user', user],
    ['assistant', annText],
  ])

  await server.chatToEnd(user, { input: `${user} again`, conversationId })
  const next = messagesOf((await server.asked(`${user} again`))[0])
  assert.deepEqual(
    next.filter(({ role }) => role === 'assistant').map(({ content }) => content),
    [annText],
  )
})

test('an answer that is wrong twice fails the run and says what is wrong', async () => {
  const user = someone()
  await server.provider.script([says('no')], user)
  await server.provider.script([says('{"name":1,"age":31}')], repairMarker)
  const end = endOf(await server.chatToEnd(user, { input: user, output }))

  assert.deepEqual([end.status, end.error.code, 'data' in end], ['failed', 'output_validation_failed', false])
  assert.match(end.error.details.errors[0], /name/)
})

test('an answer that is cut off twice fails the run and says that the limit of tokens was reached', async () => {
  const user = someone()
  const half = [{ text: '{"name":"An' }, { finish: 'length' }]
  await server.provider.script([half], user)
  await server.provider.script([half], repairMarker)
  const end = endOf(await server.chatToEnd(user, { input: user, output }))

  assert.deepEqual([end.status, end.error.code], ['failed', 'output_validation_failed'])
  assert.match(end.error.message, /cut off.*limit of tokens/)
})

test('tools may be called before the answer', async () => {
  const user = someone()
  await server.provider.script([calls(['current_time', {}]), says(annText)], user)

  assert.deepEqual(endOf(await server.chatToEnd(user, { input: user, output })).data, ann)
})

test('a model that can is asked in the provider’s own mode', async () => {
  const user = someone()
  await server.provider.script([says(annText)], user)
  await server.chatToEnd(user, { input: user, output, model: 'openai/able' })

  const [asked] = await server.asked(user)
  assert.deepEqual(asked?.body['response_format'], {
    type: 'json_schema',
    json_schema: { name: 'answer', schema, strict: true },
  })
})

test('a chat without a schema has no data, even if its answer is JSON', async () => {
  const user = someone()
  await server.provider.script([says(annText)], user)

  assert.equal('data' in endOf(await server.chatToEnd(user, user)), false)
})

test('a schema that cannot be used is refused before a run starts', async () => {
  const user = someone()
  for (const bad of [{ type: 'person' }, { type: 'string', pattern: '(a' }]) {
    const body = { input: user, output: { schema: bad } }
    const answer = await server.call('POST', '/v1/agent/chat', { user, body })
    assert.deepEqual([answer.status, answer.body.code], [400, 'output_schema_invalid'], JSON.stringify(bad))
    assert.match(answer.body.message, /^output\.schema cannot be used: /)
  }
  const listed = await server.call('GET', '/v1/agent/runs', { user })
  assert.deepEqual(listed.body, [])
})

test('an agent has a schema for its chats in its definition; that of a request replaces it', async () => {
  const user = someone()
  await server.provider.script([says(annText), says('{"ok":true}')], user)
  const body = { input: user, agentId: 'registrar' }
  const own = { schema: { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] } }

  assert.deepEqual(endOf(await server.chatToEnd(user, body)).data, ann)
  assert.deepEqual(endOf(await server.chatToEnd(user, { ...body, output: own })).data, { ok: true })
})

test('a one-shot agent is asked in the provider’s own mode by the same rule', async () => {
  const user = someone()
  await server.provider.script([says('{"answer":"42"}')], user)
  const asked = { agentId: 'oracle', input: { text: user }, userId: user }
  const answer = await server.call('POST', '/v1/agent/run', { user, body: asked })

  assert.deepEqual([answer.status, answer.body.data], [200, { answer: '42' }], answer.text)
  const [request] = await server.asked(user)
  assert.match(JSON.stringify(request?.body['response_format']), /^\{"type":"json_schema"/)
})
