// Skills and the jobs that run them: listing, creating, output repair, results and artifacts;
// over real sockets. The other jobs-*.test.ts files cover uploads, interactions and the life cycle.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { readZip } from '../../src/kit/zip-reader.ts'
import {
  asks,
  errandResult,
  families,
  jobOf,
  startJob,
  statusAndCode,
  upload,
  zipped,
  sharedJobServer,
} from '../support/jobs.ts'
import { calls, type Json, messagesOf, says, someone, startTestServer, until } from '../support/test-server.ts'

const { server } = sharedJobServer()

const create = (user: string, body: Json) => server.call('POST', '/v1/jobs', { user, body })

describe('skills', () => {
  test('are listed, the broken ones with the reason, and only read inside their folder', async () => {
    const { body } = await server.call('GET', '/v1/skills')
    const skills = body as unknown as Json[]
    const errandSkill = await server.call('GET', '/v1/skills/errand')

    assert.deepEqual(
      skills.map(({ id, available }) => [id, available]),
      [
        ['broken', false],
        ['errand', true],
        ['escaping', false],
        ['needs-file', true],
        ['picky', true],
        ['plain', true],
      ],
    )
    assert.match(String(skills[0]?.reason), /front matter/)
    assert.match(String(skills[2]?.reason), /not a path inside the package/)
    assert.equal(errandSkill.body.instructions, 'Run the errand called moonwalk.')
    assert.equal(errandSkill.body.schemas.output.required[0], 'done')
    assert.deepEqual(statusAndCode(await server.call('GET', '/v1/skills/nothing')), [404, 'skill_not_found'])
  })
})

describe('creating a job', () => {
  test('runs the skill: its text stands in the prompt of every turn, and its result fits the schema', async () => {
    const user = someone()
    await server.provider.script([asks({ question: 'Which?' }), says(errandResult)], user)
    const job = await startJob(server, 'jobs', user)
    await job.reaches('waiting_user')
    await job.reply(1, 'this one')
    await job.reaches('succeeded')

    const asked = await server.asked(user)
    const { body } = await job.get('/result')

    assert.equal(asked.length, 2)
    for (const request of asked) assert.match(String(messagesOf(request)[0]?.content), /called moonwalk/)
    assert.equal(messagesOf(asked[1]).at(-1)?.content, 'this one')
    assert.deepEqual(body, {
      request_id: job.id,
      result: {
        status: 'succeeded',
        data: { done: true },
        artifacts: [],
        repair_level: 'none',
        validation_warnings: [],
        error: null,
        pending_interaction: null,
      },
    })
  })

  test('that asks for what the skill or the server does not have is refused with a code, and makes no run', async () => {
    const user = someone()
    const bodies: [Json, number, string][] = [
      [{ skill_id: 'nothing' }, 404, 'skill_not_found'],
      [{ skill_id: 'broken' }, 400, 'skill_broken'],
      [{ skill_id: 'errand', engine: 'codex' }, 400, 'skill_engine_unsupported'],
      [{ skill_id: 'picky' }, 400, 'skill_engine_unsupported'],
      [
        { skill_id: 'needs-file', input: { what: 'x' }, runtime_options: { execution_mode: 'interactive' } },
        400,
        'skill_execution_mode_unsupported',
      ],
      [{ skill_id: 'needs-file', input: {} }, 400, 'job_input_invalid'],
      [{ skill_id: 'errand', runtime_options: { verbos: true } }, 400, 'runtime_option_unknown'],
      [{ skill_id: 'errand', runtime_options: { session_timeout_sec: 0 } }, 400, 'runtime_option_invalid'],
      [{ skill_id: 'errand', runtime_options: { execution_mode: 'fast' } }, 400, 'runtime_option_invalid'],
      [{ skill_id: 'errand', model: 'anthropic/nothing' }, 400, 'unknown_model'],
      [{}, 400, 'invalid_request'],
    ]

    for (const [body, status, code] of bodies) {
      const answer = await create(user, body)
      assert.deepEqual(statusAndCode(answer), [status, code], JSON.stringify(body))
      assert.deepEqual([answer.body.detail.code, answer.body.detail.message], [code.toUpperCase(), answer.body.message])
    }
    assert.deepEqual((await server.call('GET', '/v1/agent/runs', { user })).body, [])
  })

  test('twice with one Idempotency-Key makes one job; another body is 409', async () => {
    const user = someone()
    const body = { skill_id: 'needs-file', input: { what: user } }
    const send = (what: Json) =>
      server.call('POST', '/v1/jobs', { user, body: what, headers: { 'idempotency-key': user } })

    const [first, second] = [await send(body), await send(body)]

    assert.equal(first.body.request_id, second.body.request_id)
    assert.deepEqual(statusAndCode(await send({ ...body, parameter: { x: 1 } })), [409, 'idempotency_key_reused'])
  })

  test('whose model wraps its JSON in words or a fence succeeds with the JSON, and says that it was unwrapped', async () => {
    for (const answer of [
      `Sure: ${errandResult} Anything else?`,
      `Here:\n\`\`\`json\n${errandResult}\n\`\`\`\nGood luck.`,
    ]) {
      const user = someone()
      await server.provider.script([says(answer)], user)
      const job = await startJob(server, 'jobs', user, { execution_mode: 'auto' })
      await job.reaches('succeeded')
      const { result } = (await job.get('/result')).body

      assert.deepEqual([result.data, result.repair_level], [{ done: true }, 'deterministic_generic'])
    }
  })

  test('whose model misses the schema is asked once more with the errors, which every view shows', async () => {
    for (const family of families) {
      const user = someone()
      // The complaint names the property, so the repair request carries the marker of this script.
      const wrong = JSON.stringify({ done: true, [user]: 1 })
      await server.provider.script([says(wrong), says(errandResult)], user)
      const job = await startJob(server, family, user, { execution_mode: 'auto' })
      const stream = await job.events()
      await stream.ended()
      const { result } = (await job.get('/result')).body

      assert.deepEqual([result.status, result.data, result.repair_level], ['succeeded', { done: true }, 'model_round'])
      assert.match(String(result.validation_warnings), new RegExp(`asked for once more: .*${user}`))
      const types = stream.frames
        .filter(({ event }) => event === 'chat_event')
        .map(({ json }) => json as unknown as Json)
      const warning = types.find(({ type }) => type === 'diagnostic.warning')
      assert.deepEqual([warning?.data.code, warning?.data.detail.includes(user)], ['OUTPUT_INVALID', true])
      assert.equal(types.filter(({ type }) => type === 'assistant.message.final').length, 2)
      assert.match((await job.get('/logs')).body.stderr, /output_invalid/)
      assert.equal((await server.asked(user)).length, 2)
      assert.equal((await job.get('/invariants')).body.kept, true)
    }
  })

  test('whose model answers something that does not fit, also when asked once more, ends as failed and says why', async () => {
    for (const answer of ['{"done":"maybe"}', 'Sure: {"done":1}']) {
      const user = someone()
      await server.provider.script([says(answer)], user)
      // A job that cannot ask; an interactive job treats plain text as a question, see jobs-in-words.
      const job = await startJob(server, 'jobs', user, { execution_mode: 'auto' })
      const status = await job.reaches('failed')
      const { body } = await job.get('/result')

      assert.equal(status.error.code, 'job_output_invalid')
      assert.deepEqual(
        [body.result.status, body.result.data, body.result.error.code],
        ['failed', null, 'job_output_invalid'],
      )
    }
  })

  test('keeps what it made: listed, read, and in a bundle with the result', async () => {
    const user = someone()
    await server.provider.script(
      [calls(['save_artifact', { path: 'out/list.md', content: '- a' }]), says(errandResult)],
      user,
    )
    const job = await startJob(server, 'jobs', user)
    const early = await job.get('/result')
    await job.reaches('succeeded')

    const file = await job.get('/artifacts/out/list.md')
    const response = await fetch(new URL(`${job.path}/bundle?userId=${user}`, server.polylog.baseUrl))
    const bundle = await readZip(Buffer.from(await response.arrayBuffer()))

    assert.ok(early.status === 404 || early.status === 200)
    assert.deepEqual((await job.get('/artifacts')).body.artifacts, [{ path: 'artifacts/out/list.md', size: 3 }])
    assert.deepEqual(
      [file.status, file.text, file.headers.get('content-type')],
      [200, '- a', 'text/plain; charset=utf-8'],
    )
    assert.equal((await job.get('/artifacts/artifacts/out/list.md')).text, '- a')
    assert.deepEqual(
      bundle.map(({ path }) => path),
      ['result.json', 'artifacts/out/list.md'],
    )
    assert.deepEqual(statusAndCode(await job.get('/artifacts/out/other.md')), [404, 'artifact_not_found'])
    assert.deepEqual(statusAndCode(await job.get('/artifacts/..%2f..%2fetc')), [400, 'artifact_path_invalid'])
  })
})

