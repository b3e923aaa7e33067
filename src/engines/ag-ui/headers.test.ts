import assert from 'node:assert/strict'
import { test } from 'node:test'
import { headersOf, headersProblem, withoutSecrets } from './headers.ts'

test('a value comes from the environment, and a missing variable is named', () => {
  const headers = { Authorization: { env: 'KEY' }, 'X-Plain': 'yes' }
  assert.deepEqual(headersOf(headers, { KEY: 'Bearer abc\n' }), { authorization: 'Bearer abc', 'x-plain': 'yes' })
  assert.equal(headersProblem(headers, { KEY: 'abc' }), null)
  assert.equal(headersProblem(undefined, {}), null)
  for (const environment of [{}, { KEY: ' ' }]) assert.match(headersProblem(headers, environment) ?? '', /KEY.*not set/)
})

test('a value that cannot be sent is refused without showing it', () => {
  const problem = headersProblem({ A: { env: 'KEY' } }, { KEY: 'se\ncret' }) ?? ''
  assert.match(problem, /the environment variable KEY has characters/)
  assert.doesNotMatch(problem, /cret/)
})

test('the text of the remote side is shown in one short line without secrets', () => {
  const headers = { authorization: 'Bearer sk-123456' }
  assert.equal(withoutSecrets('token sk-123456\n is bad', headers), 'token [redacted] is bad')
  assert.equal(withoutSecrets('you sent Bearer sk-123456', headers), 'you sent [redacted]')
  assert.equal(withoutSecrets('x'.repeat(1000), headers).length, 501)
})
