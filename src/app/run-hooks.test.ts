// Hooks of the configuration: called after the end, in bounded time, and never in the way.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../test/support/manual-clock.ts'
import type { RunRow } from '../stores/run-store.ts'
import type { FinishedRun, RunHooks } from './define-config.ts'
import { RunHookCaller, type RunHookParts } from './run-hooks.ts'

const row = {
  id: 'run-1',
  owner: 'ada',
  family: 'agent',
  agentId: 'chat_conversation',
  conversationId: '~01J~trip',
  status: 'canceled',
  lastSeq: 9,
  createdAt: 1000,
  endedAt: 2000,
  error: null,
} as RunRow

function rig(hooks: RunHooks, readRun: RunHookParts['store']['readRun'] = async () => row) {
  const clock = manualClock()
  const errors: string[] = []
  const log = { error: (details: object) => void errors.push((details as { err: Error }).err.message) }
  const store = { readRun, readEvents: async () => ({ events: [], next: null, unreadable: 0 }) as never }
  return { caller: new RunHookCaller(hooks, { store, clock, log }), clock, errors }
}

test('a hook gets the run as clients know it', async () => {
  const seen: FinishedRun[] = []
  const { caller } = rig({ onRunEnded: (run) => void seen.push(run) })
  caller.runEnded('run-1')
  await caller.settled()

  assert.deepEqual(seen, [
    {
      id: 'run-1',
      status: 'cancelled',
      userId: 'ada',
      conversationId: 'trip',
      agentId: 'chat_conversation',
      family: 'agent',
      createdAt: new Date(1000),
      endedAt: new Date(2000),
      error: null,
      output: null,
    },
  ])
})

test('a hook that throws, and a store that fails, are logged', async () => {
  const throwing = rig({
    onRunEnded() {
      throw new Error('no')
    },
  })
  throwing.caller.runEnded('run-1')
  await throwing.caller.settled()
  const failing = rig({ onRunEnded: () => {} }, async () => await Promise.reject(new Error('the disk is gone')))
  failing.caller.runEnded('run-1')
  await failing.caller.settled()

  assert.deepEqual([throwing.errors, failing.errors], [['no'], ['the disk is gone']])
})

test('a hook that hangs is given up after half a minute, and a stop does not wait for it that long', async () => {
  let called = () => {}
  const isCalled = new Promise<void>((resolve) => (called = resolve))
  const { caller, clock, errors } = rig({
    async onRunEnded() {
      called()
      await new Promise(() => {})
    },
  })
  caller.runEnded('run-1')
  await isCalled
  let isSettled = false
  const settled = caller.settled().then(() => (isSettled = true))
  await clock.advance(4_999)
  assert.equal(isSettled, false)
  await clock.advance(1)
  await settled
  assert.deepEqual(errors, [])
  await clock.advance(25_000)
  await caller.settled()

  assert.deepEqual(errors, ['it took longer than 30 s'])
  assert.equal(clock.pending, 0)
})

test('without a hook, and for a run that was deleted meanwhile, nothing happens', async () => {
  let reads = 0
  const none = rig({}, async () => {
    reads += 1
    return row
  })
  none.caller.runEnded('run-1')
  const deleted = rig({ onRunEnded: () => assert.fail('called') }, async () => undefined)
  deleted.caller.runEnded('run-1')
  await deleted.caller.settled()

  assert.deepEqual([reads, deleted.errors], [0, []])
})
