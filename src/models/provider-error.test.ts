import assert from 'node:assert/strict'
import { test } from 'node:test'
import { incompleteError, parseRetryAfter, reportedError, statusError, unreachableError } from './provider-error.ts'

const secret = 'sk-very-secret-key'
const identity = { provider: 'openai', keyVariable: 'OPENAI_API_KEY', secrets: [secret] }
const fail = (status: number, body: unknown, retryAfter?: string) =>
  statusError(identity, { status, body: typeof body === 'string' ? body : JSON.stringify(body), retryAfter, now: 0 })

test('the time to wait is read as seconds and as a date', () => {
  assert.equal(parseRetryAfter('2', 0), 2_000)
  assert.equal(parseRetryAfter('0.25', 0), 250)
  assert.equal(parseRetryAfter('Thu, 01 Jan 1970 00:00:10 GMT', 4_000), 6_000)
  assert.equal(parseRetryAfter('Thu, 01 Jan 1970 00:00:10 GMT', 40_000), 0)
  for (const nonsense of [undefined, '', 'soon', '-3']) assert.equal(parseRetryAfter(nonsense, 0), undefined)
})

test('a provider that is down may say when to come back', () => {
  assert.equal(fail(503, {}, '4').details?.['retryAfterMs'], 4_000)
})

test('the key is never shown, wherever the provider quotes it', () => {
  const nearTheCut = `${'x'.repeat(490)}${secret}`
  for (const error of [
    fail(400, { error: { message: `Bad key ${secret}` } }),
    fail(400, { error: { message: nearTheCut } }),
    fail(500, `<p>${secret}</p>`),
    fail(401, { error: { message: secret } }),
    reportedError(identity, { message: `Key ${secret} is tired` }),
    reportedError(identity, secret),
  ]) {
    assert.doesNotMatch(JSON.stringify(error.toValue()), /sk-very/)
  }
})

test('the words of the provider are found in the usual places', () => {
  for (const body of [
    { error: { message: 'Oops' } },
    { error: 'Oops' },
    { message: 'Oops' },
    { detail: 'Oops' },
    'Oops',
  ]) {
    assert.match(fail(400, body).message, /It said: Oops$/)
  }
})

test('a prompt that is too long has its own code, however the provider says it', () => {
  const said = [
    'prompt is too long: 209353 tokens > 199999 maximum',
    'input length and `max_tokens` exceed context limit: 199759 + 8192 > 200000, decrease input length or `max_tokens`',
    'Your input exceeds the context window of this model. Please adjust your input and try again.',
    "This model's maximum context length is 4097 tokens. However, your messages resulted in 4294 tokens.",
    'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
    'Input length 131393 exceeds the maximum allowed input length of 131040 tokens.',
    'the request exceeds the available context size, try increasing it',
  ]
  for (const message of said) {
    assert.equal(fail(400, { error: { message } }).code, 'model_context_exceeded', message)
    assert.equal(reportedError(identity, { message }).code, 'model_context_exceeded', message)
    assert.equal(fail(400, { error: { message } }).retryable, false)
  }
  assert.equal(fail(400, { error: { code: 'context_length_exceeded', message: 'No' } }).code, 'model_context_exceeded')
  assert.equal(fail(413, 'too large').code, 'model_context_exceeded')
  assert.equal(fail(429, { error: { message: 'input is too long, please wait' } }).code, 'model_rate_limited')
  assert.equal(fail(400, { error: { message: 'context is required' } }).code, 'model_error')
})

test('a filtered request has its own code', () => {
  assert.equal(fail(400, { error: { code: 'content_filter', message: 'No' } }).code, 'model_content_filtered')
})

test('an error in a stream may be retried only where the provider calls it passing', () => {
  assert.equal(reportedError(identity, { message: 'x', type: 'server_error' }).retryable, true)
  assert.equal(reportedError(identity, { message: 'x', code: 502 }).retryable, true)
  assert.equal(reportedError(identity, { message: 'x', type: 'invalid_request_error' }).retryable, false)
  assert.equal(reportedError(identity, { message: 'x' }).retryable, false)
})

test('all of it is an upstream failure', () => {
  for (const error of [
    fail(400, ''),
    fail(500, ''),
    unreachableError(identity, new Error('x')),
    incompleteError(identity, 'x'),
  ]) {
    assert.equal(error.kind, 'upstream')
  }
})
