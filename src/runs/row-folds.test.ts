// Which rows each event changes: the run, its messages, its questions.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { kindOf } from '../app/run-kinds.ts'
import { JournalBuilder } from '../../test/scenarios/journal-builder.ts'
import type { RunEvent } from '../journal/event.ts'
import { applyEvent, newRunState } from '../journal/run-state.ts'
import { type RowChanges, foldRows } from './row-folds.ts'

/** The changes of each event by itself. */
function changesOf(journal: JournalBuilder, edit: (event: RunEvent) => RunEvent = (event) => event): RowChanges[] {
  const state = newRunState()
  return journal.events.map((original) => {
    const event = edit(original)
    const changes: RowChanges = {}
    applyEvent(state, event)
    foldRows('run-1', state, event, changes, kindOf)
    return changes
  })
}

const lastOf = (journal: JournalBuilder, edit?: (event: RunEvent) => RunEvent) =>
  changesOf(journal, edit).at(-1) as RowChanges
const asking = () =>
  new JournalBuilder()
    .accepted('now')
    .running()
    .asks(1, 'm1')
    .calls('a', 'send', { to: 'bob' }, { effect: 'unsafe' })
    .stepDone(1, 'm1', 1)
    .confirmation('i1', 'a', { to: 'bob' })

describe('the run', () => {
  it('starts once: a later attempt keeps the time of the first', () => {
    const journal = new JournalBuilder().accepted('now').running()
    const startedAt = journal.events.at(-1)?.at

    assert.deepEqual(lastOf(journal).run, { status: 'running', attempt: 1, wakeAt: null, startedAt, engine: 'local' })
    const again = changesOf(journal.restarted())
    assert.equal(again.at(-2)?.run?.status, 'queued')
    assert.equal('startedAt' in (again.at(-2)?.run ?? {}), false)
    assert.equal('startedAt' in (again.at(-1)?.run ?? {}), false)
  })

  it('that waits for a person gives its lease back and wakes at the next deadline', () => {
    const journal = asking().confirmation('i2', 'a', {}, { deadlineAt: 5 }).parks()

    const { run } = lastOf(journal)
    assert.deepEqual([run?.status, run?.wakeAt, run?.release], ['waiting_user', 5, true])
    const closed = lastOf(asking().confirmation('i2', 'a', {}, { deadlineAt: 5 }).resolved('i2', 'closed').parks())
    assert.notEqual(closed.run?.wakeAt, 5)
    const running = lastOf(asking().parks().resolved('i1', 'confirmed').unparks())
    assert.deepEqual([running.run?.wakeAt, running.run?.release], [null, undefined])
  })

  it('ends with its status, its error and its lease given back, and brings its conversation to the front', () => {
    const failed = new JournalBuilder().accepted('now').running().fails('internal_error', 'It broke.')
    const at = failed.events.at(-1)?.at
    const changes = lastOf(failed)

    assert.deepEqual(changes.run, {
      status: 'failed',
      endedAt: at,
      error: { code: 'internal_error', message: 'It broke.' },
      wakeAt: null,
      release: true,
    })
    assert.equal(changes.touchConversationAt, at)
    assert.equal(changes.messageStates, undefined)
    const succeeded = lastOf(new JournalBuilder().accepted('now').running().answers(1, 'm1', 'Hi').succeeds('m1', 'Hi'))
    assert.equal(succeeded.run?.error, null)
  })
})

