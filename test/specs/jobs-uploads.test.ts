// Uploads of jobs: jobs that wait for one, hostile archives, and uploaded skills, which are
// never installed and whose files are deleted when the run ends.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { writeZip } from '../../src/kit/zip-writer.ts'
import {
  asks,
  blobCount,
  errand,
  errandResult,
  families,
  jobOf,
  startJob,
  statusAndCode,
  upload,
  zipped,
  sharedJobServer,
} from '../support/jobs.ts'
import { calls, type Json, messagesOf, says, someone, until } from '../support/test-server.ts'

const { server } = sharedJobServer()

const create = (user: string, body: Json) => server.call('POST', '/v1/jobs', { user, body })

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
      assert.deepEqual(statusAndCode(late), [400, 'job_already_started'])
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

    assert.deepEqual(statusAndCode(wrong), [400, 'job_input_invalid'])
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

    assert.deepEqual(statusAndCode(await upload(server, temporary.path, user, { file: zipped({ a: 'x' }) })), [
      400,
      'upload_part_missing',
    ])
    assert.deepEqual(statusAndCode(await server.call('POST', `${temporary.path}/upload`, { user, body: {} })), [
      415,
      'unsupported_media_type',
    ])
    assert.deepEqual(
      statusAndCode(await upload(server, temporary.path, someone(), { skill_package: zipped(errand()) })),
      [404, 'job_not_found'],
    )
    assert.deepEqual(statusAndCode(await jobOf(server, 'jobs', user, temporary.id).get()), [404, 'job_not_found'])
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
    [
      'an output schema that no value can fit',
      () => zipped(errand({ 'assets/output.json': '{"$ref":"#"}' })),
      400,
      'skill_package_invalid',
    ],
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
    await server.provider.script([says(errandResult)], user)
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
      assert.deepEqual(statusAndCode(answer), [status, code], `${name}: ${answer.text}`)
      assert.equal((await job.get()).body.status, 'queued')
    }

    assert.deepEqual(filesIn(server.polylog.dataDir), filesBefore)
    assert.equal(await blobCount(server, job), 0)
    assert.equal((await upload(server, job.path, user, { skill_package: zipped(errand()) })).status, 200)
    await job.reaches('succeeded')
  })

  test('of input files is judged in the same way', async () => {
    const user = someone()
    const { body } = await create(user, { skill_id: 'needs-file', input: { what: user } })
    const job = jobOf(server, 'jobs', user, String(body.request_id))

    assert.deepEqual(
      statusAndCode(await upload(server, job.path, user, { file: zipped({ '../notes.txt': 'x' }, '') })),
      [400, 'archive_unsafe_path'],
    )
    assert.deepEqual(statusAndCode(await upload(server, job.path, user, { file: linked() })), [
      400,
      'archive_has_links',
    ])
    assert.equal(await blobCount(server, job), 0)
    await job.post('/cancel')
  })
})

/** Without the mark of the watchdog, which it writes when a busy machine blocks the server. */
function filesIn(directory: string): Set<string> {
  const paths = readdirSync(directory, { recursive: true }).map(String)
  return new Set(paths.filter((path) => path !== 'watchdog-mark.json'))
}

describe('an uploaded skill', () => {
  test('is never installed, and its files are gone when its run ends, however it ends', async () => {
    for (const ending of ['succeeded', 'canceled', 'failed'] as const) {
      const user = someone()
      // Wrong twice; the complaint names the property, so the repair request carries the marker of this script.
      const wrong = says(JSON.stringify({ [user]: 1 }))
      const answers = ending === 'failed' ? [wrong, wrong] : [says(errandResult)]
      await server.provider.script([asks({ question: 'Go?' }), ...answers], user)
      const job = await startJob(server, 'temp-skill-runs', user)
      await job.reaches('waiting_user')
      const during = await blobCount(server, job)
      if (ending === 'canceled') await job.post('/cancel')
      else await job.reply(1, 'yes')
      await job.reaches(ending)

      assert.deepEqual([during, await blobCount(server, job)], [4, 0])
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
          says(errandResult),
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

test('nothing of an uploaded archive is ever unpacked into a folder', () => {
  for (const name of ['jobs/job-service.ts', 'skills/skill-package.ts', 'kit/zip-reader.ts', 'http/uploads.ts']) {
    const source = readFileSync(new URL(`../../src/${name}`, import.meta.url), 'utf8')
    assert.doesNotMatch(source, /node:fs/, name)
  }
})
