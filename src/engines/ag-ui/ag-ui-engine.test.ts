// The engine in the real run machinery, against an AG-UI agent in its own process: the events of the
// agent become the journal of a run, and each request has the whole conversation and the agent's state.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { endOf, sharedAgUiRig, shownReasoning, shownText } from '../../../test/support/ag-ui-rig.ts'
import { call, message, result } from '../../../test/support/fake-ag-ui.ts'
import { ended, eventsOf } from '../../../test/support/run-helpers.ts'
import { countingIds, openRig } from '../../../test/support/run-rig.ts'

const { fake, engineAt, rigWith, asked, journalOf } = sharedAgUiRig()

test('text, reasoning, calls, state and usage of a remote run become the journal of a run', async (context) => {
  const events = await journalOf(context, [
    { type: 'STEP_STARTED', stepName: 'plan' },
    { type: 'REASONING_START', messageId: 'r' },
    { type: 'REASONING_MESSAGE_START', messageId: 'r', role: 'reasoning' },
    { type: 'REASONING_MESSAGE_CONTENT', messageId: 'r', delta: 'Hm.' },
    { type: 'REASONING_MESSAGE_END', messageId: 'r' },
    { type: 'REASONING_END', messageId: 'r' },
    { type: 'STEP_FINISHED', stepName: 'plan' },
    { type: 'STATE_SNAPSHOT', snapshot: { topic: 'shoes', list: [1] } },
    ...message('m1', 'Let me ', 'look.'),
    ...call('c1', 'search', { q: 'shoes' }),
    { type: 'ACTIVITY_SNAPSHOT', messageId: 'a', activityType: 'PLAN', content: { at: 1 } },
    { type: 'CUSTOM', name: 'anything', value: 1 },
    { type: 'RAW', event: {} },
    result('c1', '{"hits":2}'),
    { type: 'STATE_DELTA', delta: [{ op: 'add', path: '/list/-', value: 2 }] },
    ...message('m2', 'Two hits.'),
    {
      type: 'RUN_FINISHED',
      outcome: { type: 'success' },
      usage: [
        { inputTokens: 10, outputTokens: 4 },
        { inputTokens: 5, outputTokens: 1, reasoningTokens: 1, cachedInputTokens: 3, cacheWriteInputTokens: 2 },
      ],
    },
  ])

  assert.equal(endOf(events)?.status, 'succeeded')
  assert.equal(endOf(events)?.output, 'Two hits.')
  assert.equal(shownText(events), 'Let me look.Two hits.')
  assert.equal(shownReasoning(events), 'Hm.')
  const [called] = eventsOf(events, 'tool.called')
  assert.deepEqual([called?.data.name, called?.data.input], ['search', { q: 'shoes' }])
  assert.equal(called?.data.source, 'engine:ag-ui:helper')
  assert.deepEqual(eventsOf(events, 'tool.done')[0]?.data.output, { hits: 2 })
  const patches = eventsOf(events, 'context.patch').filter(({ data }) => data.patch['conversationId'] === undefined)
  assert.deepEqual(Object.assign({}, ...patches.map(({ data }) => data.patch)), { topic: 'shoes', list: [1, 2] })
  assert.ok(patches.every(({ data }) => data.layer === 'session'))
  assert.deepEqual(eventsOf(events, 'step.done').at(-1)?.data.usage, {
    inputTokens: 15,
    cachedTokens: 3,
    cacheWriteTokens: 2,
    outputTokens: 5,
    reasoningTokens: 1,
  })
})

test('chunks, several messages, old thinking events and the work of subagents are understood', async (context) => {
  const events = await journalOf(context, [
    { raw: 'data: {"type":"THINKING_START"}\n\ndata: {"type":"THINKING_TEXT_MESSAGE_START"}\n\n' },
    { raw: 'data: {"type":"THINKING_TEXT_MESSAGE_CONTENT","delta":"Old."}\r\n\r\n: ping\n\n' },
    { type: 'TEXT_MESSAGE_CHUNK', messageId: 'a', role: 'assistant', delta: 'One' },
    { type: 'TEXT_MESSAGE_CHUNK', delta: '.' },
    { type: 'TEXT_MESSAGE_CHUNK', messageId: 'b', role: 'assistant', delta: 'Two.' },
    { type: 'TEXT_MESSAGE_CHUNK', messageId: 'u', role: 'user', delta: 'not said by the agent' },
    { type: 'SUBAGENT_STARTED', subagentRunId: 's', name: 'writer' },
    { type: 'TEXT_MESSAGE_CHUNK', messageId: 'c', role: 'assistant', delta: 'Draft.', subagentRunId: 's' },
    { type: 'SUBAGENT_FINISHED', subagentRunId: 's' },
    { type: 'TOOL_CALL_CHUNK', toolCallId: 'c1', toolCallName: 'search', delta: '{"q":' },
    { type: 'TOOL_CALL_CHUNK', toolCallId: 'c1', delta: '1}' },
    { type: 'TOOL_CALL_CHUNK', toolCallId: 'c2', toolCallName: 'count', delta: '' },
    result('c1', 'plain'),
    result('c1', 'again'),
    { raw: 'data: {"type":"AN_EVENT_OF_TOMORROW"}\n\n' },
  ])

  assert.equal(endOf(events)?.status, 'succeeded')
  assert.equal(shownText(events), 'One.\n\nTwo.')
  assert.equal(shownReasoning(events), 'Old.\n\nDraft.')
  assert.deepEqual(
    eventsOf(events, 'tool.called').map(({ data }) => [data.callId, data.input]),
    [
      ['c1', { q: 1 }],
      ['c2', {}],
    ],
  )
  assert.deepEqual(
    eventsOf(events, 'tool.done').map(({ data }) => [data.callId, data.outcome, data.output]),
    [
      ['c1', 'succeeded', 'plain'],
      ['c2', 'unknown', undefined],
    ],
  )
})

