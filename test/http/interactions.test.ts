// POST /v1/interactions/{id}/reply: answers a question by its id, whichever run asks it.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { asks, errandResult, sharedJobServer, startJob, statusAndCode } from '../support/jobs.ts'
import { calls, type Json, says, someone } from '../support/test-server.ts'

const { server } = sharedJobServer()

async function waiting(user: string): Promise<Json[]> {
  return (await server.call('GET', '/v1/interactions?status=pending', { user })).body as unknown as Json[]
}

const reply = (user: string, id: string, response: unknown) =>
  server.call('POST', `/v1/interactions/${id}/reply`, { user, body: { response } })

describe('a reply by the id of the question', () => {
  test('answers a job, once, and only for its owner', async () => {
    const user = someone()
    await server.provider.script([asks({ question: 'Which?', options: ['a', 'b'] }), says(errandResult)], user)
    const job = await startJob(server, 'jobs', user)
    await job.reaches('waiting_user')
    const [question] = await waiting(user)
    assert.deepEqual([question?.kind, question?.payload.options], ['question', ['a', 'b']])

    assert.deepEqual(statusAndCode(await reply(someone('eve'), question?.id, 'a')), [404, 'interaction_not_found'])
    const answered = await reply(user, question?.id, 'b')
    assert.deepEqual([answered.status, answered.body.id, answered.body.status], [200, question?.id, 'replied'])
    await job.reaches('succeeded')
    assert.deepEqual(statusAndCode(await reply(user, question?.id, 'a')), [409, 'interaction_stale'])
    assert.match(JSON.stringify((await server.asked(user)).at(-1)?.body.messages), /\\"b\\"|"b"/)
  })

  test('names the right route for a tool call that waits for consent', async () => {
    const user = someone()
    await server.provider.script([calls(['remember_note', { text: 'milk' }]), says('Fine.')], user)
    const stream = await server.chat(user, `note ${user}`)
    await stream.waitFor(({ json }) => json.event === 'tool.state' && json.data.status === 'awaiting_input')
    const [confirmation] = await waiting(user)
    const refused = await reply(user, confirmation?.id, 'yes')
    assert.deepEqual(statusAndCode(refused), [400, 'invalid_request'])
    assert.match(refused.body.message, /tool-confirmations/)
    stream.leave()
  })
})
