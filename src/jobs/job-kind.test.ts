// What the job kind decides for a run; the chat kind beside it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kindOf } from '../app/run-kinds.ts'
import type { JobSpec, RunSpec } from '../journal/event.ts'
import { newRunState, type RunState } from '../journal/run-state.ts'
import { chatKind } from '../runs/chat-kind.ts'
import { jobKind } from './job-kind.ts'

const job: JobSpec = {
  source: 'installed',
  mode: 'auto',
  requireReply: true,
  replyTimeoutMs: 1000,
  input: {},
  parameter: {},
  options: {},
}
const chat: RunSpec = { agentId: 'a', engine: 'e', model: 'm/m', systemPrompt: 'Be brief.' }
const skill = { id: 's', name: 'S', text: 'Follow me.', files: [{ path: 'a.md', size: 1, sha256: '1' }] }
const stateOf = (spec: RunSpec, changes: Partial<RunState> = {}): RunState => ({
  ...newRunState(),
  accepted: { owner: 'ada', family: 'jobs', conversationId: null, userMessageId: null, input: 'x', spec },
  ...changes,
})
const audiences = ['jobs', 'interactive_jobs', 'jobs_with_files', 'jobs_with_skill_files'] as const

test('a run with a job in its spec is a job, every other one a chat', () => {
  assert.deepEqual([kindOf({ ...chat, job }), kindOf(chat)], [jobKind, chatKind])
  assert.equal(chatKind.systemPrompt(chat), 'Be brief.')
  assert.match(jobKind.systemPrompt({ ...chat, job, skill }) ?? '', /Follow me\./)
})

test('tools for jobs are offered to those jobs that can use them, and never to a chat', () => {
  const offered = (state: RunState) => audiences.filter((audience) => jobKind.isAudience(audience, state))
  const files = [{ path: 'in.txt', size: 1 }]

  assert.deepEqual(offered(stateOf({ ...chat, job })), ['jobs'])
  assert.deepEqual(offered(stateOf({ ...chat, job: { ...job, mode: 'interactive' } })), ['jobs', 'interactive_jobs'])
  assert.deepEqual(offered(stateOf({ ...chat, job, skill }, { files })), [
    'jobs',
    'jobs_with_files',
    'jobs_with_skill_files',
  ])
  assert.ok(audiences.every((audience) => !chatKind.isAudience(audience, stateOf(chat, { files }))))
})

test('a job that does not insist on a reply waits for its timeout only', () => {
  const timeout = (requireReply: boolean) => jobKind.replyTimeoutMs({ ...chat, job: { ...job, requireReply } })

  assert.deepEqual([timeout(false), timeout(true), chatKind.replyTimeoutMs(chat)], [1000, undefined, undefined])
})

test('the end of a job keeps the key of a reusable result, and drops the package that was uploaded for it', () => {
  const ended = (changes: Partial<JobSpec>, status: 'succeeded' | 'failed') =>
    jobKind.changesAtEnd('r', stateOf({ ...chat, job: { ...job, ...changes } }, { cacheKey: 'k', ended: { status } }))
  const temporary = { source: 'temp_upload' } as const

  assert.deepEqual(ended({}, 'succeeded'), { cacheKey: 'k' })
  assert.deepEqual(ended({}, 'failed'), {})
  assert.deepEqual(ended(temporary, 'failed'), { dropBlobs: 'r:package:' })
  assert.deepEqual(ended({ ...temporary, options: { debug_keep_temp: true } }, 'failed'), {})
})
