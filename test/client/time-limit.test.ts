// How long the client waits for an answer, with timers that pass when the test says so.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTransport } from '../../client/src/transport.ts'
import { clientTimers } from '../support/client-timers.ts'

/** A client whose only request is answered when the test says so. */
function clientOfSlowServer() {
  const timers = clientTimers()
  const { promise, resolve, reject } = Promise.withResolvers<Response>()
  const { json } = createTransport({
    ...timers,
    requestRetries: 0,
    fetch: (_url, request) => {
      request?.signal?.addEventListener('abort', () => reject(new Error('aborted')))
      return promise
    },
  })
  return { json, timers, answer: () => resolve(Response.json({ title: 'Beans' })) }
}

const attempt = { method: 'POST', path: '/v1/agent/run', body: {} }

test('a request that runs an agent is not given up while the server works', async () => {
  const { json, timers, answer } = clientOfSlowServer()
  const answered = json({ ...attempt, runsAgent: true })
  for (let minute = 0; minute < 10; minute++) timers.sleep(60_000)
  answer()
  assert.deepEqual(await answered, { title: 'Beans' })
})

test('any other request is given up when nothing has come for 45 s', async () => {
  const { json, timers } = clientOfSlowServer()
  const answered = json(attempt)
  timers.sleep(45_000)
  await assert.rejects(answered, { code: 'network_error', retryable: true })
})
