// Questions that a job asks its user, tool calls that need consent, and the replies:
// over real sockets.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { asks, errandResult, type Job, startJob, statusAndCode, sharedJobServer } from '../support/jobs.ts'
import { calls, type Json, messagesOf, says, someone, until } from '../support/test-server.ts'

const { server } = sharedJobServer()

describe('asking', () => {
  test('shows every kind of question as it was asked, and takes any JSON as the answer', async () => {
    const questions: [asked: Json, shown: Json, reply: unknown, told: string][] = [
      [
        { question: 'Which?', kind: 'choose_one', options: ['a', { label: 'B', value: 2 }] },
        {
          kind: 'choose_one',
          options: [
            { label: 'a', value: 'a' },
            { label: 'B', value: 2 },
          ],
        },
        2,
        '2',
      ],
      [{ question: 'Sure?', kind: 'confirm' }, { kind: 'confirm' }, false, 'false'],
      [
        { question: 'Who?', kind: 'fill_fields', fields: ['name', 'age'] },
        { kind: 'fill_fields', required_fields: ['name', 'age'] },
        { name: 'Ann' },
        '{"name":"Ann"}',
      ],
      [{ question: 'Why?' }, { kind: 'open_text' }, 'because', 'because'],
      [{ question: 'Dare?', kind: 'risk_ack' }, { kind: 'risk_ack' }, ['yes'], '["yes"]'],
      [{ question: 'Hm?', kind: 'something else' }, { kind: 'open_text' }, 'ok', 'ok'],
    ]
    const user = someone()
    await server.provider.script([...questions.map(([asked]) => asks(asked)), says(errandResult)], user)
    const job = await startJob(server, 'jobs', user)
    for (const [index, [asked, shown, reply]] of questions.entries()) {
      const number = index + 1
      await until(`question ${number}`, async () =>
        (await job.get()).body.pending_interaction_id === number ? true : undefined,
      )
      const { body } = await job.get('/interaction/pending')
      assert.deepEqual(body, {
        request_id: job.id,
        status: 'waiting_user',
        pending: {
          interaction_id: number,
          prompt: asked.question,
          options: [],
          ui_hints: {},
          default_decision_policy: 'engine_judgement',
          required_fields: [],
          context: null,
          ...shown,
        },
      })
      assert.deepEqual((await job.reply(number, reply)).body, { request_id: job.id, status: 'queued', accepted: true })
    }
    const status = await job.reaches('succeeded')

    const results = messagesOf((await server.asked(user)).at(-1)).filter(({ role }) => role === 'tool')
    assert.deepEqual(
      results.map(({ content }) => content),
      questions.map(([, , , told]) => told),
    )
    assert.deepEqual(
      [status.interaction_count, status.auto_decision_count, status.pending_interaction_id],
      [6, 0, null],
    )
    assert.equal((await job.get('/interaction/pending')).body.pending, null)
  })

  test('is only offered to jobs that may ask; others have no pending and take no reply', async () => {
    const user = someone()
    await server.provider.script([says(errandResult)], user)
    const job = await startJob(server, 'jobs', user, { execution_mode: 'auto' })
    await job.reaches('succeeded')
    await server.chatToEnd(user, `chat ${user}`)

    const offered = (await server.asked(user)).map((request) =>
      ((request.body as Json).tools as Json[]).map((tool) => tool.function.name),
    )
    assert.deepEqual(
      offered.map((names) => [names.includes('ask_user'), names.includes('save_artifact')]),
      [
        [false, true],
        [false, false],
      ],
    )
    assert.deepEqual(statusAndCode(await job.get('/interaction/pending')), [400, 'job_not_interactive'])
    assert.deepEqual(statusAndCode(await job.reply(1, 'x')), [400, 'job_not_interactive'])
  })

  test('counts as decided automatically at its deadline, also if it asks for consent', async () => {
    const user = someone()
    const step = calls(['ask_user', { question: 'Which?' }], ['remember_note', { text: user }])
    await server.provider.script([step, says(errandResult)], user)
    const job = await startJob(server, 'jobs', user, { interactive_require_user_reply: false, session_timeout_sec: 1 })
    const status = await job.reaches('succeeded')

    const events = (await job.get('/events/history')).body.events as Json[]
    const timeouts = events.filter(({ type }) => type === 'interaction.auto_decide.timeout')
    assert.deepEqual([status.auto_decision_count, timeouts.length], [2, 2])
  })

  test('for consent parks the job too: a plain yes runs the call, anything else does not', async () => {
    for (const [reply, ran] of [
      [true, true],
      ['yes', true],
      ['rather not', false],
      [false, false],
      [{ confirmed: true }, true],
      [{ confirmed: 'true' }, false],
      [null, false],
      [[true], false],
      ['yes, but not now', false],
    ] as const) {
      const user = someone()
      await server.provider.script([calls(['remember_note', { text: user }]), says(errandResult)], user)
      const job = await startJob(server, 'jobs', user, { execution_mode: 'auto' })
      await job.reaches('waiting_user')
      const { pending } = (await job.get('/interaction/pending')).body
      await job.reply(1, reply)
      await job.reaches('succeeded')

      assert.deepEqual([pending.kind, pending.context.tool], ['confirm', 'remember_note'])
      const told = String(messagesOf((await server.asked(user)).at(-1)).at(-1)?.content)
      assert.equal(/did not allow/.test(told), !ran, told)
    }
  })

  test('several things at once: the lowest is answered first, and the job goes on after the last', async () => {
    const user = someone()
    await server.provider.script(
      [calls(['ask_user', { question: 'One?' }, 'c1'], ['ask_user', { question: 'Two?' }, 'c2']), says(errandResult)],
      user,
    )
    const job = await startJob(server, 'jobs', user)
    await job.reaches('waiting_user')

    assert.deepEqual(statusAndCode(await job.reply(2, 'too early')), [409, 'interaction_stale'])
    assert.equal((await job.reply(1, 'first')).body.status, 'waiting_user')
    await until('the second', async () => ((await job.get()).body.pending_interaction_id === 2 ? true : undefined))
    assert.equal((await job.reply(2, 'second')).body.status, 'queued')
    await job.reaches('succeeded')
  })
})

