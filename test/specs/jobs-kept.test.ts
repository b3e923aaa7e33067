// What is stored of jobs: their list, results that answer equal requests again, and removing jobs
// that have ended. Over real sockets.

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import {
  calls,
  type TestServer,
  type Json,
  says,
  someone,
  startTestServer,
  startTestServerProcess,
  until,
} from '../support/test-server.ts'
import {
  errand,
  errandResult,
  type Job,
  jobOf,
  startJob,
  statusAndCode,
  upload,
  zipped,
  sharedJobServer,
} from '../support/jobs.ts'

const { server, folder } = sharedJobServer()

const create = (user: string, body: Json, headers: Record<string, string> = {}) =>
  server.call('POST', '/v1/jobs', { user, body, headers })
const jobNamed = (user: string, { body }: { body: Json }) => jobOf(server, 'jobs', user, String(body.request_id))

describe('the list of jobs', () => {
  const list = async (user: string, query = '', family = 'jobs') =>
    (await server.call('GET', `/v1/${family}${query}`, { user })).body
  const ids = ({ jobs }: Json) => (jobs as Json[]).map(({ request_id }) => request_id)

  test('has the caller’s own, newest first, by status and skill, a page at a time', async () => {
    const [user, other] = [someone(), someone()]
    await server.provider.script([says(errandResult), calls(['ask_user', { question: 'Which?' }])], user)
    const first = await startJob(server, 'jobs', user)
    await first.reaches('succeeded')
    const second = await startJob(server, 'jobs', user)
    await second.reaches('waiting_user')
    const third = jobNamed(user, await create(user, { skill_id: 'needs-file', input: { what: user } }))
    const fourth = await server.call('POST', '/v1/temp-skill-runs', { user, body: {} })
    await startJob(server, 'jobs', other)

    const whole = await list(user)
    assert.deepEqual(ids(whole), [third.id, second.id, first.id])
    assert.equal(whole.next_before, null)
    assert.deepEqual(
      (whole.jobs as Json[]).map(({ status, skill_id, error }) => [status, skill_id, error]),
      [
        ['queued', 'needs-file', null],
        ['waiting_user', 'errand', null],
        ['succeeded', 'errand', null],
      ],
    )
    assert.deepEqual(ids(await list(user, '', 'temp-skill-runs')), [fourth.body.request_id])
    assert.deepEqual(ids(await list(user, '?status=queued,succeeded')), [third.id, first.id])
    assert.deepEqual(ids(await list(user, '?skill_id=errand&status=waiting_user')), [second.id])
    assert.deepEqual(ids(await list(user, '?skill_id=nothing')), [])

    const pages: string[] = []
    for (let before: string | null = ''; before !== null;) {
      const page: Json = await list(user, `?limit=1${before === '' ? '' : `&before=${before}`}`)
      assert.equal(page.jobs.length, 1)
      pages.push(...ids(page))
      before = page.next_before
    }
    assert.deepEqual(pages, ids(whole))
    await third.post('/cancel')
  })

  test('refuses what it does not know with a sentence', async () => {
    const [user, other] = [someone(), someone()]
    const foreign = await startJob(server, 'jobs', other)

    for (const query of ['?status=done', '?limit=0', '?limit=101']) {
      const { status, body } = await server.call('GET', `/v1/jobs${query}`, { user })
      assert.deepEqual([status, body.code], [400, 'invalid_request'], query)
    }
    for (const before of ['nothing', foreign.id]) {
      assert.deepEqual(statusAndCode(await server.call('GET', `/v1/jobs?before=${before}`, { user })), [
        400,
        'unknown_cursor',
      ])
    }
  })

  test('names the skill of an uploaded package once it has come', async () => {
    const user = someone()
    const job = await startJob(server, 'temp-skill-runs', user)
    await job.reaches('succeeded', 'waiting_user')

    const { jobs } = await list(user, '?skill_id=errand', 'temp-skill-runs')
    assert.deepEqual(
      (jobs as Json[]).map(({ request_id }) => request_id),
      [job.id],
    )
  })
})

