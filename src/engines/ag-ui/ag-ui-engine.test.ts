// The engine in the real run machinery, against an AG-UI agent in its own process: what the
// agent sends becomes the journal of a run, and every fault of it ends the run visibly.

import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test, type TestContext } from 'node:test'
import type { EventOf, EventType, JsonValue, RunEvent } from '../../journal/event.ts'
import { systemClock } from '../../kit/clock.ts'
import { closedAddress } from '../../../test/support/closed-port.ts'
import { crashImages } from '../../../test/support/crash-images.ts'
import {
  type AgUiAction,
  call,
  type FakeAgUi,
  interrupt,
  message,
  result,
  startFakeAgUi,
} from '../../../test/support/fake-ag-ui.ts'
import { countingIds, openRig, type Rig, type RigOptions, says } from '../../../test/support/run-rig.ts'
import { until } from '../../../test/support/until.ts'
import { type AgUiOptions, createAgUiEngine } from './ag-ui-engine.ts'

let fake: FakeAgUi
before(async () => {
  fake = await startFakeAgUi()
})
after(() => fake.stop())

function engineAt(url: string = fake.url, more: Partial<AgUiOptions> = {}) {
  return createAgUiEngine({
    name: 'ag-ui:helper',
    settings: () => ({ url }),
    environment: {},
    clock: systemClock,
    ...more,
  })
}

async function rigWith(context: TestContext, options: RigOptions = {}): Promise<Rig> {
  const rig = await openRig({ turnEngine: engineAt(), ...options })
  context.after(() => rig.close())
  return rig
}

const ended = ({ endedAt }: { endedAt: number | null }) => endedAt !== null
const waiting = ({ status }: { status: string }) => status === 'waiting_user'

function of<T extends EventType>(events: RunEvent[], type: T): EventOf<T>[] {
  return events.filter((event): event is EventOf<T> => event.type === type)
}

const shownText = (events: RunEvent[]) =>
  of(events, 'text.delta')
    .map(({ data }) => data.text)
    .join('')
const shownReasoning = (events: RunEvent[]) =>
  of(events, 'reasoning.delta')
    .map(({ data }) => data.text)
    .join('')
const endOf = (events: RunEvent[]) => of(events, 'run.ended')[0]?.data

let questions = 0

/** A question that selects the answers which are scripted for it. */
async function asked(...answers: AgUiAction[][]): Promise<string> {
  questions += 1
  const question = `question-${questions}.`
  await fake.script(question, ...answers)
  return question
}

