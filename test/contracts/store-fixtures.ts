// Rows and events for the store contract: complete, boring, and different only in
// what a test is about.

import type { RunEvent } from '../../src/journal/event.ts'
import type { EventReader } from '../../src/journal/event-pages.ts'
import type { OpenedStore, OpenStore } from './open-store.ts'
import type { InteractionRow } from '../../src/stores/interaction-store.ts'
import type { MessageRow } from '../../src/stores/message-store.ts'
import type { AcceptInput, RunRow, RunStore, RunWrite } from '../../src/stores/run-store.ts'

export const owner = 'alice'
export const start = 1_790_000_000_000

/** Far enough in the future that no lease of a test expires by itself. */
export const farAway = start + 1_000_000_000

export function delta(seq: number, text = `t${seq}`): RunEvent {
  return { seq, at: start + seq, attempt: 1, type: 'text.delta', data: { messageId: 'm', text } }
}

export function deltas(from: number, count: number): RunEvent[] {
  return Array.from({ length: count }, (_, index) => delta(from + index))
}

export function acceptInput(
  id: string,
  changes: Partial<AcceptInput> & { runOwner?: string; createdAt?: number } = {},
): AcceptInput {
  const { runOwner = owner, createdAt = start, ...rest } = changes
  return {
    run: { id, owner: runOwner, family: 'agent', agentId: 'default', conversationId: null, createdAt },
    conversation: null,
    expectBehind: null,
    messages: [],
    events: [delta(1)],
    idempotency: null,
    queueMax: 1000,
    claim: null,
    ...rest,
  }
}

/** A run in a conversation, which is created when `expect` says so. */
export function inConversation(
  id: string,
  conversationId: string,
  expect: 'absent' | 'present',
  changes: Partial<AcceptInput> & {
    runOwner?: string
    createdAt?: number
    title?: string | null
    name?: string | null
    alias?: string
    unnamed?: true
  } = {},
): AcceptInput {
  const { title = null, name = null, alias, unnamed, ...rest } = changes
  const names = { name, ...(alias === undefined ? {} : { alias }), ...(unnamed === undefined ? {} : { unnamed }) }
  const input = acceptInput(id, { conversation: { expect, title, ...names }, ...rest })
  return { ...input, run: { ...input.run, conversationId } }
}

/** The clock of the store begins at `start`, so this lease runs out at `farAway`. */
export const claimNow = { node: 'node-a', leaseMs: farAway - start }

/** An accepted and claimed run without a conversation. */
export async function claimedRun(store: Pick<RunStore, 'accept'>, id: string): Promise<RunRow> {
  return (await store.accept(acceptInput(id, { claim: claimNow }))).run
}

export function write(run: RunRow, afterSeq: number, changes: Partial<RunWrite> = {}): RunWrite {
  return { runId: run.id, epoch: run.epoch, afterSeq, events: [], durable: false, ...changes }
}

export async function endRun(
  store: Pick<RunStore, 'append'>,
  run: RunRow,
  afterSeq: number,
  endedAt = start + 1000,
): Promise<void> {
  await store.append(write(run, afterSeq, { durable: true, run: { status: 'succeeded', endedAt, release: true } }))
}

export function message(id: string, conversationId: string, changes: Partial<MessageRow> = {}): MessageRow {
  return {
    id,
    conversationId,
    runId: null,
    parentId: null,
    role: 'user',
    content: `content of ${id}`,
    state: 'active',
    toolCallId: null,
    metadata: {},
    createdAt: start,
    ...changes,
  }
}

export function interaction(id: string, runId: string, changes: Partial<InteractionRow> = {}): InteractionRow {
  return {
    id,
    number: 1,
    runId,
    owner,
    conversationId: null,
    kind: 'confirmation',
    callId: 'call-1',
    toolName: 'send_mail',
    prompt: 'Send it?',
    input: { to: 'bob' },
    outcome: null,
    status: 'pending',
    response: null,
    reason: null,
    decidedBy: null,
    decidedAt: null,
    result: null,
    error: null,
    executedAt: null,
    deadlineAt: null,
    atDeadline: null,
    reply: null,
    createdAt: start,
    updatedAt: start,
    ...changes,
  }
}

/** Every event of a run, read in pages of `limit`. */
export async function readAll(
  store: EventReader,
  runId: string,
  limit = 100,
): Promise<{ events: RunEvent[]; skipped: number }> {
  const events: RunEvent[] = []
  let skipped = 0
  let after = 0
  for (;;) {
    const page = await store.readEvents(runId, after, limit)
    events.push(...page.events)
    skipped += page.skipped
    after = page.nextAfter
    if (page.atHead) return { events, skipped }
  }
}

export async function seqs(store: EventReader, runId: string): Promise<number[]> {
  return (await readAll(store, runId)).events.map((event) => event.seq)
}

/** A test body with an empty store, which is cleaned up whatever happens. */
export function withStore<Part>(open: OpenStore<Part>) {
  return (body: (opened: OpenedStore<Part>) => Promise<void>) => async (): Promise<void> => {
    const opened = await open()
    try {
      await body(opened)
    } finally {
      await opened.cleanup()
    }
  }
}

/** The same questions to the store as it is, and to what is found after reopening it. */
export async function* beforeAndAfter<Part>(store: Part, reopen: OpenedStore<Part>['reopen']): AsyncGenerator<Part> {
  yield store
  yield await reopen()
}