describe('the messages', () => {
  it('hold the answer of a step with its calls, and each result with the arguments that ran', () => {
    const journal = asking()
      .parks()
      .resolved('i1', 'confirmed', { input: { to: 'eve' } })
      .unparks()
    const all = changesOf(journal.starts('a', { to: 'eve' }).returns('a', 'sent'))

    const messages = all.flatMap((changes) => changes.messages ?? [])
    assert.deepEqual(
      messages.map(({ id, role, content, state, toolCallId }) => [id, role, content, state, toolCallId]),
      [
        ['m1', 'assistant', '', 'active', null],
        ['result-a', 'tool', 'sent', 'active', 'a'],
      ],
    )
    assert.deepEqual(messages[0]?.metadata, {
      runId: 'run-1',
      toolCalls: [{ callId: 'a', name: 'send', input: { to: 'bob' } }],
    })
    assert.deepEqual(messages[1]?.metadata, {
      runId: 'run-1',
      toolName: 'send',
      outcome: 'succeeded',
      input: { to: 'eve' },
      summary: 'Done.',
    })
    for (const { runId, conversationId, parentId } of messages)
      assert.deepEqual([runId, conversationId, parentId], ['run-1', 'conversation-1', 'message-user'])
  })

  it('hold reasoning only where there was some, and no calls where there were none', () => {
    const plain = lastOf(new JournalBuilder().accepted('now').running().answers(1, 'm1', 'Hi'))
    assert.deepEqual(plain.messages?.[0]?.metadata, { runId: 'run-1' })
    const journal = new JournalBuilder().accepted('now').running().asks(1, 'm1').thinks('t', 'Hm.').says('m1', 'Hi')
    const thought = lastOf(journal.message('m1', 'Hi', 1).stepDone(1, 'm1'))
    assert.deepEqual(thought.messages?.[0]?.metadata, { runId: 'run-1', reasoning: 'Hm.' })
    assert.equal(thought.touchConversationAt, journal.events.at(-1)?.at)
  })

  it('hold text that broke off or was superseded as abandoned, and an active message only once: with its step', () => {
    const journal = new JournalBuilder().accepted('now').running().asks(1, 'm1').says('m1', 'Half')
    const interrupted = lastOf(journal.message('m1', 'Half', 1, 'superseded'))
    assert.deepEqual(
      interrupted.messages?.map(({ id, content, state }) => [id, content, state]),
      [['m1', 'Half', 'abandoned']],
    )
    const active = lastOf(new JournalBuilder().accepted('now').running().asks(1, 'm1').message('m1', 'Hi', 1))
    assert.equal(active.messages, undefined)
  })

  it('are none without a conversation', () => {
    const alone = (event: RunEvent): RunEvent =>
      event.type === 'run.accepted' ? { ...event, data: { ...event.data, conversationId: null } } : event
    const all = changesOf(
      new JournalBuilder().accepted('now').running().answers(1, 'm1', 'Hi').succeeds('m1', 'Hi'),
      alone,
    )

    assert.deepEqual(
      all.flatMap((changes) => changes.messages ?? []),
      [],
    )
  })

  it('of an answer asked for again become active when it succeeds, and those that it replaces are superseded then', () => {
    const again =
      (spec: object) =>
      (event: RunEvent): RunEvent =>
        event.type === 'run.accepted'
          ? { ...event, data: { ...event.data, spec: { ...event.data.spec, supersedes: ['old'], ...spec } } }
          : event
    const journal = asking().parks().resolved('i1', 'confirmed').unparks().starts('a', {}).returns('a', 'sent')
    journal.answers(2, 'm2', 'Done.')

    const rows = changesOf(journal, again({})).flatMap((changes) => changes.messages ?? [])
    assert.deepEqual([...new Set(rows.map(({ state }) => state))], ['superseded'])
    const ended = journal.succeeds('m2', 'Done.')
    assert.deepEqual(lastOf(ended, again({})).messageStates, [
      { id: 'old', state: 'superseded' },
      { id: 'm1', state: 'active' },
      { id: 'm2', state: 'active' },
      { id: 'result-a', state: 'active' },
    ])
    const shadow = lastOf(ended, again({ variant: 'shadow' }))
    assert.deepEqual(shadow.messageStates, [{ id: 'old', state: 'superseded' }])
    const failed = asking().resolved('i1', 'closed').done('a', 'cancelled', 'x').fails('internal_error', 'x')
    assert.equal(lastOf(failed, again({})).messageStates, undefined)
  })

  it('of an answer that was rejected never become active, also in an answer asked for again', () => {
    const spec = { supersedes: ['old'], outputSchema: { type: 'object' } }
    const again = (event: RunEvent): RunEvent =>
      event.type === 'run.accepted'
        ? { ...event, data: { ...event.data, spec: { ...event.data.spec, ...spec } } }
        : event
    const journal = new JournalBuilder().accepted('now').running().answers(1, 'm1', 'Hi')
    journal.add('output.rejected', { step: 1, messageId: 'm1', errors: ['it is not JSON'] })
    assert.deepEqual(lastOf(journal, again).messageStates, [{ id: 'm1', state: 'abandoned' }])

    const ended = journal.answers(2, 'm2', '{}').succeeds('m2', '{}')
    assert.deepEqual(lastOf(ended, again).messageStates, [
      { id: 'old', state: 'superseded' },
      { id: 'm2', state: 'active' },
    ])
  })
})