describe('replying', () => {
  async function waiting(): Promise<Job> {
    const user = someone()
    await server.provider.script([asks({ question: 'One?' }), asks({ question: 'Two?' }), says(errandResult)], user)
    const job = await startJob(server, 'jobs', user)
    await job.reaches('waiting_user')
    return job
  }
  const second = (job: Job) =>
    until('the second question', async () => ((await job.get()).body.pending_interaction_id === 2 ? true : undefined))

  test('is answered as the table says', async () => {
    const job = await waiting()

    assert.deepEqual(statusAndCode(await job.reply(7, 'x')), [409, 'interaction_stale'], 'another id')
    const taken = await job.reply(1, { a: 1, b: 2 }, 'key-1')
    assert.deepEqual([taken.status, taken.body.status, taken.body.accepted], [200, 'queued', true])
    await second(job)
    const replayed = await job.reply(1, { b: 2, a: 1 }, 'key-1')
    assert.deepEqual(
      [replayed.status, replayed.body.status, replayed.body.accepted],
      [200, 'waiting_user', true],
      'the same again',
    )
    assert.deepEqual(
      statusAndCode(await job.reply(1, { a: 2 }, 'key-1')),
      [409, 'reply_key_reused'],
      'same key, other reply',
    )
    assert.deepEqual(
      statusAndCode(await job.reply(2, { a: 1, b: 2 }, 'key-1')),
      [409, 'reply_key_reused'],
      'same key, other question',
    )
    assert.deepEqual(statusAndCode(await job.reply(1, 'x')), [409, 'interaction_stale'], 'answered, no key')
    assert.deepEqual(statusAndCode(await job.reply(1, 'x', 'key-2')), [409, 'interaction_stale'], 'answered, other key')
    assert.equal((await job.get()).body.pending_interaction_id, 2)
    await job.reply(2, 'x', 'key-3')
    await job.reaches('succeeded')
    assert.deepEqual(statusAndCode(await job.reply(3, 'x')), [409, 'job_not_waiting'])
    assert.deepEqual((await job.reply(2, 'x', 'key-3')).body, {
      request_id: job.id,
      status: 'succeeded',
      accepted: true,
    })
    assert.equal((await server.asked(job.user)).length, 3)
    assert.deepEqual(
      statusAndCode(
        await server.call('POST', `${job.path}/interaction/reply`, {
          user: someone(),
          body: { interaction_id: 2, response: 'x' },
        }),
      ),
      [404, 'job_not_found'],
    )
    assert.equal((await job.post('/interaction/reply', { interaction_id: 'two', response: 1 })).status, 400)
  })

  test('twenty times at once takes one reply; with one key all are accepted', async () => {
    const job = await waiting()

    const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => job.reply(1, `reply ${index}`)))
    await second(job)
    const same = await Promise.all(Array.from({ length: 20 }, () => job.reply(2, 'all', 'one-key')))
    await job.reaches('succeeded')

    assert.equal(answers.filter(({ status }) => status === 200).length, 1)
    assert.ok(answers.every(({ status }) => status === 200 || status === 409))
    assert.deepEqual([...new Set(same.map(({ status, body }) => `${status} ${body.accepted}`))], ['200 true'])
    const events = (await job.get('/events/history')).body.events as Json[]
    assert.equal(events.filter(({ type }) => type === 'interaction.reply.accepted').length, 2)
  })
})
