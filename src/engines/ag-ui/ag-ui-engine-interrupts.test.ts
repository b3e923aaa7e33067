// Interrupts of an AG-UI agent: the run waits for a person, and the decisions resume the agent on
// the same thread.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { approval, endOf, refund, sharedAgUiRig, shownText } from '../../../test/support/ag-ui-rig.ts'
import { call, interrupt, message, result } from '../../../test/support/fake-ag-ui.ts'
import { ended, eventsOf, isWaiting } from '../../../test/support/run-helpers.ts'

const { fake, rigWith, asked } = sharedAgUiRig()

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
    await rig.until(run.id, isWaiting)
    const [row] = await rig.store.interactionsOf(run.id)
    assert.deepEqual([row?.prompt, row?.input, row?.toolName], ['Refund order 7?', { order: 7 }, 'refund'])
    if (decide === 'reject') await rig.reject('ada', row?.id ?? '', 'too dear')
    else await rig.confirm('ada', row?.id ?? '', decide === 'edit' ? { order: 8 } : undefined)
    await rig.until(run.id, ended)

    const events = await rig.events(run.id)
    assert.equal(endOf(events)?.status, 'succeeded', JSON.stringify(endOf(events)))
    assert.equal(shownText(events), 'I will refund.Done.')
    assert.deepEqual(
      eventsOf(events, 'tool.done').map(({ data }) => data.outcome),
      [outcome],
    )
    assert.equal(eventsOf(events, 'tool.called').length, 1)
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
      eventsOf(events, 'engine.handle').map(({ data }) => (data.handle as { state: string }).state),
      ['started', 'interrupted', 'resuming', 'finished'],
    )
  }
})

test('the tokens before and after an interrupt are counted, also if the turn fails', async (context) => {
  const used = (inputTokens: number) => ({ usage: [{ inputTokens, outputTokens: 1 }] })
  for (const end of ['RUN_FINISHED', 'RUN_ERROR'] as const) {
    const rig = await rigWith(context)
    const first = [...refund, { ...interrupt(approval), ...used(10) }]
    const question = await asked(first, [result('c1', 'done'), { type: end, message: 'No.', ...used(5) }])
    const { run } = await rig.start({ input: question })
    await rig.until(run.id, isWaiting)
    const [row] = await rig.store.interactionsOf(run.id)
    await rig.confirm('ada', row?.id ?? '', undefined)
    await rig.until(run.id, ended)

    const { status, usage } = (await rig.store.readRun(run.id)) ?? {}
    assert.equal(status, end === 'RUN_ERROR' ? 'failed' : 'succeeded')
    assert.deepEqual([usage?.inputTokens, usage?.outputTokens], [15, 2], end)
  }
})

test('changed arguments are refused if the remote agent does not say that it takes them', async (context) => {
  const rig = await rigWith(context)
  const { responseSchema: _, ...bare } = approval
  const question = await asked([...refund, interrupt(bare)], message('m2', 'Not done.'))
  const { run } = await rig.start({ input: question })
  await rig.until(run.id, isWaiting)
  const [row] = await rig.store.interactionsOf(run.id)
  await rig.confirm('ada', row?.id ?? '', { order: 8 })
  await rig.until(run.id, ended)

  const events = await rig.events(run.id)
  assert.equal(eventsOf(events, 'tool.done')[0]?.data.outcome, 'denied')
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
  await rig.until(run.id, isWaiting)
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
    eventsOf(events, 'tool.done').map(({ data }) => data.outcome),
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
  await rig.until(run.id, isWaiting)
  const [row] = await rig.store.interactionsOf(run.id)
  assert.equal(row?.kind, 'question')
  await rig.confirm('ada', row?.id ?? '', { answer: '12A' })
  await rig.until(run.id, ended)

  assert.deepEqual((await fake.runs(question))[1]?.input.resume?.[0]?.payload, { seat: '12A' })
  const events = await rig.events(run.id)
  assert.deepEqual(
    eventsOf(events, 'tool.done').map(({ data }) => [data.callId, data.outcome]),
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
    await rig.until(run.id, isWaiting)
    const row = (await rig.store.interactionsOf(run.id)).find(({ status }) => status === 'pending')
    assert.deepEqual([row?.prompt, row?.toolName], [prompt, name])
    await rig.confirm('ada', row?.id ?? '', undefined)
    await rig.until(run.id, (found) => !isWaiting(found))
  }
  await rig.until(run.id, ended)

  const events = await rig.events(run.id)
  assert.deepEqual(
    eventsOf(events, 'tool.done').map(({ data }) => [data.outcome, data.output]),
    [
      ['succeeded', { refunded: true }],
      ['succeeded', undefined],
    ],
  )
  assert.deepEqual(eventsOf(events, 'tool.called')[0]?.data.input, { order: 7 })
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
  assert.equal(eventsOf(events, 'tool.done')[0]?.data.outcome, 'denied')
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
  await rig.until(run.id, isWaiting)
  await rig.clock.advance(3_600_001)
  rig.scheduler.poke()
  await rig.until(run.id, ended)

  assert.deepEqual((await fake.runs(question))[1]?.input.resume, [{ interruptId: 'int_1', status: 'cancelled' }])
})
