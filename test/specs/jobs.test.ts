// Jobs beside their stream: creating, uploading, asking and replying, cancelling,
// results, restarts and admission; over real sockets, under both prefixes.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, test } from 'node:test'
import { readZip } from '../../src/kit/zip-reader.ts'
import { writeZip } from '../../src/kit/zip-writer.ts'
import {
  calls,
  hangsAfter,
  type TestServer,
  type Json,
  messagesOf,
  says,
  someone,
  startTestServer,
  until,
} from '../support/test-server.ts'
import { errand, families, type Job, jobOf, skillsFolder, startJob, upload, zipped } from '../support/jobs.ts'

let server: TestServer
const folder = skillsFolder()
const done = '{"done":true}'
const asks = (question: Json) => calls(['ask_user', question])

before(async () => {
  server = await startTestServer({ POLYLOG_SKILLS_DIR: folder })
})

after(async () => {
  await server.close()
  rmSync(folder, { recursive: true, force: true })
})

const create = (user: string, body: Json) => server.call('POST', '/v1/jobs', { user, body })
const outcome = ({ status, body }: { status: number; body: Json }) => [status, body.code]

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
    assert.deepEqual(outcome(await server.call('GET', '/v1/skills/nothing')), [404, 'skill_not_found'])
  })
})

