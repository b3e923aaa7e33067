import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RunRow } from '../stores/run-store.ts'
import { RunOverview, type StuckReason } from './run-overview.ts'

const now = 1_000_000
const row = (changes: Partial<RunRow>) =>
  ({
    conversationId: null,
    status: 'running',
    leaseOwner: 'n',
    wakeAt: null,
    cancel: null,
    createdAt: now,
    ...changes,
  }) as RunRow

test('a run may be stuck for these reasons, and no others', async () => {
  const cancel = (at: number) => ({ by: 'a', reason: null, at })
  const cases: [Partial<RunRow>, StuckReason | null][] = [
    [{}, null],
    [{ leaseOwner: null }, 'no_node'],
    [{ cancel: cancel(now - 1000) }, null],
    [{ cancel: cancel(now - 60_000) }, 'cancel_pending'],
    [{ status: 'queued', leaseOwner: null, createdAt: now - 10_000 }, null],
    [{ status: 'queued', leaseOwner: null, createdAt: now - 90_000 }, 'queued_long'],
    [{ status: 'queued', leaseOwner: null, createdAt: now - 90_000, wakeAt: now + 1 }, null],
    [{ conversationId: 'c' }, null],
    [{ conversationId: 'c', status: 'queued', leaseOwner: null, createdAt: now - 90_000 }, null],
    [{ status: 'waiting_user', leaseOwner: null, wakeAt: now + 5 }, null],
    [{ status: 'waiting_user', leaseOwner: null, wakeAt: now - 90_000 }, 'deadline_passed'],
  ]
  const rows = cases.map(([changes]) => row(changes))
  const store = {
    listOpenRuns: async () => rows,
    countRuns: async () => ({}),
    readLastSeqs: async () => new Map<string, number>(),
    listNodes: async () => [],
  }
  const found = await new RunOverview(store, { now: () => now }, 'node-1').openRuns(100)
  assert.deepEqual(
    found.map(({ stuck }) => stuck),
    cases.map(([, reason]) => reason),
  )
})