describe('the shipped skills', () => {
  test('do something sensible with the demo model', async () => {
    const demo = await startTestServer({ POLYLOG_MODEL: 'demo/demo' }, server.provider)
    try {
      const user = someone()
      const run = async (body: Json) => {
        const created = await demo.call('POST', '/v1/jobs', { user, body })
        assert.equal(created.status, 200, created.text)
        return jobOf(demo, 'jobs', user, String(created.body.request_id))
      }
      const digest = await run({
        skill_id: 'text-digest',
        input: { text: 'Ships are old. Ships carry tea. Ships sink.' },
        parameter: { sentences: 2 },
      })
      await digest.reaches('succeeded')
      const items = await run({ skill_id: 'action-items' })
      const notes = 'Meeting\n- Ann will send the offer by Friday.\n- TODO: book a room\n- It rained.\n'
      await upload(demo, items.path, user, { file: zipped({ 'notes.txt': notes }, '') })
      await items.reaches('succeeded')
      const brief = await run({
        skill_id: 'decision-brief',
        input: { question: 'Tea?', options: ['green', 'black'] },
        runtime_options: { execution_mode: 'interactive' },
      })
      for (const [index, reply] of ['black', 'it is strong', 'yes', true].entries()) {
        await until(`question ${index + 1}`, async () =>
          (await brief.get()).body.pending_interaction_id === index + 1 ? true : undefined,
        )
        await brief.reply(index + 1, reply)
      }
      await brief.reaches('succeeded')

      assert.deepEqual((await digest.get('/result')).body.result.data, {
        title: 'Ships are old',
        summary: 'Ships are old. Ships carry tea.',
        keywords: ['ships', 'carry', 'sink', 'old', 'tea'],
        words: 8,
        reading_minutes: 1,
      })
      assert.deepEqual((await items.get('/result')).body.result.data.items, [
        { task: 'Send the offer', owner: 'Ann', due: 'Friday' },
        { task: 'Book a room', owner: null, due: null },
      ])
      assert.equal(
        (await items.get('/artifacts/action-items.md')).text,
        '- [ ] Send the offer (Ann, Friday)\n- [ ] Book a room\n',
      )
      assert.equal((await brief.get('/result')).body.result.data.decision, 'black')
      assert.equal((await brief.get('/result')).body.result.data.answers.length, 4)
    } finally {
      await demo.close()
    }
  })
})