describe('creating a job', () => {
  test('runs the skill: its text stands in the prompt of every turn, and its result fits the schema', async () => {
    const user = someone()
    await server.provider.script([asks({ question: 'Which?' }), says(done)], user)
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
      assert.deepEqual(outcome(answer), [status, code], JSON.stringify(body))
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
    assert.deepEqual(outcome(await send({ ...body, parameter: { x: 1 } })), [409, 'idempotency_key_reused'])
  })

  test('whose model wraps its JSON in words or a fence succeeds with the JSON, and says that it was unwrapped', async () => {
    for (const answer of [`Sure: ${done} Anything else?`, `Here:\n\`\`\`json\n${done}\n\`\`\`\nGood luck.`]) {
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
      await server.provider.script([says(wrong), says(done)], user)
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
      // Where nobody can be asked; an interactive job takes words for a question, see jobs-in-words.
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
    await server.provider.script([calls(['save_artifact', { path: 'out/list.md', content: '- a' }]), says(done)], user)
    const job = await startJob(server, 'jobs', user)
    const early = await job.get('/result')
    await job.reaches('succeeded')

    const file = await job.get('/artifacts/out/list.md')
    const response = await fetch(new URL(`${job.path}/bundle?userId=${user}`, server.polylog.baseUrl))
    const bundle = readZip(Buffer.from(await response.arrayBuffer()))

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
    assert.deepEqual(outcome(await job.get('/artifacts/out/other.md')), [404, 'artifact_not_found'])
    assert.deepEqual(outcome(await job.get('/artifacts/..%2f..%2fetc')), [400, 'artifact_path_invalid'])
  })
})

describe('a job that needs an upload', () => {
  test('is there from the first POST on: it can be read, streamed and cancelled before', async () => {
    for (const family of families) {
      const user = someone()
      const body = family === 'jobs' ? { skill_id: 'needs-file', input: { what: user } } : {}
      const created = await server.call('POST', `/v1/${family}`, { user, body })
      const job = jobOf(server, family, user, String(created.body.request_id))
      const stream = await job.events()
      await stream.waitFor(({ event }) => event === 'snapshot')

      const before = await job.get()
      const cancelled = await job.post('/cancel')
      const again = await job.post('/cancel')
      await stream.ended()

      assert.equal(created.body.status, family === 'jobs' ? null : 'queued')
      assert.deepEqual([before.body.status, before.body.pending_interaction_id], ['queued', null])
      assert.deepEqual([cancelled.status, cancelled.body.accepted, cancelled.body.status], [200, true, 'canceled'])
      assert.deepEqual([again.status, again.body.accepted, again.body.status], [200, false, 'canceled'])
      assert.deepEqual(
        stream.frames
          .filter(({ event }) => event === 'chat_event')
          .map(({ json }) => [(json as unknown as Json).type, json.data.from ?? json.data.error.code]),
        [
          ['conversation.state.changed', 'queued'],
          ['conversation.failed', 'CANCELED'],
        ],
      )
      assert.equal((await job.get('/result')).body.result.error.code, 'CANCELED_BY_USER')
      const late = await upload(server, job.path, user, {
        file: zipped({ notes: 'x' }, ''),
        skill_package: zipped(errand()),
      })
      assert.deepEqual(outcome(late), [400, 'job_already_started'])
      assert.deepEqual(await server.asked(user), [])
    }
  })

  test('starts with it, once, and the model can read what was sent', async () => {
    const user = someone()
    await server.provider.script([calls(['read_job_file', { path: 'notes.txt' }]), says('Read.')], user)
    const created = await create(user, { skill_id: 'needs-file', input: { what: user } })
    const job = jobOf(server, 'jobs', user, String(created.body.request_id))

    const wrong = await upload(server, job.path, user, { file: zipped({ 'other.txt': 'x', 'more.txt': 'y' }, '') })
    const [first, second] = await Promise.all([
      upload(server, job.path, user, { file: zipped({ 'notes.txt': 'milk, bread' }, '') }),
      upload(server, job.path, user, { file: zipped({ 'notes.txt': 'milk, bread' }, '') }),
    ])
    await job.reaches('succeeded')

    assert.deepEqual(outcome(wrong), [400, 'job_input_invalid'])
    assert.deepEqual(
      [first.status, second.status].toSorted((a, b) => a - b),
      [200, 400],
    )
    assert.deepEqual((first.status === 200 ? first : second).body.extracted_files, ['notes.txt'])
    const asked = await server.asked(user)
    assert.equal(asked.length, 2)
    assert.match(String(messagesOf(asked[0]).at(-1)?.content), /"notes":"notes\.txt"[\s\S]*- notes\.txt \(11 bytes\)/)
    assert.equal(messagesOf(asked[1]).at(-1)?.content, 'milk, bread')
    assert.deepEqual((await job.get('/result')).body.result.data, { text: 'Read.' })
  })

  test('takes only a form with the right file, and only for its own family', async () => {
    const user = someone()
    const { body } = await server.call('POST', '/v1/temp-skill-runs', { user, body: {} })
    const temporary = jobOf(server, 'temp-skill-runs', user, String(body.request_id))

    assert.deepEqual(outcome(await upload(server, temporary.path, user, { file: zipped({ a: 'x' }) })), [
      400,
      'upload_part_missing',
    ])
    assert.deepEqual(outcome(await server.call('POST', `${temporary.path}/upload`, { user, body: {} })), [
      415,
      'unsupported_media_type',
    ])
    assert.deepEqual(outcome(await upload(server, temporary.path, someone(), { skill_package: zipped(errand()) })), [
      404,
      'job_not_found',
    ])
    assert.deepEqual(outcome(await jobOf(server, 'jobs', user, temporary.id).get()), [404, 'job_not_found'])
  })
})

describe('a hostile upload', () => {
  const card = (changes: Json) => ({
    'assets/runner.json': JSON.stringify({
      id: 'errand',
      execution_modes: ['interactive'],
      schemas: { input: 'assets/any.json', parameter: 'assets/any.json', output: 'assets/output.json' },
      ...changes,
    }),
  })
  const withEntry = (path: string, body: Buffer) =>
    writeZip([
      ...Object.entries(errand()).map(([name, text]) => ({ path: `errand/${name}`, body: Buffer.from(text) })),
      { path, body },
    ])
  const linked = () => {
    const zip = withEntry('errand/link', Buffer.from('/etc/passwd'))
    const at = zip.lastIndexOf(Buffer.from([0x50, 0x4b, 1, 2]))
    zip.writeUInt8(3, at + 5)
    zip.writeUInt32LE(0o120777 * 0x10000, at + 38)
    return zip
  }

  const corpus: [name: string, archive: () => Buffer, status: number, code: string][] = [
    ['a path that climbs out', () => withEntry('errand/../../evil', Buffer.from('x')), 400, 'archive_unsafe_path'],
    ['an absolute path', () => withEntry('/etc/evil', Buffer.from('x')), 400, 'archive_unsafe_path'],
    ['a backslash', () => withEntry('errand\\..\\evil', Buffer.from('x')), 400, 'archive_unsafe_path'],
    ['a link', linked, 400, 'archive_has_links'],
    ['a dense bomb', () => withEntry('errand/zeros', Buffer.alloc(8_000_000)), 400, 'archive_bomb'],
    ['too much in all', () => withEntry('errand/zeros', Buffer.alloc(33 * 1024 * 1024)), 400, 'archive_bomb'],
    [
      'too many files',
      () =>
        zipped({ ...errand(), ...Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`f${index}`, ''])) }),
      400,
      'archive_too_many_files',
    ],
    ['no archive', () => Buffer.from('hello'), 400, 'archive_invalid'],
    ['a cut archive', () => zipped(errand()).subarray(0, -30), 400, 'archive_invalid'],
    ['another top folder', () => zipped(errand(), 'other/'), 400, 'skill_package_invalid'],
    ['two top folders', () => withEntry('second/file', Buffer.from('x')), 400, 'skill_package_invalid'],
    ['a file at the top', () => withEntry('file', Buffer.from('x')), 400, 'skill_package_invalid'],
    ['no top folder', () => zipped(errand(), ''), 400, 'skill_package_invalid'],
    ['no SKILL.md', () => zipped(errand({ 'SKILL.md': undefined })), 400, 'skill_package_invalid'],
    ['no runner card', () => zipped(errand({ 'assets/runner.json': undefined })), 400, 'skill_package_invalid'],
    ['no output schema', () => zipped(errand({ 'assets/output.json': undefined })), 400, 'skill_package_invalid'],
    [
      'a schema elsewhere',
      () =>
        zipped(
          errand(card({ schemas: { input: '../../x', parameter: 'assets/any.json', output: 'assets/any.json' } })),
        ),
      400,
      'skill_package_invalid',
    ],
    [
      'a schema that is none',
      () => zipped(errand({ 'assets/output.json': '{"type":"nothing"}' })),
      400,
      'skill_package_invalid',
    ],
    [
      'a schema without end',
      () => zipped(errand({ 'assets/any.json': `${'{"not":'.repeat(9000)}{}${'}'.repeat(9000)}` })),
      400,
      'skill_package_invalid',
    ],
    [
      'another name',
      () => zipped(errand({ 'SKILL.md': '---\nname: other\ndescription: x\n---\nx' })),
      400,
      'skill_package_invalid',
    ],
    ['no mode', () => zipped(errand(card({ execution_modes: [] }))), 400, 'skill_package_invalid'],
    [
      'engines that contradict',
      () => zipped(errand(card({ engines: ['local'], unsupported_engines: ['local'] }))),
      400,
      'skill_package_invalid',
    ],
    ['another engine', () => zipped(errand(card({ engines: ['codex'] }))), 400, 'skill_engine_unsupported'],
    [
      'another mode',
      () => zipped(errand(card({ execution_modes: ['interactive'] }))),
      400,
      'skill_execution_mode_unsupported',
    ],
    ['more than 20 MiB', () => Buffer.alloc(20 * 1024 * 1024 + 1), 413, 'body_too_large'],
    ['far more than 20 MiB', () => Buffer.alloc(48 * 1024 * 1024), 413, 'body_too_large'],
  ]

  test('is refused with its code, leaves nothing, and the same run still starts with a good one', async () => {
    const user = someone()
    await server.provider.script([says(done)], user)
    const { body } = await server.call('POST', '/v1/temp-skill-runs', { user, body: { input: { what: user } } })
    const job = jobOf(server, 'temp-skill-runs', user, String(body.request_id))
    const filesBefore = filesIn(server.polylog.dataDir)

    for (const [name, archive, status, code] of corpus) {
      let answer
      try {
        answer = await upload(server, job.path, user, { skill_package: archive() })
      } catch (error) {
        // The server may hang up while too much is still being sent.
        if (status === 413) continue
        throw error
      }
      assert.deepEqual(outcome(answer), [status, code], `${name}: ${answer.text}`)
      assert.equal((await job.get()).body.status, 'queued')
    }

    assert.deepEqual(filesIn(server.polylog.dataDir), filesBefore)
    assert.equal(blobsOf(job), 0)
    assert.equal((await upload(server, job.path, user, { skill_package: zipped(errand()) })).status, 200)
    await job.reaches('succeeded')
  })

  test('of input files is judged in the same way', async () => {
    const user = someone()
    const { body } = await create(user, { skill_id: 'needs-file', input: { what: user } })
    const job = jobOf(server, 'jobs', user, String(body.request_id))

    assert.deepEqual(outcome(await upload(server, job.path, user, { file: zipped({ '../notes.txt': 'x' }, '') })), [
      400,
      'archive_unsafe_path',
    ])
    assert.deepEqual(outcome(await upload(server, job.path, user, { file: linked() })), [400, 'archive_has_links'])
    assert.equal(blobsOf(job), 0)
    await job.post('/cancel')
  })
})

