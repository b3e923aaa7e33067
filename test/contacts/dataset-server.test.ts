// The dataset on a running server, and the shipped agents over it: the demo model answers
// from computed facts, and a real model is given a prompt that fits.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { contactDataset, sendDataset } from '../../scripts/contact-dataset.ts'
import { contactSignals } from '../../src/contacts/signals.ts'
import { dayOf } from '../../src/contacts/utc-days.ts'
import { estimateTokens } from '../../src/kit/token-estimate.ts'
import { type Answer, type Json, says, startTestServer, type TestServer } from '../support/test-server.ts'

const user = 'user_123'
const at = Date.now()
const dataset = contactDataset({ owner: user, at, contacts: 40 })
let server: TestServer

before(async () => {
  server = await startTestServer({ POLYLOG_MODEL: 'demo/demo' })
  await sendDataset(dataset, server.polylog.baseUrl, user)
})

after(() => server.close())

async function run(body: Json): Promise<Json> {
  const answer = await server.call('POST', '/v1/agent/run', { body: { userId: user, ...body } })
  assert.equal(answer.status, 200, answer.text)
  return answer.body
}

/** Over HTTP conversations of the past are events, so the interactions are the same. */
function signalsOf(contactId: string) {
  const of = <Row extends { contactId: string }>(rows: readonly Row[]) =>
    rows.filter((row) => row.contactId === contactId)
  const contact = dataset.contacts.find(({ id }) => id === contactId)
  assert.ok(contact !== undefined)
  const records = { events: of(dataset.events), todos: of(dataset.todos), conversations: of(dataset.conversations) }
  // The server sets the time at which a contact or an event without a date was added.
  const events = records.events.map((event) => ({ ...event, createdAt: at }))
  return contactSignals({ ...records, events, contact: { ...contact, createdAt: at } }, at)
}

test('the demo model answers network_action with the most urgent contacts of the dataset', async (context) => {
  const body = { agentId: 'network_action', input: { userId: user, limit: 10 } }
  const first = await run(body)
  if (dayOf(Date.now()) !== dayOf(at)) return context.skip('the UTC day ended during the test')
  const expected = dataset.contacts
    .map(({ id }) => ({ id, score: signalsOf(id).priorityScore }))
    .sort((left, right) => right.score - left.score || (left.id < right.id ? -1 : 1))
    .slice(0, 10)

  assert.deepEqual(
    first.data.followUps.map(({ contactId }: Json) => contactId),
    expected.map(({ id }) => id),
  )
  assert.equal(first.data.computed, true)
  assert.match(first.data.synthesis, /共有 40 位联系人/)
  assert.equal((await run(body)).cached, true)
  await server.call('POST', '/v1/contacts/contact_0040/facts', { body: { content: 'x' }, user })
  assert.equal((await run(body)).cached, true, 'facts are not read by this agent')
  await server.call('PATCH', '/v1/contacts/contact_0040', { body: { company: 'Somewhere' }, user })
  assert.equal((await run(body)).cached, false)
})

test('the demo model answers contact_insight and brief_generate for every contact, with computed fields', async (context) => {
  for (const { id, name } of dataset.contacts) {
    const { data } = await run({ agentId: 'contact_insight', input: { userId: user, contactId: id } })
    const brief = await run({
      agentId: 'archive_brief',
      operation: 'brief_generate',
      input: { userId: user, contactId: id, language: 'en' },
    })
    assert.equal(data.computed, true)
    assert.ok(data.profileSummary.startsWith(name))
    assert.match(brief.data.content, /^## Background\n[^]*\n## Latest interactions\n[^]*\n## Topics to raise\n/)
    if (dayOf(Date.now()) !== dayOf(at)) return context.skip('the UTC day ended during the test')
    const { priorityScore, reasonTags, relationshipRiskLevel } = signalsOf(id)
    assert.deepEqual(
      [data.priorityScore, data.reasonTags, data.relationshipRiskLevel],
      [priorityScore, reasonTags, relationshipRiskLevel],
    )
  }
})

test('the command fills a server, and changes nothing if it is repeated', async () => {
  const script = new URL('../../scripts/contact-dataset.ts', import.meta.url).pathname
  const command = [script, '--url', server.polylog.baseUrl, '--user', 'somebody', '--contacts', '3']
  const fill = async () => (await promisify(execFile)(process.execPath, command)).stdout
  const stored = async () => {
    const { body } = await server.call('GET', '/v1/contacts', { user: 'somebody' })
    const events = body.items.map(({ id }: Json) =>
      server.call('GET', `/v1/contacts/${id}/events`, { user: 'somebody' }),
    )
    return [body.total, ...(await Promise.all<Answer>(events)).map((answer) => answer.body.total)]
  }

  assert.match(await fill(), /^3 contacts of somebody were created/)
  const before = await stored()
  assert.equal(before[0], 3)
  assert.match(await fill(), /^0 contacts of somebody were created .*; 3 existed already/)
  assert.deepEqual(await stored(), before)
})

test('a model is given a network prompt that fits a context of 16,000 tokens, with whole entries', async () => {
  await server.polylog.stop()
  server = await server.restart({ POLYLOG_MODEL: 'openai/fake' })
  const answer = { followUps: [], recommendations: [], synthesis: 'Fine.', nextActions: [] }
  await server.provider.script([says(JSON.stringify(answer))], 'omittedCandidates')
  const { data } = await run({
    agentId: 'network_action',
    input: { userId: user, limit: 100 },
    options: { useCache: false },
  })
  const [asked] = await server.asked('omittedCandidates')

  assert.equal(data.synthesis, 'Fine.')
  assert.equal(data.computed, undefined)
  const messages = asked?.body.messages as { role: string; content: string }[]
  assert.ok(messages.reduce((sum, { content }) => sum + estimateTokens(content), 0) < 16_000)
  const text = messages.at(-1)?.content ?? ''
  const given = JSON.parse(text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1)) as Json
  assert.ok(given.candidates.length > 5)
  assert.equal(given.totals.contacts, 40)
})