describe('an equal request', () => {
  const body = (user: string, changes: Json = {}) => ({ skill_id: 'errand', input: { what: user }, ...changes })
  const succeeds = async (user: string, request: Json = body(user)): Promise<Job> => {
    await server.provider.script([says(errandResult)], user)
    const job = jobNamed(user, await create(user, request))
    await job.reaches('succeeded')
    return job
  }

  test('is answered with the job that succeeded before, without asking a model, and says so', async () => {
    const user = someone()
    const first = await succeeds(user)

    const again = await create(user, { ...body(user), input: { what: user }, runtime_options: { verbose: true } })

    assert.deepEqual(again.body, { request_id: first.id, cache_hit: true, status: 'succeeded' })
    assert.deepEqual((await first.get('/result')).body.result.data, { done: true })
    assert.equal((await server.asked(user)).length, 1)
  })

  test('that differs in a relevant field, or asks for a new run, is run', async () => {
    const user = someone()
    const first = await succeeds(user)
    const others: [what: string, request: Json, by?: string][] = [
      ['another input', body(user, { input: { what: user, more: 1 } })],
      ['another parameter', body(user, { parameter: { x: 1 } })],
      ['another model', body(user, { model: 'openai/other' })],
      ['no_cache', body(user, { runtime_options: { no_cache: true } })],
      ['interactive', body(user, { runtime_options: { execution_mode: 'interactive' } })],
      ['another owner', body(user), someone()],
    ]

    for (const [what, request, by = user] of others) {
      const answer = await create(by, request)
      assert.deepEqual([answer.body.cache_hit, answer.body.request_id === first.id], [false, false], what)
      await jobNamed(by, answer).reaches('succeeded', 'failed', 'waiting_user')
    }
  })

  test('finds no job that failed, that was made with no_cache, or that had other effects than its result', async () => {
    const asked: [what: string, script: Parameters<TestServer['provider']['script']>[0], options: Json][] = [
      ['failed', [says('{"done":1}')], {}],
      ['no_cache', [says(errandResult)], { no_cache: true }],
      ['sent something', [calls(['remember_note', { text: 'x' }]), says(errandResult)], {}],
    ]
    for (const [what, script, options] of asked) {
      const user = someone()
      await server.provider.script([...script, says(errandResult)], user)
      const first = jobNamed(user, await create(user, body(user, { runtime_options: options })))
      if (what === 'sent something') {
        await first.reaches('waiting_user')
        await first.reply(1, true)
      }
      await first.reaches('succeeded', 'failed')

      const again = await create(user, body(user))

      assert.equal(again.body.cache_hit, false, what)
      await jobNamed(user, again).post('/cancel')
    }
  })

  test('with one Idempotency-Key gets the same answer however often it comes', async () => {
    const user = someone()
    const send = (key: string, request = body(user)) => create(user, request, { 'idempotency-key': `${key} ${user}` })
    await server.provider.script([says(errandResult)], user)
    const first = await send('one')
    await jobNamed(user, first).reaches('succeeded')

    const [hit, again, own] = [await send('two'), await send('two'), await send('one')]

    assert.deepEqual(hit.body, { request_id: first.body.request_id, cache_hit: true, status: 'succeeded' })
    assert.deepEqual(again.body, hit.body)
    assert.deepEqual([own.body.request_id, own.body.cache_hit], [first.body.request_id, false])
    assert.deepEqual(statusAndCode(await send('two', body(user, { parameter: { x: 1 } }))), [
      409,
      'idempotency_key_reused',
    ])
  })

  test('after the skill was changed is run, also if its version stayed the same', async () => {
    const small = await startTestServer({ POLYLOG_SKILLS_DIR: folder }, server.provider)
    const file = join(folder, 'errand', 'SKILL.md')
    const source = readFileSync(file, 'utf8')
    try {
      const user = someone()
      await server.provider.script([says(errandResult), says(errandResult)], user)
      const first = await small.call('POST', '/v1/jobs', { user, body: body(user) })
      await jobOf(small, 'jobs', user, String(first.body.request_id)).reaches('succeeded')
      await small.polylog.stop()
      writeFileSync(file, `${source}\nAnd hop.`)

      const again = await small.restart()
      try {
        const second = await again.call('POST', '/v1/jobs', { user, body: body(user) })
        assert.equal(second.body.cache_hit, false)
      } finally {
        await again.close()
      }
    } finally {
      writeFileSync(file, source)
    }
  })

  test('with an upload is answered with a copy of the result and its files, and only for the same files', async () => {
    const user = someone()
    await server.provider.script(
      [calls(['save_artifact', { path: 'a.md', content: 'kept' }]), says('First.'), says('Second.')],
      user,
    )
    const sends = async (text: string) => {
      const job = jobNamed(user, await create(user, { skill_id: 'needs-file', input: { what: user } }))
      const sent = await upload(server, job.path, user, { file: zipped({ 'notes.txt': text }, '') })
      await job.reaches('succeeded')
      return { job, hit: sent.body.cache_hit as boolean }
    }

    const first = await sends('milk')
    const same = await sends('milk')
    const other = await sends('bread')
    await first.job.post('/cancel')

    assert.deepEqual([first.hit, same.hit, other.hit], [false, true, false])
    const { result } = (await same.job.get('/result')).body
    assert.deepEqual([result.data, result.artifacts], [{ text: 'First.' }, ['artifacts/a.md']])
    assert.equal((await same.job.get('/artifacts/a.md')).text, 'kept')
    assert.deepEqual((await other.job.get('/result')).body.result.data, { text: 'Second.' })
    assert.equal((await server.asked(user)).length, 3)
    assert.equal((await same.job.get('/invariants')).body.kept, true)
  })

  test('of a skill that is uploaded for one run alone is always run', async () => {
    const user = someone()
    await server.provider.script([says(errandResult), says(errandResult)], user)
    for (let time = 0; time < 2; time++) {
      const job = jobOf(
        server,
        'temp-skill-runs',
        user,
        String(
          (await server.call('POST', '/v1/temp-skill-runs', { user, body: { input: { what: user } } })).body.request_id,
        ),
      )
      assert.equal((await upload(server, job.path, user, { skill_package: zipped(errand()) })).body.cache_hit, false)
      await job.reaches('succeeded')
    }
    assert.equal((await server.asked(user)).length, 2)
  })
})