function filesIn(directory: string): Set<string> {
  return new Set(readdirSync(directory, { recursive: true }).map(String))
}

/** Files of a job beside the journal, as they are on disk. */
function blobsOf(job: Job, where: TestServer = server): number {
  const db = new DatabaseSync(join(where.polylog.dataDir, 'polylog.db'), { readOnly: true })
  try {
    return Number(db.prepare('SELECT count(*) AS count FROM blobs WHERE run_id = ?').get(job.id)?.count)
  } finally {
    db.close()
  }
}

describe('an uploaded skill', () => {
  test('is never installed, and its files are gone when its run ends, however it ends', async () => {
    for (const ending of ['succeeded', 'canceled', 'failed'] as const) {
      const user = someone()
      // Wrong twice; the complaint names the property, so the repair request carries the marker of this script.
      const wrong = says(JSON.stringify({ [user]: 1 }))
      const answers = ending === 'failed' ? [wrong, wrong] : [says(done)]
      await server.provider.script([asks({ question: 'Go?' }), ...answers], user)
      const job = await startJob(server, 'temp-skill-runs', user)
      await job.reaches('waiting_user')
      const during = blobsOf(job)
      if (ending === 'canceled') await job.post('/cancel')
      else await job.reply(1, 'yes')
      await job.reaches(ending)

      assert.deepEqual([during, blobsOf(job)], [4, 0])
    }
    const installed = (await server.call('GET', '/v1/skills')).body as unknown as Json[]
    assert.equal(installed.filter(({ id }) => id === 'errand').length, 1)
  })

  test('gives the same stream as the installed one, but for ids and times', async () => {
    const streams: unknown[] = []
    for (const family of families) {
      const user = someone()
      await server.provider.script(
        [
          asks({ question: 'Which?', kind: 'choose_one', options: ['a', 'b'] }),
          calls(['remember_note', { text: 'x' }]),
          says(done),
        ],
        user,
      )
      const job = await startJob(server, family, user)
      const stream = await job.events()
      await job.reaches('waiting_user')
      await job.reply(1, 'a')
      await until('the second question', async () =>
        (await job.get()).body.pending_interaction_id === 2 ? true : undefined,
      )
      await job.reply(2, true)
      await stream.ended()
      const frames = stream.frames
        .filter(({ event }) => event === 'chat_event')
        .map(({ json }) => json as unknown as Json)
      streams.push(
        JSON.parse(
          JSON.stringify(frames, (key, value: unknown) =>
            ['run_id', 'ts', 'updated_at', 'accepted_at', 'message_id', 'session_id'].includes(key) ? key : value,
          ),
        ),
      )
    }

    assert.ok((streams[0] as unknown[]).length > 10)
    assert.deepEqual(streams[0], streams[1])
  })
})

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
    await server.provider.script([...questions.map(([asked]) => asks(asked)), says(done)], user)
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
    await server.provider.script([says(done)], user)
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
    assert.deepEqual(outcome(await job.get('/interaction/pending')), [400, 'job_not_interactive'])
    assert.deepEqual(outcome(await job.reply(1, 'x')), [400, 'job_not_interactive'])
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
      await server.provider.script([calls(['remember_note', { text: user }]), says(done)], user)
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
      [calls(['ask_user', { question: 'One?' }, 'c1'], ['ask_user', { question: 'Two?' }, 'c2']), says(done)],
      user,
    )
    const job = await startJob(server, 'jobs', user)
    await job.reaches('waiting_user')

    assert.deepEqual(outcome(await job.reply(2, 'too early')), [409, 'interaction_stale'])
    assert.equal((await job.reply(1, 'first')).body.status, 'waiting_user')
    await until('the second', async () => ((await job.get()).body.pending_interaction_id === 2 ? true : undefined))
    assert.equal((await job.reply(2, 'second')).body.status, 'queued')
    await job.reaches('succeeded')
  })
})

