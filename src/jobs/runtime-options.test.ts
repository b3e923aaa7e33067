import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readRuntimeOptions } from './runtime-options.ts'

test('without options a job asks no questions, requires replies, and would wait twenty minutes', () => {
  const { mode, requireReply, replyTimeoutMs } = readRuntimeOptions({})

  assert.deepEqual([mode, requireReply, replyTimeoutMs], ['auto', true, 1_200_000])
})

test('the older names of the timeout are used if the new one is missing', () => {
  assert.equal(readRuntimeOptions({ wait_timeout_sec: 5 }).replyTimeoutMs, 5000)
  assert.equal(readRuntimeOptions({ wait_timeout_sec: 5, session_timeout_sec: 7 }).replyTimeoutMs, 7000)
})

test('what is not on the list, or has a wrong value, is refused', () => {
  assert.throws(() => readRuntimeOptions({ excution_mode: 'auto' }), { code: 'runtime_option_unknown' })
  for (const wrong of [
    { debug: 'yes' },
    { session_timeout_sec: 0 },
    { session_timeout_sec: 1.5 },
    { session_timeout_sec: '5' },
  ]) {
    assert.throws(() => readRuntimeOptions(wrong), { code: 'runtime_option_invalid' }, JSON.stringify(wrong))
  }
})
