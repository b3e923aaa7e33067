// Error answers of the server, as the client reports them.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { errorOf } from '../../client/src/error.ts'

const answer = (status: number, body: string) => errorOf(new Response(body, { status }))

test('the sentence and the code of an error are those of the server, whatever the family of the route', async () => {
  const common = await answer(404, JSON.stringify({ code: 'run_not_found', message: 'There is no run.' }))
  assert.deepEqual([common.code, common.message, common.status], ['run_not_found', 'There is no run.', 404])
  const chat = await answer(409, JSON.stringify({ code: 'comparison_voted', error: 'This comparison has a vote.' }))
  assert.deepEqual([chat.code, chat.message], ['comparison_voted', 'This comparison has a vote.'])
  const session = await answer(400, JSON.stringify({ error: 'invalid', message: 'The message is empty.' }))
  assert.equal(session.message, 'The message is empty.')
  const proxy = await answer(502, '<h1>Bad gateway</h1>')
  assert.deepEqual([proxy.code, proxy.retryable], ['unexpected_response', true])
})