test('a snapshot of the messages adds only what was not shown', async (context) => {
  const events = await journalOf(context, [
    ...message('m1', 'Let me look.'),
    ...call('c1', 'search', {}),
    {
      type: 'MESSAGES_SNAPSHOT',
      messages: [
        { id: 'u0', role: 'user', content: 'an earlier turn' },
        { id: 'a0', role: 'assistant', content: 'an earlier answer' },
        { id: 'u1', role: 'user', content: 'now' },
        {
          id: 'other-id-of-m1',
          role: 'assistant',
          content: 'Let me look.',
          toolCalls: [
            { id: 'c1', type: 'function', function: { name: 'search', arguments: '{}' } },
            { id: 'c2', type: 'function', function: { name: 'count', arguments: '{"n":1}' } },
          ],
        },
        { id: 't1', role: 'tool', toolCallId: 'c1', content: 'found' },
        { id: 't2', role: 'tool', toolCallId: 'c2', content: 'no', error: 'out of range' },
        { id: 'm3', role: 'assistant', content: 'Here it is.' },
      ],
    },
    { type: 'MESSAGES_SNAPSHOT', messages: [{ id: 'm3', role: 'assistant', content: 'Here it is. All of it.' }] },
  ])

  assert.equal(shownText(events), 'Let me look.Here it is. All of it.')
  assert.deepEqual(
    eventsOf(events, 'tool.done').map(({ data }) => [data.callId, data.outcome]),
    [
      ['c1', 'succeeded'],
      ['c2', 'failed'],
    ],
  )
})

test('the request has the whole conversation, with ids that stay the same', async (context) => {
  const rig = await rigWith(context)
  const first = await asked(message('m', 'First answer.'))
  const { run } = await rig.start({ input: first, context: { page: 'cart' }, newConversationId: 'talk' })
  await rig.until(run.id, ended)
  const second = await asked(message('m', 'Second answer.'))
  const { run: next } = await rig.start({ input: second, conversationId: 'talk' })
  await rig.until(next.id, ended)

  const [[one], [two]] = [await fake.runs(first), await fake.runs(second)]
  assert.equal(one?.input.threadId, two?.input.threadId)
  assert.deepEqual([one?.input.runId, two?.input.runId], [run.id, next.id])
  assert.deepEqual(one?.input.context, [
    { description: 'Context given by the application (JSON)', value: '{"page":"cart"}' },
  ])
  const said = (list: { role: string; content?: unknown }[] = []) =>
    list.filter(({ role }) => role !== 'system').map(({ role, content }) => [role, content])
  assert.deepEqual(said(two?.input.messages), [
    ['user', first],
    ['assistant', 'First answer.'],
    ['user', second],
  ])
  const idOf = (messages: { id: string; role: string; content?: unknown }[] = []) =>
    messages.find(({ content }) => content === first)?.id
  assert.equal(idOf(one?.input.messages), idOf(two?.input.messages))
  assert.deepEqual((await fake.seen()).refused, [])
})

test('the next turn begins with the state of the agent, and with the ids that the agent gave to its messages', async (context) => {
  const file = join(mkdtempSync(join(tmpdir(), 'polylog-ag-ui-')), 'thread.db')
  context.after(() => rmSync(join(file, '..'), { recursive: true, force: true }))
  const first = await asked([
    { type: 'STATE_SNAPSHOT', snapshot: { cart: ['shoes'] } },
    ...message('remote-1', 'Let me ', 'look.'),
    { type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'search', parentMessageId: 'remote-1' },
    { type: 'TOOL_CALL_END', toolCallId: 'c1' },
    { type: 'TOOL_CALL_START', toolCallId: 'c2', toolCallName: 'count', parentMessageId: 'remote-1' },
    { type: 'TOOL_CALL_END', toolCallId: 'c2' },
    result('c1', 'found'),
    result('c2', '2'),
    ...message('remote-2', 'Two.'),
  ])
  const one = await openRig({ turnEngine: engineAt(), file })
  const { run } = await one.start({ input: first, newConversationId: 'talk' })
  await one.until(run.id, ended)
  await one.close()
  // A new process: nothing of this is in memory.
  const two = await rigWith(context, { file, node: 'node-2', ids: countingIds('later') })
  const second = await asked(message('remote-3', 'Yes.'))
  const { run: next } = await two.start({ input: second, conversationId: 'talk' })
  await two.until(next.id, ended)

  const [seen] = await fake.runs(second)
  assert.deepEqual(seen?.input.state, { cart: ['shoes'] })
  const sent = (seen?.input.messages ?? []) as { id: string; role: string; toolCalls?: { id: string }[] }[]
  assert.deepEqual(
    sent
      .filter(({ role }) => role === 'assistant' || role === 'tool')
      .map(({ id, toolCalls = [] }) => [id, ...toolCalls.map((made) => made.id)].join(' ')),
    ['remote-1 c1 c2', 'result-c1', 'result-c2', 'remote-2'],
  )
  assert.deepEqual((await fake.seen()).refused, [])
})

test('a call that the remote agent executes for a long time is shown while it runs', async (context) => {
  const rig = await rigWith(context)
  const question = await asked([...call('c1', 'pay', {}), { stall: true }, result('c1', 'paid')])
  const { run } = await rig.start({ input: question })
  await rig.until(run.id, ({ lastSeq }) => lastSeq >= 7)
  assert.equal(eventsOf(await rig.events(run.id), 'tool.called').length, 1)
  await fake.release()
  await rig.until(run.id, ended)
  assert.equal(eventsOf(await rig.events(run.id), 'tool.done')[0]?.data.outcome, 'succeeded')
})