/** The journal of a run that gets this answer. */
async function journalOf(context: TestContext, answer: AgUiAction[], options?: RigOptions): Promise<RunEvent[]> {
  const rig = await rigWith(context, options)
  const { run } = await rig.start({ input: await asked(answer) })
  await rig.until(run.id, ended)
  return await rig.events(run.id)
}

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
  const [called] = of(events, 'tool.called')
  assert.deepEqual([called?.data.name, called?.data.input], ['search', { q: 'shoes' }])
  assert.equal(called?.data.source, 'engine:ag-ui:helper')
  assert.deepEqual(of(events, 'tool.done')[0]?.data.output, { hits: 2 })
  const patches = of(events, 'context.patch').filter(({ data }) => data.patch['conversationId'] === undefined)
  assert.deepEqual(Object.assign({}, ...patches.map(({ data }) => data.patch)), { topic: 'shoes', list: [1, 2] })
  assert.ok(patches.every(({ data }) => data.layer === 'session'))
  assert.deepEqual(of(events, 'step.done').at(-1)?.data.usage, {
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
    of(events, 'tool.called').map(({ data }) => [data.callId, data.input]),
    [
      ['c1', { q: 1 }],
      ['c2', {}],
    ],
  )
  assert.deepEqual(
    of(events, 'tool.done').map(({ data }) => [data.callId, data.outcome, data.output]),
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
    of(events, 'tool.done').map(({ data }) => [data.callId, data.outcome]),
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

const approval = {
  id: 'int_1',
  reason: 'tool_call',
  toolCallId: 'c1',
  message: 'Refund order 7?',
  responseSchema: { type: 'object', properties: { approved: { type: 'boolean' }, editedArgs: { type: 'object' } } },
}
const refund = [
  ...message('m1', 'I will refund.'),
  ...call('c1', 'refund', { order: 7 }),
  { type: 'STATE_SNAPSHOT', snapshot: { order: 7 } },
]

test('an interrupt parks the run, and the decision resumes the remote agent on the same thread', async (context) => {
  const cases = [
    { decide: 'confirm', payload: { approved: true }, outcome: 'succeeded' },
    { decide: 'edit', payload: { approved: true, editedArgs: { order: 8 } }, outcome: 'succeeded' },
    { decide: 'reject', payload: { approved: false, reason: 'too dear' }, outcome: 'denied' },
  ] as const
  for (const { decide, payload, outcome } of cases) {
    const rig = await rigWith(context)
    const question = await asked([...refund, interrupt(approval)], [result('c1', 'done'), ...message('m2', 'Done.')])
    const { run } = await rig.start({ input: question })
    await rig.until(run.id, waiting)
    const [row] = await rig.store.interactionsOf(run.id)
    assert.deepEqual([row?.prompt, row?.input, row?.toolName], ['Refund order 7?', { order: 7 }, 'refund'])
    if (decide === 'reject') await rig.reject('ada', row?.id ?? '', 'too dear')
    else await rig.confirm('ada', row?.id ?? '', decide === 'edit' ? { order: 8 } : undefined)
    await rig.until(run.id, ended)

    const events = await rig.events(run.id)
    assert.equal(endOf(events)?.status, 'succeeded', JSON.stringify(endOf(events)))
    assert.equal(shownText(events), 'I will refund.Done.')
    assert.deepEqual(
      of(events, 'tool.done').map(({ data }) => data.outcome),
      [outcome],
    )
    assert.equal(of(events, 'tool.called').length, 1)
    const [first, second, ...more] = await fake.runs(question)
    assert.deepEqual(more, [])
    assert.equal(first?.input.resume, undefined)
    assert.deepEqual(second?.input.resume, [{ interruptId: 'int_1', status: 'resolved', payload }])
    assert.equal(second?.input.threadId, first?.input.threadId)
    assert.notEqual(second?.input.runId, first?.input.runId)
    assert.deepEqual(second?.input.state, { order: 7 })
    const roles = second?.input.messages.map(({ role }) => role).filter((role) => role !== 'system')
    // Without a result of the call that waits.
    assert.deepEqual(roles, ['user', 'assistant'])
    assert.deepEqual(
      of(events, 'engine.handle').map(({ data }) => (data.handle as { state: string }).state),
      ['started', 'interrupted', 'resuming', 'finished'],
    )
  }
})

test('changed arguments are refused if the remote agent does not say that it takes them', async (context) => {
  const rig = await rigWith(context)
  const { responseSchema: _, ...bare } = approval
  const question = await asked([...refund, interrupt(bare)], message('m2', 'Not done.'))
  const { run } = await rig.start({ input: question })
  await rig.until(run.id, waiting)
  const [row] = await rig.store.interactionsOf(run.id)
  await rig.confirm('ada', row?.id ?? '', { order: 8 })
  await rig.until(run.id, ended)

  const events = await rig.events(run.id)
  assert.equal(of(events, 'tool.done')[0]?.data.outcome, 'denied')
  const payload = (await fake.runs(question))[1]?.input.resume?.[0]?.payload as { approved: boolean }
  assert.equal(payload.approved, false)
})

test('several interrupts are asked at once, and answered in one request', async (context) => {
  const rig = await rigWith(context)
  const schema = { type: 'object', properties: { day: { type: 'string' } } }
  const question = await asked(
    [
      ...refund,
      interrupt(
        approval,
        { id: 'int_2', reason: 'input_required', message: 'Which day?', responseSchema: schema },
        { id: 'int_3', reason: 'confirmation', message: 'Tell the customer?' },
      ),
    ],
    [result('c1', 'done'), ...message('m2', 'Done.')],
  )
  const { run } = await rig.start({ input: question })
  await rig.until(run.id, waiting)
  const rows = await rig.store.interactionsOf(run.id)
  assert.deepEqual(rows.map(({ prompt, kind }) => `${kind}: ${prompt}`).toSorted(), [
    'confirmation: Refund order 7?',
    'confirmation: Tell the customer?',
    'question: Which day?',
  ])
  for (const { id, kind } of rows) await rig.confirm('ada', id, kind === 'question' ? { answer: 'Tuesday' } : undefined)
  await rig.until(run.id, ended)

  const [, second] = await fake.runs(question)
  assert.deepEqual(second?.input.resume, [
    { interruptId: 'int_1', status: 'resolved', payload: { approved: true } },
    { interruptId: 'int_2', status: 'resolved', payload: { day: 'Tuesday' } },
    { interruptId: 'int_3', status: 'resolved', payload: { approved: true } },
  ])
  const events = await rig.events(run.id)
  assert.deepEqual(
    of(events, 'tool.done').map(({ data }) => data.outcome),
    ['succeeded', 'succeeded'],
  )
  assert.equal(endOf(events)?.status, 'succeeded')
})

test('a suspended tool that wants another answer than yes or no asks a question', async (context) => {
  const rig = await rigWith(context)
  const responseSchema = { type: 'object', properties: { seat: { type: 'string' } } }
  const question = await asked(
    [...call('c1', 'book', {}), interrupt({ id: 'r::c1', reason: 'mastra:suspend', toolCallId: 'c1', responseSchema })],
    [result('c1', 'booked'), ...message('m', 'Booked.')],
  )
  const { run } = await rig.start({ input: question })
  await rig.until(run.id, waiting)
  const [row] = await rig.store.interactionsOf(run.id)
  assert.equal(row?.kind, 'question')
  await rig.confirm('ada', row?.id ?? '', { answer: '12A' })
  await rig.until(run.id, ended)

  assert.deepEqual((await fake.runs(question))[1]?.input.resume?.[0]?.payload, { seat: '12A' })
  const events = await rig.events(run.id)
  assert.deepEqual(
    of(events, 'tool.done').map(({ data }) => [data.callId, data.outcome]),
    [['c1', 'succeeded']],
  )
})

test('a call that was not announced is described by its interrupt, and its result is taken', async (context) => {
  const rig = await rigWith(context)
  const mastra = { toolName: 'refund', args: { order: 7 }, suspendPayload: { question: 'Refund order 7?' } }
  const question = await asked(
    [
      interrupt({
        id: 'r::c1',
        reason: 'mastra:tool_suspend',
        toolCallId: 'c1',
        responseSchema: { type: 'object', properties: { approved: { type: 'boolean' } } },
        metadata: { mastra },
      }),
    ],
    [result('c1', '{"refunded":true}'), interrupt({ id: 'next', reason: 'confirmation', message: 'Tell them?' })],
    message('m', 'Done.'),
  )
  const { run } = await rig.start({ input: question })
  for (const [prompt, name] of [
    ['Refund order 7?', 'refund'],
    ['Tell them?', 'confirmation'],
  ]) {
    await rig.until(run.id, waiting)
    const row = (await rig.store.interactionsOf(run.id)).find(({ status }) => status === 'pending')
    assert.deepEqual([row?.prompt, row?.toolName], [prompt, name])
    await rig.confirm('ada', row?.id ?? '', undefined)
    await rig.until(run.id, (found) => !waiting(found))
  }
  await rig.until(run.id, ended)

  const events = await rig.events(run.id)
  assert.deepEqual(
    of(events, 'tool.done').map(({ data }) => [data.outcome, data.output]),
    [
      ['succeeded', { refunded: true }],
      ['succeeded', undefined],
    ],
  )
  assert.deepEqual(of(events, 'tool.called')[0]?.data.input, { order: 7 })
  // The remote agent gets its own call with its result, and never the confirmation that only we know.
  const last = (await fake.runs(question)).at(-1)?.input.messages.filter(({ role }) => role !== 'system')
  assert.deepEqual(
    last?.map(({ role }) => role),
    ['user', 'assistant', 'tool'],
  )
})

test('an API that cannot ask a person rejects, and the remote agent goes on', async (context) => {
  const rig = await rigWith(context)
  const question = await asked(
    [...refund, interrupt(approval, { id: 'int_2', reason: 'input_required' })],
    message('m2', 'Not done.'),
  )
  const { run } = await rig.start({ input: question, consent: 'refuse' })
  await rig.until(run.id, ended)

  const events = await rig.events(run.id)
  assert.equal(endOf(events)?.status, 'succeeded')
  assert.equal(of(events, 'tool.done')[0]?.data.outcome, 'denied')
  const [, second] = await fake.runs(question)
  assert.deepEqual(
    second?.input.resume?.map(({ status, payload }) => [status, (payload as { approved?: boolean })?.approved]),
    [
      ['resolved', false],
      ['cancelled', undefined],
    ],
  )
})

test('an interrupt that is not decided in time is cancelled', async (context) => {
  const rig = await rigWith(context)
  const question = await asked([...refund, interrupt(approval)], message('m2', 'Too late.'))
  const { run } = await rig.start({ input: question })
  await rig.until(run.id, waiting)
  await rig.clock.advance(3_600_001)
  rig.scheduler.poke()
  await rig.until(run.id, ended)

  assert.deepEqual((await fake.runs(question))[1]?.input.resume, [{ interruptId: 'int_1', status: 'cancelled' }])
})

const secret = 'Bearer sk-very-secret'
const faults: [name: string, answer: AgUiAction[], code: string, message: RegExp][] = [
  [
    'a run that fails',
    [{ type: 'RUN_ERROR', message: `No key ${secret}`, code: 'auth' }],
    'engine_failed',
    /\(auth\): No key \[red/,
  ],
  ['a cancelled run', [{ type: 'RUN_FINISHED', outcome: { type: 'cancelled' } }], 'engine_failed', /cancelled/],
  ['a cut connection', [...message('m', 'I'), { cut: true }], 'engine_stream_incomplete', /middle of its answer/],
  ['an end without RUN_FINISHED', [...message('m', 'I'), { hangUp: true }], 'engine_stream_incomplete', /RUN_FINISHED/],
  ['a frame that is not JSON', [{ raw: 'data: {"type":\n\n' }, { stall: true }], 'engine_failed', /not valid JSON/],
  ['a frame without a type', [{ raw: 'data: null\n\n' }, { stall: true }], 'engine_failed', /no type/],
  ['a frame that is too deep', [{ raw: `data: ${'['.repeat(300)}\n\n` }, { stall: true }], 'engine_failed', /deeper/],
  ['a giant frame', [{ giant: 5 * 1024 * 1024 }, { stall: true }], 'engine_failed', /longer than 4 MiB/],
  ['a server error', [{ status: 500, body: '{"error":{"message":"boom"}}' }], 'engine_unavailable', /HTTP 500.*boom/],
  [
    'missing credentials',
    [{ status: 401, body: `"no ${secret}"` }],
    'engine_failed',
    /HTTP 401.*headers.*no \[redacted\]/,
  ],
  ['a refused request', [{ status: 422, body: '{"detail":"bad state"}' }], 'engine_failed', /HTTP 422.*bad state/],
  ['a redirect', [{ status: 307, headers: { location: '/elsewhere' } }], 'engine_failed', /redirect/],
  [
    'a page instead of a stream',
    [{ status: 200, body: '<html>', headers: { 'content-type': 'text/html' } }],
    'engine_failed',
    /text\/html/,
  ],
  [
    'an interrupt without interrupts',
    [{ raw: 'data: {"type":"RUN_FINISHED","outcome":{"type":"interrupt"}}\n\n' }],
    'engine_failed',
    /0 decisions/,
  ],
  [
    'a call with a bad name',
    [{ raw: 'data: {"type":"TOOL_CALL_START","toolCallId":"c"}\n\n' }],
    'engine_failed',
    /bad id or name/,
  ],
]

for (const [name, answer, code, sentence] of faults) {
  test(`${name} fails the run visibly, and no other engine answers`, async (context) => {
    const turnEngine = engineAt(fake.url, {
      settings: () => ({ url: fake.url, headers: { Authorization: { env: 'AGENT_AUTH' } } }),
      environment: { AGENT_AUTH: secret },
    })
    const events = await journalOf(context, answer, { turnEngine, answer: () => says('Never.') })

    const error = endOf(events)?.error
    assert.equal(error?.code, code, JSON.stringify(error))
    assert.match(error?.message ?? '', sentence)
    assert.equal(of(events, 'diagnostic').length, 0)
    assert.doesNotMatch(JSON.stringify(events), /sk-very-secret/)
    await fake.release()
  })
}

test('a call is in the journal although the connection is cut right after it', async (context) => {
  const events = await journalOf(context, [...call('c1', 'pay', { sum: 7 }), { cut: true }])

  assert.deepEqual(of(events, 'tool.called')[0]?.data.input, { sum: 7 })
  assert.equal(of(events, 'tool.done')[0]?.data.outcome, 'unknown')
  assert.equal(endOf(events)?.error?.code, 'engine_stream_incomplete')
})

test('a call that the remote agent executes for a long time is shown while it runs', async (context) => {
  const rig = await rigWith(context)
  const question = await asked([...call('c1', 'pay', {}), { stall: true }, result('c1', 'paid')])
  const { run } = await rig.start({ input: question })
  await rig.until(run.id, ({ lastSeq }) => lastSeq >= 7)
  assert.equal(of(await rig.events(run.id), 'tool.called').length, 1)
  await fake.release()
  await rig.until(run.id, ended)
  assert.equal(of(await rig.events(run.id), 'tool.done')[0]?.data.outcome, 'succeeded')
})

test('an agent that cannot be reached, or takes no request, is replaced by the fallback', async (context) => {
  const cases: [RigOptions, AgUiAction[]][] = [
    [{ turnEngine: engineAt(`${await closedAddress()}/agent`) }, []],
    [{ turnEngine: engineAt('http://no-such-host.invalid/agent') }, []],
    [{}, [{ status: 503, body: 'overloaded' }]],
    [{ turnEngine: engineAt(fake.url, { settings: () => ({ url: fake.url, headers: { A: { env: 'UNSET' } } }) }) }, []],
  ]
  for (const [options, answer] of cases) {
    const events = await journalOf(context, answer, { ...options, answer: () => says('From here.') })
    assert.equal(of(events, 'diagnostic')[0]?.data.code, 'engine_fallback')
    assert.equal(endOf(events)?.output, 'From here.')
  }
})

test('a connection that is lost before any answer is not tried again, because the request may have been taken', async (context) => {
  let requests = 0
  const rude = createServer((socket) => {
    socket.once('data', () => {
      requests += 1
      socket.destroy()
    })
    socket.on('error', () => {})
  })
  await new Promise<void>((resolve) => rude.listen(0, '127.0.0.1', resolve))
  context.after(() => rude.close())
  const { port } = rude.address() as { port: number }
  const turnEngine = engineAt(`http://127.0.0.1:${port}/agent`)
  const events = await journalOf(context, [], { turnEngine, answer: () => says('Never.') })

  assert.equal(endOf(events)?.error?.code, 'engine_stream_incomplete')
  assert.equal(requests, 1)
})

/** Waits until the agent has seen that the client closed the connection of the run. */
async function closedEarly(question: string): Promise<void> {
  await until('the closed connection', async () => (await fake.runs(question)).find((run) => run.closedEarly))
}

test('a cancel closes the connection, and so does an agent that falls silent', async (context) => {
  for (const stop of ['cancel', 'silence'] as const) {
    const rig = await rigWith(context)
    const question = await asked([...message('m', 'I'), ...call('c1', 'search', {}), { stall: true }])
    const { run } = await rig.start({ input: question })
    await rig.until(run.id, ({ lastSeq }) => lastSeq >= 8)
    if (stop === 'cancel') await rig.service.cancel('ada', run.id, null)
    else await rig.clock.advance(60_000)
    await rig.until(run.id, ended)
    await closedEarly(question)

    const events = await rig.events(run.id)
    if (stop === 'cancel') assert.equal(endOf(events)?.status, 'canceled')
    else assert.equal(endOf(events)?.error?.code, 'engine_stalled')
    assert.equal(of(events, 'tool.done').length, 1)
    assert.deepEqual(
      rig.complaints.filter((text) => /could not be stopped/.test(text)),
      [],
    )
    await fake.release()
  }
})

test('a stop of the server leaves the remote agent at work', async (context) => {
  const rig = await rigWith(context)
  const question = await asked([...message('m', 'I'), { stall: true }])
  const { run } = await rig.start({ input: question })
  await rig.until(run.id, ({ lastSeq }) => lastSeq >= 5)
  await rig.close()
  await fake.release()
  const seen = await until('the end of the remote run', async () =>
    (await fake.runs(question)).find((each) => each.isOver),
  )

  assert.equal(seen.closedEarly, false)
})

test('killed after any commit: no run is started twice, no decision applied twice, and there is one end', async (context) => {
  const images = crashImages(context)
  const answers = [
    [...refund, interrupt(approval)],
    [result('c1', 'done'), ...message('m2', 'It is ', 'done.')],
  ]
  const question = await asked(...answers)
  const first = await openRig({
    turnEngine: engineAt(),
    ...images.options,
  })
  const { run } = await first.start({ input: question })
  await first.until(run.id, waiting)
  const [row] = await first.store.interactionsOf(run.id)
  await first.confirm('ada', row?.id ?? '', undefined)
  await first.until(run.id, ended)
  await first.close()
  assert.ok(images.paths.length > 8, `${images.paths.length} images`)

  const seenEnds = new Set<string>()
  for (const [index, path] of images.paths.entries()) {
    const at = `image ${index}`
    await fake.reset()
    const rig = await images.reopen(path, { turnEngine: engineAt(), clock: first.clock })
    const journal = await rig.events(run.id)
    const states = of(journal, 'engine.handle').map(({ data }) => (data.handle as { state: string }).state)
    // An image whose remote agent waits for a decision: the agent of this life has to know that.
    const isInterrupted = states.at(-1) === 'interrupted'
    if (isInterrupted) await primeInterrupt(question)
    await fake.script(question, ...(isInterrupted ? answers.slice(1) : answers))
    const remoteBefore = (await fake.runs(question)).length
    rig.scheduler.start()
    await rig.until(run.id, (found) => ended(found) || waiting(found))
    const [pending] = await rig.store.interactionsOf(run.id)
    if (pending?.status === 'pending') await rig.confirm('ada', pending.id, undefined)
    await rig.until(run.id, ended)

    const events = await rig.events(run.id)
    const remote = (await fake.runs(question)).length - remoteBefore
    const end = endOf(events)
    seenEnds.add(`${states.at(-1)} ${end?.status} ${end?.error?.code}`)
    assert.equal(of(events, 'run.ended').length, 1, at)
    assert.equal(
      of(events, 'tool.called').length,
      end?.status === 'succeeded' ? 1 : of(journal, 'tool.called').length,
      at,
    )
    if (journal.some(({ type }) => type === 'run.ended')) assert.equal(remote, 0, at)
    else if (states.length === 0) assert.equal(remote, 2, at)
    else if (isInterrupted) assert.equal(remote, 1, at)
    else assert.equal(remote, 0, `${at}: what may have been started is not started again`)
    for (const count of Object.values((await fake.seen()).applied)) assert.equal(count, 1, at)
    await rig.close()
  }
  assert.deepEqual([...seenEnds].toSorted(), [
    'finished succeeded undefined',
    'interrupted succeeded undefined',
    'resuming failed engine_outcome_unknown',
    'started failed engine_outcome_unknown',
    'undefined succeeded undefined',
  ])

  /** Lets the agent run into its interrupt on the thread of the run, as it did before the crash. */
  async function primeInterrupt(asking: string): Promise<void> {
    await fake.script(asking, [interrupt(approval)])
    const threadId = run.conversationId ?? run.id
    const messages = [{ id: 'x', role: 'user', content: asking }]
    const body = { threadId, runId: 'prime', state: {}, messages, tools: [], context: [], forwardedProps: {} }
    const response = await fetch(fake.url, { method: 'POST', body: JSON.stringify(body) })
    await response.text()
  }
})

test('a handle of another version has an unknown outcome', async () => {
  const engine = engineAt()
  const request = {} as Parameters<typeof engine.turn>[0]
  const attempt = async (handle: JsonValue) => {
    for await (const parts of engine.turn(request, handle, { of: () => undefined }, new AbortController().signal))
      void parts
  }
  await assert.rejects(attempt({ state: 'new' }), { code: 'engine_outcome_unknown' })
})