describe('the questions', () => {
  it('are stored as they were asked', () => {
    const [row] = lastOf(asking()).newInteractions ?? []

    assert.deepEqual(
      [
        row?.id,
        row?.number,
        row?.runId,
        row?.conversationId,
        row?.owner,
        row?.kind,
        row?.callId,
        row?.toolName,
        row?.status,
        row?.atDeadline,
      ],
      ['i1', 1, 'run-1', 'conversation-1', 'ada', 'confirmation', 'a', 'send', 'pending', 'expire'],
    )
    assert.deepEqual(
      [row?.input, row?.response, row?.result, row?.decidedAt, row?.outcome],
      [{ to: 'bob' }, null, null, null, null],
    )
    const bare = new JournalBuilder().accepted('now').running().answers(1, 'm1', 'Which?')
    bare.add('input.required', { interactionId: 'q', number: 1, kind: 'question', prompt: 'Which?' })
    const [question] = lastOf(bare).newInteractions ?? []
    assert.deepEqual(
      [question?.callId, question?.toolName, question?.input, question?.deadlineAt],
      [null, null, null, null],
    )
  })

  it('get the result of a confirmed call, and are closed only by an ending: a decision that was made stays', () => {
    const confirmed = asking().parks().resolved('i1', 'confirmed')
    assert.equal(lastOf(confirmed).interactionUpdates, undefined, 'the decision is in the row already')
    const done = lastOf(confirmed.unparks().starts('a', {}).returns('a', 'sent'))
    const at = confirmed.events.at(-1)?.at
    assert.deepEqual(done.interactionUpdates, [{ id: 'i1', result: 'sent', error: null, executedAt: at, at }])

    const rejected = lastOf(asking().parks().resolved('i1', 'rejected').unparks().done('a', 'denied', 'No.'))
    assert.equal(rejected.interactionUpdates, undefined)
    const closed = asking().resolved('i1', 'closed')
    assert.deepEqual(lastOf(closed).interactionUpdates, [
      { id: 'i1', closePending: true, at: closed.events.at(-1)?.at },
    ])
  })

  it('get the reason if their run ended before a confirmed call ran, and no time of execution', () => {
    const error = { code: 'tool_cancelled', message: 'The run ended.' }
    const read = asking().parks().resolved('i1', 'confirmed').done('a', 'cancelled', 'Cancelled.', { error })
    const at = read.events.at(-1)?.at
    assert.deepEqual(lastOf(read).interactionUpdates, [{ id: 'i1', result: null, error, at }])

    const notRead = asking().parks().resolved('i1', 'closed').done('a', 'cancelled', 'Cancelled.', { error })
    assert.deepEqual(lastOf(notRead).interactionUpdates, [{ id: 'i1', errorIfConfirmed: error, at }])
  })

  it('get a long output as its beginning, marked as cut', () => {
    const confirmed = asking().parks().resolved('i1', 'confirmed').unparks().starts('a', {})
    const cut = confirmed.returns('a', 'sen', { truncated: true, fullLength: 4, outputRef: 'o1' })

    const result = { truncated: true, fullLength: 4, preview: 'sen', ref: 'o1' }
    assert.deepEqual(lastOf(cut).interactionUpdates?.[0]?.result, result)
  })
})