describe('replying', () => {
  async function waiting(): Promise<Job> {
    const user = someone()
    await server.provider.script([asks({ question: 'One?' }), asks({ question: 'Two?' }), says(done)], user)
    const job = await startJob(server, 'jobs', user)
    await job.reaches('waiting_user')
    return job
  }
  const second = (job: Job) =>
    until('the second question', async () => ((await job.get()).body.pending_interaction_id === 2 ? true : undefined))

  test('follows the table', async () => {
    const job = await waiting()

    assert.deepEqual(outcome(await job.reply(7, 'x')), [409, 'interaction_stale'], 'another id')
    const taken = await job.reply(1, { a: 1, b: 2 }, 'key-1')
    assert.deepEqual([taken.status, taken.body.status, taken.body.accepted], [200, 'queued', true])
    await second(job)
    const replayed = await job.reply(1, { b: 2, a: 1 }, 'key-1')
    assert.deepEqual(
      [replayed.status, replayed.body.status, replayed.body.accepted],
      [200, 'waiting_user', true],
      'the same again',
    )
    assert.deepEqual(outcome(await job.reply(1, { a: 2 }, 'key-1')), [409, 'reply_key_reused'], 'same key, other reply')
    assert.deepEqual(
      outcome(await job.reply(2, { a: 1, b: 2 }, 'key-1')),
      [409, 'reply_key_reused'],
      'same key, other question',
    )
    assert.deepEqual(outcome(await job.reply(1, 'x')), [409, 'interaction_stale'], 'answered, no key')
    assert.deepEqual(outcome(await job.reply(1, 'x', 'key-2')), [409, 'interaction_stale'], 'answered, other key')
    assert.equal((await job.get()).body.pending_interaction_id, 2)
    await job.reply(2, 'x', 'key-3')
    await job.reaches('succeeded')
    assert.deepEqual(outcome(await job.reply(3, 'x')), [409, 'job_not_waiting'])
    assert.deepEqual((await job.reply(2, 'x', 'key-3')).body, {
      request_id: job.id,
      status: 'succeeded',
      accepted: true,
    })
    assert.equal((await server.asked(job.user)).length, 3)
    assert.deepEqual(
      outcome(
        await server.call('POST', `${job.path}/interaction/reply`, {
          user: someone(),
          body: { interaction_id: 2, response: 'x' },
        }),
      ),
      [404, 'job_not_found'],
    )
    assert.equal((await job.post('/interaction/reply', { interaction_id: 'two', response: 1 })).status, 400)
  })

  test('twenty times at once takes one reply; with one key all are told yes', async () => {
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

describe('cancelling', () => {
  test('from queued, running and waiting says where the job stood, and a second time is not accepted', async () => {
    const small = await startTestServer({ POLYLOG_SKILLS_DIR: folder, POLYLOG_CONCURRENCY: '1' }, server.provider)
    try {
      const running = someone('running')
      await server.provider.script([hangsAfter('{')], running)
      const first = await startJob(small, 'jobs', running)
      await small.askedTimes(running, 1)
      const queued = await startJob(small, 'jobs', someone('queued'))
      await cancels(queued, 'queued')
      await cancels(first, 'running')
      const asking = someone('asking')
      await server.provider.script([asks({ question: 'Go on?' })], asking)
      const parked = await startJob(small, 'jobs', asking)
      await parked.reaches('waiting_user')
      await cancels(parked, 'waiting_user')
    } finally {
      await small.close()
    }
  })

  async function cancels(job: Job, from: string): Promise<void> {
    assert.equal((await job.get()).body.status, from)
    const { body } = await job.post('/cancel')
    const again = await job.post('/cancel')
    const events = (await job.get('/events/history')).body.events as Json[]

    assert.deepEqual([body.request_id, body.run_id, body.status, body.accepted], [job.id, job.id, 'canceled', true])
    assert.deepEqual([again.status, again.body.status, again.body.accepted], [200, 'canceled', false])
    assert.deepEqual(
      events.slice(-2).map(({ type, data }) => [type, data.from, data.to, data.trigger, data.error?.code]),
      [
        ['conversation.state.changed', from, 'canceled', 'run.canceled', undefined],
        ['conversation.failed', undefined, undefined, undefined, 'CANCELED'],
      ],
    )
    assert.deepEqual((await job.get()).body.error.code, 'CANCELED_BY_USER')
    assert.equal((await job.get('/interaction/pending')).body.pending, null)
  }
})

describe('a restart', () => {
  test('finds queued, running, held and waiting jobs where they were; they go on, and seq has no hole', async () => {
    const first = await startTestServer({ POLYLOG_SKILLS_DIR: folder, POLYLOG_CONCURRENCY: '1' }, server.provider)
    const [asking, alone, running, queued, held] = ['asking', 'alone', 'running', 'queued', 'held'].map((name) =>
      someone(name),
    ) as [string, string, string, string, string]
    await server.provider.script([asks({ question: 'Go on?' }), says(done)], asking)
    await server.provider.script([asks({ question: 'Anybody?' }), says(done)], alone)
    await server.provider.script([hangsAfter('{"done"'), says(done)], running)
    await server.provider.script([says(done)], queued)
    await server.provider.script([says(done)], held)
    const jobs = {
      asking: await startJob(first, 'temp-skill-runs', asking),
      alone: await startJob(first, 'jobs', alone, { interactive_require_user_reply: false, session_timeout_sec: 1 }),
    }
    await jobs.asking.reaches('waiting_user')
    await jobs.alone.reaches('waiting_user', 'succeeded')
    const second = { running: await startJob(first, 'jobs', running) }
    await first.askedTimes(running, 1)
    const third = { queued: await startJob(first, 'jobs', queued) }
    const created = await first.call('POST', '/v1/temp-skill-runs', { user: held, body: { input: { what: held } } })
    const all = {
      ...jobs,
      ...second,
      ...third,
      held: jobOf(first, 'temp-skill-runs', held, String(created.body.request_id)),
    }
    await first.polylog.kill()

    const again = await first.restart()
    try {
      const now = (name: keyof typeof all, family: 'jobs' | 'temp-skill-runs' = 'jobs') =>
        jobOf(again, family, all[name].user, all[name].id)
      await now('running').reaches('succeeded')
      await now('queued').reaches('succeeded')
      const status = await now('alone').reaches('succeeded')
      const parked = now('asking', 'temp-skill-runs')
      assert.equal((await parked.get()).body.status, 'waiting_user')
      assert.equal(blobsOf(parked, again), 4)
      assert.equal((await parked.reply(1, 'yes')).status, 200)
      await parked.reaches('succeeded')
      assert.equal(blobsOf(parked, again), 0)
      const waits = now('held', 'temp-skill-runs')
      assert.equal((await waits.get()).body.status, 'queued')
      assert.equal((await upload(again, waits.path, held, { skill_package: zipped(errand()) })).status, 200)
      await waits.reaches('succeeded')

      assert.equal(status.auto_decision_count, 1)
      for (const job of [now('running'), now('queued'), now('alone'), parked, waits]) {
        const events = (await job.get('/events/history')).body.events as Json[]
        assert.deepEqual(
          events.map(({ seq }) => seq),
          events.map((_, index) => index + 1),
        )
        assert.equal(events.at(-1)?.type, 'conversation.completed')
      }
      const alonely = (await now('alone').get('/events/history')).body.events as Json[]
      assert.equal(alonely.filter(({ type }) => type === 'interaction.auto_decide.timeout').length, 1)
    } finally {
      await again.close()
    }
  })
})

describe('admission', () => {
  test('a full queue is 429 and changes nothing, for creating and for uploading; a waiting job holds no slot', async () => {
    const small = await startTestServer(
      { POLYLOG_SKILLS_DIR: folder, POLYLOG_CONCURRENCY: '1', POLYLOG_QUEUE_MAX: '1' },
      server.provider,
    )
    try {
      const asking = someone('asking')
      await server.provider.script([asks({ question: 'Go?' }), says(done)], asking)
      const parked = await startJob(small, 'jobs', asking)
      await parked.reaches('waiting_user')
      const busy = someone('busy')
      await server.provider.script(
        [[{ text: ['{"done"'] }, { stall: true }, { text: [':true}'] }, { finish: 'stop' }]],
        busy,
      )
      const running = await startJob(small, 'jobs', busy)
      await small.askedTimes(busy, 1)
      const held = someone('held')
      const created = await small.call('POST', '/v1/temp-skill-runs', { user: held, body: { input: { what: held } } })
      const waits = jobOf(small, 'temp-skill-runs', held, String(created.body.request_id))
      const queued = await startJob(small, 'jobs', someone('queued'), {})
      const user = someone('refused')

      const refused = await small.call('POST', '/v1/jobs', {
        user,
        body: { skill_id: 'errand', input: { what: user } },
      })
      const late = await upload(small, waits.path, held, { skill_package: zipped(errand()) })

      assert.deepEqual(outcome(refused), [429, 'queue_full'])
      assert.ok(Number(refused.headers.get('retry-after')) >= 1)
      assert.deepEqual((await small.call('GET', '/v1/agent/runs', { user })).body, [])
      assert.deepEqual(outcome(late), [429, 'queue_full'])
      assert.equal(blobsOf(waits, small), 0)
      assert.deepEqual((await waits.get('/events/history')).body.events, [])
      // A reply is never refused for want of room: the job was let in before.
      assert.equal((await parked.reply(1, 'yes')).status, 200)
      assert.equal((await parked.get()).body.status, 'queued')
      await queued.post('/cancel')
      assert.equal((await upload(small, waits.path, held, { skill_package: zipped(errand()) })).status, 200)
      await server.provider.script([says(done)], held)
      await server.provider.release()
      await running.reaches('succeeded')
      await parked.reaches('succeeded')
      await waits.reaches('succeeded', 'failed')
    } finally {
      await small.close()
    }
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

test('nothing of an uploaded archive is ever unpacked into a folder', () => {
  for (const name of ['jobs/job-service.ts', 'skills/skill-package.ts', 'kit/zip-reader.ts', 'http/uploads.ts']) {
    const source = readFileSync(new URL(`../../src/${name}`, import.meta.url), 'utf8')
    assert.doesNotMatch(source, /node:fs/, name)
  }
})
