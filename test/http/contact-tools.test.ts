// The contact tools in a chat: offered to chats and not to jobs, and a fact is stored only
// after a person said yes.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { errandResult, sharedJobServer } from '../support/jobs.ts'
import { calls, endOf, type Json, says, someone, toolState, toolStatuses } from '../support/test-server.ts'

const { server } = sharedJobServer()

const toolNames = (request: Json | undefined) =>
  ((request?.body.tools ?? []) as Json[]).map(({ function: tool }) => String(tool.name))

test('a chat finds a contact and stores a fact about it after the user confirmed it', async () => {
  const user = someone()
  await server.call('POST', '/v1/contacts', { user, body: { id: 'contact_456', name: '张伟' } })
  await server.provider.script(
    [
      calls(['search_contacts', { query: '张' }], ['get_contact', { contactId: 'contact_456' }]),
      calls(['add_contact_fact', { contactId: 'contact_456', contactName: '张伟', content: 'likes tea' }]),
      says('Stored.'),
    ],
    user,
  )

  const stream = await server.chat(user, { input: user, conversationId: 'conv_123' })
  const { json } = await stream.waitFor(toolState('awaiting_input'))
  const before = await server.call('GET', '/v1/contacts/contact_456/facts', { user })
  await server.call('POST', `/v1/tool-confirmations/${json.data.confirmationId}/confirm`, { user })
  await stream.ended()

  assert.equal(json.data.message, 'Add a fact about “张伟” (contact contact_456): “likes tea”')
  assert.equal(before.body.total, 0)
  assert.equal(endOf(stream.frames).status, 'succeeded')
  assert.equal(toolStatuses(stream.frames, 'get_contact').at(-1), 'succeeded')
  const { body } = await server.call('GET', '/v1/contacts/contact_456/facts', { user })
  assert.deepEqual(
    (body.items as Json[]).map(({ content, sourceConversationId }) => [content, sourceConversationId]),
    [['likes tea', 'conv_123']],
  )
})

test('a job is not offered the contacts of its user', async () => {
  const user = someone()
  await server.chatToEnd(user, { input: `chat ${user}` })
  await server.provider.script([says(errandResult)], `job ${user}`)
  await server.call('POST', '/v1/jobs', { user, body: { skill_id: 'errand', input: { text: `job ${user}` } } })

  const [chat] = await server.askedTimes(`chat ${user}`, 1)
  const [job] = await server.askedTimes(`job ${user}`, 1)

  assert.ok(toolNames(chat as Json).includes('search_contacts'))
  assert.ok(toolNames(job as Json).includes('search_notes'))
  assert.deepEqual(
    toolNames(job as Json).filter((name) => name.includes('contact')),
    [],
  )
})