test('cleanup removes the caller’s ended jobs of both families and their cached results, and nothing else', async () => {
  const [user, other] = [someone(), someone()]
  const request = { skill_id: 'errand', input: { what: user } }
  await server.provider.script(
    [says(errandResult), says(errandResult), calls(['ask_user', { question: 'Which?' }])],
    user,
  )
  const auto = jobNamed(user, await create(user, request))
  await auto.reaches('succeeded')
  const temporary = await startJob(server, 'temp-skill-runs', user)
  await temporary.reaches('succeeded')
  const waiting = await startJob(server, 'jobs', user)
  await waiting.reaches('waiting_user')
  const held = jobNamed(user, await create(user, { skill_id: 'needs-file', input: { what: user } }))
  await server.chatToEnd(user, `chat ${user}`)
  await server.provider.script([says(errandResult)], other)
  const foreign = await startJob(server, 'jobs', other)
  await foreign.reaches('succeeded')

  const { body } = await server.call('POST', '/v1/jobs/cleanup', { user })

  assert.deepEqual(body, { runs_deleted: 2, requests_deleted: 2, cache_entries_deleted: 1 })
  for (const job of [auto, temporary]) assert.deepEqual(statusAndCode(await job.get()), [404, 'job_not_found'])
  for (const job of [waiting, held, foreign]) assert.equal((await job.get()).status, 200)
  const runs = (await server.call('GET', '/v1/agent/runs', { user })).body as unknown as Json[]
  assert.equal(runs.length, 3)
  assert.equal((await create(user, request)).body.cache_hit, false)
  await until('the new run', async () => ((await server.asked(user)).length >= 4 ? true : undefined))
  await held.post('/cancel')
})

test('a job whose upload does not come in time ends as failed with a clear code, over a restart', async () => {
  const small = await startTestServerProcess(
    { POLYLOG_SKILLS_DIR: folder, POLYLOG_UPLOAD_TTL_MS: '1500' },
    server.provider,
  )
  const user = someone()
  const created = await small.call('POST', '/v1/jobs', {
    user,
    body: { skill_id: 'needs-file', input: { what: user } },
  })
  await small.polylog.kill()

  const again = await small.restart()
  try {
    const job = jobOf(again, 'jobs', user, String(created.body.request_id))
    const stream = await job.events()
    await stream.ended()
    const status = await job.reaches('failed')

    assert.equal(status.error.code, 'job_upload_expired')
    const events = stream.frames
      .filter(({ event }) => event === 'chat_event')
      .map(({ json }) => json as unknown as Json)
    assert.deepEqual(
      events.map(({ type, data }) => [type, data.trigger ?? data.error.code]),
      [
        ['conversation.state.changed', 'upload.expired'],
        ['conversation.failed', 'JOB_UPLOAD_EXPIRED'],
      ],
    )
    const late = await upload(again, job.path, user, { file: zipped({ 'notes.txt': 'x' }, '') })
    assert.deepEqual(statusAndCode(late), [400, 'job_already_started'])
    assert.equal((await job.get('/invariants')).body.kept, true)
  } finally {
    await again.close()
  }
})
